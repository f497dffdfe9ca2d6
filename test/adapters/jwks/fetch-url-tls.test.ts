import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { localFiles } from '../../../src/adapters/files/files.js';
import { createUrlOrigin, type NamedOrigin } from '../../../src/adapters/jwks/fetch-url.js';
import { certificates, type Certificate } from '../../support/certificates.js';
import { listen } from '../../support/listening.js';

async function serve(t: Test, { cert, key }: Certificate, location?: string): Promise<string> {
  const server = createServer({ cert, key }, (_req, res) => {
    if (location === undefined) res.end('{"keys":[]}');
    else res.writeHead(302, { location: location.replace('PORT', String(port)) }).end();
  });
  server.on('tlsClientError', () => undefined);
  const { port } = await listen(t, server);
  return `https://127.0.0.1:${String(port)}/jwks.json`;
}

async function outcome(origin: NamedOrigin): Promise<string> {
  const loaded = await origin.load({ maxBytes: 1024, timeoutMs: 20_000 }, new AbortController().signal);
  return loaded.ok ? 'ok' : loaded.error;
}

t.test('the source has to prove who it is', async (t) => {
  const files = certificates(t);
  const rows: { name: string; serves: Certificate; caFile: string | null; expected: RegExp }[] = [
    { name: 'its own authority', serves: files.server, caFile: files.ca.certFile, expected: /^ok$/ },
    {
      name: 'the authorities of the system do not know it',
      serves: files.server,
      caFile: null,
      expected: /not trusted/,
    },
    { name: 'another authority', serves: files.strangerServer, caFile: files.ca.certFile, expected: /not trusted/ },
    { name: 'another name', serves: files.misnamed, caFile: files.ca.certFile, expected: /for another host name/ },
  ];
  for (const { name, serves, caFile, expected } of rows) {
    t.match(
      await outcome(createUrlOrigin(await serve(t, serves), { caFile, tokenFile: null, files: localFiles })),
      expected,
      name,
    );
  }
});

t.test('NODE_TLS_REJECT_UNAUTHORIZED in the environment does not change that', async (t) => {
  const url = await serve(t, certificates(t).server);
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  t.teardown(() => {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  });
  t.match(await outcome(createUrlOrigin(url, { caFile: null, tokenFile: null, files: localFiles })), /not trusted/);
});

t.test('a redirect does not lead out of TLS', async (t) => {
  const files = certificates(t);
  const rows: { location: string; expected: RegExp }[] = [
    { location: 'https://127.0.0.1:PORT/b', expected: /more than 3 redirects/ },
    { location: 'http://127.0.0.1:PORT/b', expected: /another scheme/ },
  ];
  for (const { location, expected } of rows) {
    t.match(
      await outcome(
        createUrlOrigin(await serve(t, files.server, location), {
          caFile: files.ca.certFile,
          tokenFile: null,
          files: localFiles,
        }),
      ),
      expected,
      location,
    );
  }
});

t.test('a CA file that cannot be used is an error, never the authorities of the system', async (t) => {
  const files = certificates(t);
  const url = await serve(t, files.server);
  const caFile = join(files.dir, 'authorities.pem');
  const pem = readFileSync(files.ca.certFile, 'utf8');
  const rows: { name: string; content: string; expected: RegExp }[] = [
    { name: 'empty', content: '', expected: /authorities\.pem holds no PEM certificate/ },
    { name: 'no PEM', content: 'certificate', expected: /holds no PEM certificate/ },
    { name: 'a key', content: files.ca.key, expected: /holds no PEM certificate/ },
    {
      name: 'garbage within',
      content: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      expected: /broken PEM certificate/,
    },
    { name: 'cut off', content: pem.slice(0, 200), expected: /broken PEM certificate/ },
    {
      name: 'one good, one broken',
      content: `${pem}-----BEGIN CERTIFICATE-----\n`,
      expected: /broken PEM certificate/,
    },
    { name: 'too large', content: `${pem}${' '.repeat(1024 * 1024)}`, expected: /is larger than/ },
    { name: 'good', content: pem, expected: /^ok$/ },
    {
      name: 'good among others, with comments',
      content: `# ours\r\n${files.otherCa.cert}\n# theirs\n${pem.replaceAll('\n', '\r\n')}`,
      expected: /^ok$/,
    },
  ];
  // The same origin all along: each change counts from the next attempt on.
  const origin = createUrlOrigin(url, { caFile, tokenFile: null, files: localFiles });
  t.match(await outcome(origin), /authorities\.pem does not exist/);
  for (const { name, content, expected } of rows) {
    writeFileSync(caFile, content);
    t.match(await outcome(origin), expected, name);
  }
});
