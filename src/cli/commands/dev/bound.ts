/** What `dev --bound` adds: TLS, and a client with a key and a certificate that its tokens are bound to. */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { readBoundTo } from '../../../core-api/bound-to.js';
import type { Confirmation } from '../../../decision/binding/confirmation.js';
import { makeCertificate } from './certificate.js';
import type { DevCredentials } from './credentials.js';
import { curl, quote, type Example, type Sample } from './examples.js';
import type { Caller } from './token.js';

/** A client, and the listener that it calls. */
export interface BoundClient {
  /** Of the listener. */
  readonly port: number;
  /** `listen` of the config, but for its place. */
  readonly listen: object;
  /** Options of curl, by which it knows the listener. */
  readonly trust: readonly string[];
  /** Options of curl, by which it shows the certificate. */
  readonly identity: readonly string[];
  readonly keyFile: string;
  /** What a token says that is bound to the one or the other. */
  readonly bindings: { readonly key: Confirmation; readonly certificate: Confirmation };
}

/**
 * Makes the certificates and keys, in files beside the credentials.
 *
 * @param port 0 looks for a free one: proofs name it, so that it has to be known before anything listens.
 */
export async function createBoundClient(port: number, files: Pick<DevCredentials, 'write'>): Promise<BoundClient> {
  const known = port === 0 ? await freePort() : port;
  const [server, client] = [makeCertificate('localhost', true), makeCertificate('checkout', false)];
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' });
  const serverFile = await files.write('server.crt', server.certificate);
  return {
    port: known,
    listen: {
      tls: {
        cert_file: serverFile,
        key_file: await files.write('server.key', server.privateKey),
        client_auth: 'request',
      },
      dpop: { origins: [`https://127.0.0.1:${String(known)}`, `https://localhost:${String(known)}`] },
    },
    trust: ['--cacert', serverFile],
    identity: [
      '--cert',
      await files.write('client.crt', client.certificate),
      '--key',
      await files.write('client.key', client.privateKey),
    ],
    keyFile: await files.write('proof.key', key),
    bindings: { key: bindingTo(key.toString()), certificate: bindingTo(client.certificate) },
  };
}

/** What the examples are made with. */
interface Surroundings {
  /** Origin. */
  readonly proxy: string;
  readonly mint: (caller: Caller) => Promise<string>;
  readonly credentials: Pick<DevCredentials, 'keep' | 'write'>;
  /** How to call this program, in words of a shell. */
  readonly program: readonly string[];
}

/** Commands with tokens that are bound, sent with what they are bound to and without it. */
export async function boundExamples(
  { trust, identity, keyFile, bindings }: BoundClient,
  sample: Sample,
  caller: Caller,
  { proxy, mint, credentials, program }: Surroundings,
): Promise<readonly Example[]> {
  const token = await mint({ ...caller, confirmation: bindings.key });
  const tokenFile = await credentials.write('bound-token', token);
  const stolen = await credentials.keep('stolen', token);
  const shown = await credentials.keep('certified', await mint({ ...caller, confirmation: bindings.certificate }));
  const url = proxy + sample.target;
  const prove = [...program, 'prove', '--key', keyFile, sample.method, url].map(quote).join(' ');
  const proved = (options: readonly string[]): string =>
    `${prove} < ${quote(tokenFile)} | ${curl(proxy, sample, '-', [...trust, ...options])}`;
  // Curl ends no body with a line of its own.
  const twice = `${proved(['-w', '\\n'])} ${quote(url)}`;
  return [
    { command: proved([]), expect: 200, because: 'a token that is bound to a key, with a new proof' },
    { command: twice, expect: 200, then: 401, because: 'one proof, sent twice' },
    { command: curl(proxy, sample, stolen, trust), expect: 401, because: 'the same token, by who lacks its key' },
    {
      command: curl(proxy, sample, shown, [...trust, ...identity]),
      expect: 200,
      because: 'a token that is bound to a certificate, which is shown',
    },
    {
      command: curl(proxy, sample, shown, trust),
      expect: 401,
      because: 'the same token, by who lacks the certificate',
    },
  ];
}

function bindingTo(pem: string): Confirmation {
  const read = readBoundTo(pem);
  if (!read.ok) throw new Error(`what dev has just made ${read.error}`);
  return read.value;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
