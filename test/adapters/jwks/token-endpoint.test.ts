import t from 'tap';
import { localFiles } from '../../../src/adapters/files/files.js';
import { createTokenEndpoint } from '../../../src/adapters/jwks/token-endpoint.js';
import type { Scope } from '../../support/scope.js';
import { oidcPath, startMetadataServer, type MetadataServer } from '../../support/metadata-server.js';
import { manualTime } from '../manual-time.js';

const oauthPath = '/.well-known/oauth-authorization-server';

interface Made {
  readonly server: MetadataServer;
  readonly endpoint: ReturnType<typeof createTokenEndpoint>;
  readonly advance: (ms: number) => void;
  readonly document: (more?: object) => object;
}

async function make(t: Scope, timeoutMs = 2_000): Promise<Made> {
  const server = await startMetadataServer(t);
  const { clock, advance } = manualTime();
  const issuer = server.origin;
  const urls = [`${issuer}${oidcPath}`, `${issuer}${oauthPath}`];
  return {
    server,
    advance,
    endpoint: createTokenEndpoint({ issuer, urls, timeoutMs }, { caFile: null, files: localFiles }, clock),
    document: (more = {}) => ({ issuer, token_endpoint: `${issuer}/token`, ...more }),
  };
}

t.test('found in either document, once for all who ask, and believed for ten minutes', async (t) => {
  const { server, endpoint, advance, document } = await make(t);
  server.at(oauthPath, document({ mtls_endpoint_aliases: { token_endpoint: `${server.origin}/mtls` } }));
  const found = await Promise.all([endpoint.find(), endpoint.find()]);
  const places = { url: `${server.origin}/token`, mtlsUrl: `${server.origin}/mtls` };
  t.strictSame(found, [
    { ok: true, value: places },
    { ok: true, value: places },
  ]);
  t.strictSame(server.asked, [oidcPath, oauthPath]);
  advance(599_999);
  await endpoint.find();
  t.equal(server.asked.length, 2);
  server.at(oidcPath, document({ token_endpoint: `${server.origin}/moved` }));
  advance(1);
  t.match(await endpoint.find(), { value: { url: `${server.origin}/moved`, mtlsUrl: null } });
  endpoint.forget();
  server.at(oidcPath, null);
  server.at(oauthPath, null);
  t.match(await endpoint.find(), { value: { url: `${server.origin}/moved` } }, 'what was known serves on');
});

t.test('however many requests fail, a place that is known is looked for once in 30 s', async (t) => {
  const { server, endpoint, advance, document } = await make(t);
  server.at(oidcPath, document());
  const again = async (): Promise<number> => {
    for (let count = 0; count < 3; count += 1) {
      endpoint.forget();
      t.match(await endpoint.find(), { ok: true });
    }
    return server.asked.length;
  };
  await endpoint.find();
  t.equal(await again(), 2);
  advance(29_999);
  t.equal(await again(), 2);
  server.at(oidcPath, (_req, res) => res.writeHead(503).end());
  advance(1);
  t.equal(await again(), 3);
  t.equal(await again(), 3, 'nor where nothing is found');
  advance(30_000);
  t.equal(await again(), 4);
});

t.test('a document that is not the issuer’s, or names a place elsewhere, names none', async (t) => {
  const { server, endpoint, document } = await make(t);
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ issuer: 'https://evil.example' }, /of another issuer: its issuer is "https:\/\/evil\.example"/],
    [{ issuer: undefined }, /its issuer is missing/],
    [{ token_endpoint: undefined }, /no https URL on the issuer’s origin: missing; token_url names another/],
    [{ token_endpoint: 'https://evil.example/token' }, /"https:\/\/evil\.example\/token"/],
    [{ token_endpoint: `${server.origin.replace('http', 'https')}/token` }, /no https URL/],
    [{ token_endpoint: `${server.origin.replace('//', '//user@')}/token` }, /no https URL/],
    [{ token_endpoint: '/token' }, /no https URL/],
  ];
  for (const [more, error] of cases) {
    server.at(oidcPath, document(more));
    t.match(await endpoint.find(), { ok: false, error }, String(error));
  }
  server.at(oidcPath, (_req, res) => res.end('{"issuer":"a","issuer":"b"}'));
  t.match(await endpoint.find(), { ok: false, error: /names a member twice/ });
  server.at(oidcPath, document({ mtls_endpoint_aliases: { token_endpoint: 'https://evil.example/token' } }));
  t.match(await endpoint.find(), { ok: true, value: { mtlsUrl: null } });
});

t.test('no redirect is followed, nothing large or late is waited for', async (t) => {
  const { server, endpoint, document } = await make(t, 200);
  server.at('/other', document());
  server.at(oidcPath, (_req, res) => res.writeHead(302, { location: '/other' }).end());
  t.match(await endpoint.find(), { ok: false, error: /redirect, which is not followed/ });
  server.at(oidcPath, document({ filler: 'x'.repeat(70_000) }));
  t.match(await endpoint.find(), { ok: false, error: /larger than 65536 bytes/ });
  server.at(oidcPath, () => undefined);
  t.match(await endpoint.find(), { ok: false, error: /no complete response within 200 ms/ });
  t.notOk(server.asked.includes('/other'));
  server.at(oidcPath, document());
  t.match(await endpoint.find(), { ok: true });
});
