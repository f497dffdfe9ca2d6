/** Who takes part where tokens are bound: oidc-provider, which gives them, and a Sallyport that takes no others. */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificates } from '../../support/certificates.js';
import { freePort } from '../../support/listening.js';
import { startOidcProvider } from '../../support/oidc-provider.js';
import { openssl } from '../../support/openssl.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startUpstreamServer, type UpstreamServer } from '../../support/upstream-server.js';
import { replaceFile } from '../../support/replace-file.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';

/** A certificate and its private key, as PEM texts. */
interface PairTexts {
  readonly cert: string;
  readonly key: string;
}

/** Files of a certificate that is replaced while it is in use. */
interface PairFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Both, each at once, the key first. */
  readonly put: (texts: PairTexts) => void;
}

interface BoundPeers {
  readonly receiver: UpstreamServer;
  /** Of the client `key`. */
  readonly secretFile: string;
  readonly nonceKeyFile: string;
  /** Settings of a target that trust what `startAnswering` shows. */
  readonly trusting: ConfigTree;
  /** Starts a Sallyport that takes bound tokens alone, and WebSockets at `/live`, and returns its origin. */
  readonly startAnswering: (t: Scope, dpop?: ConfigTree, upstreamUrl?: string) => Promise<string>;
  /** A token of one of the provider's clients, `key` or `certificate`. */
  readonly oauth: (client: string, auth: object, more?: object) => ConfigTree;
  /** Files that hold this pair. */
  readonly pairFiles: (t: Scope, first: PairTexts) => PairFiles;
  /** Another certificate of the client `certificate`: another key, the same name and authority. */
  readonly anotherPair: (t: Scope) => PairTexts;
}

export async function startBoundPeers(t: Scope): Promise<BoundPeers> {
  const { ca, server } = certificates(t);
  const dir = tempDir(t);
  const secretFile = join(dir, 'secret');
  const nonceKeyFile = join(dir, 'nonces');
  writeFileSync(secretFile, 'a secret', { mode: 0o600 });
  writeFileSync(nonceKeyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  const withSecret = { client_secret: 'a secret', token_endpoint_auth_method: 'client_secret_basic' };
  const idp = await startOidcProvider(t, [
    { ...withSecret, client_id: 'key', dpop_bound_access_tokens: true },
    {
      client_id: 'certificate',
      token_endpoint_auth_method: 'tls_client_auth',
      tls_client_auth_subject_dn: 'CN=client',
      tls_client_certificate_bound_access_tokens: true,
    },
  ]);
  const receiver = await startUpstreamServer(t);
  return {
    receiver,
    secretFile,
    nonceKeyFile,
    trusting: { ca_file: ca.certFile, server_name: 'localhost' },
    startAnswering: async (t, dpop = {}, upstreamUrl = receiver.url) => {
      const port = await freePort();
      const origin = `https://127.0.0.1:${String(port)}`;
      const allowed = { subjects: ['key', 'certificate'], permissions: ['orders:read'] };
      const issuer = { profile: 'oauth', issuer: idp.issuer, audience: 'orders', ca_file: idp.caFile };
      await startInProcessProxy(t, {
        receiver,
        config: {
          listen: {
            port,
            tls: { cert_file: server.certFile, key_file: server.keyFile, client_auth: 'request' },
            dpop: { origins: [origin], clock_skew: '1s', ...dpop },
          },
          store: { memory: {} },
          issuers: { idp: { ...issuer, claims: { subject: 'client_id' }, binding: 'require' } },
          upstream: { url: upstreamUrl },
          routes: [
            { name: 'orders', methods: ['GET', 'POST'], path: '/**', ...allowed, idempotency: 'none' },
            { name: 'live', methods: ['GET'], path: '/live', ...allowed, websocket: true },
          ],
        },
      });
      return origin;
    },
    oauth: (client, auth, more = {}) => {
      const asked = { scope: 'orders:read', resource: 'urn:orders:RS256' };
      return { oauth: { issuer: idp.issuer, ca_file: idp.caFile, client_id: client, auth, ...asked }, ...more };
    },
    pairFiles: (t, first) => {
      const folder = tempDir(t);
      const [certFile, keyFile] = [join(folder, 'shown.crt'), join(folder, 'shown.key')];
      const put = ({ cert, key }: PairTexts): void => {
        for (const [path, text] of [
          [keyFile, key],
          [certFile, cert],
        ] as const) {
          replaceFile(path, text, 0o600);
        }
      };
      put(first);
      return { certFile, keyFile, put };
    },
    anotherPair: (t) => {
      const folder = tempDir(t);
      const [cert, key, csr] = ['o.crt', 'o.key', 'o.csr'];
      const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
      openssl(folder, 'req', ...newKey, '-keyout', key, '-out', csr, '-subj', '/CN=client');
      writeFileSync(join(folder, 'ext'), 'extendedKeyUsage=clientAuth\n');
      const signer = ['-CA', ca.certFile, '-CAkey', ca.keyFile, '-CAcreateserial'];
      openssl(folder, 'x509', '-req', '-in', csr, ...signer, '-out', cert, '-days', '2', '-extfile', 'ext');
      return { cert: readFileSync(join(folder, cert), 'utf8'), key: readFileSync(join(folder, key), 'utf8') };
    },
  };
}

/** Tokens of this name that were fetched so far. */
export async function fetchesOf(proxy: InProcessProxy, token: string): Promise<number> {
  return proxy.metric(`sallyport_egress_token_fetches_total{token="${token}"}`);
}
