/** Tokens that a real authorization server issued to a real client, and a proxy with six lines of config for it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import t from 'tap';
import { startOidcProvider, type OidcProvider } from '../support/oidc-provider.js';
import { seriesValue } from '../support/proxy-process.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.js';
import type { Scope } from '../support/scope.js';
import { startServe, type ServeProcess } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const;

const configOf = (idp: OidcProvider, receiver: UpstreamServer, more: readonly string[]): string => `
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstream: { url: "${receiver.url}" }
issuers:
  idp:
    profile: oauth
    issuer: ${idp.issuer}
    audience: orders
    ca_file: ${idp.caFile}
    algorithms: [${algorithms.join(', ')}]
${more.map((line) => `    ${line}\n`).join('')}
routes:
  - { name: list, methods: [GET], path: /orders, subjects: [checkout], permissions: ["orders:read"] }
  - name: create
    methods: [POST]
    path: /orders
    subjects: [checkout]
    permissions: ["orders:write"]
    idempotency: { mode: none, because: a test }
`;

interface Deployment {
  readonly idp: OidcProvider;
  readonly receiver: UpstreamServer;
  readonly serve: ServeProcess;
  /** The status that a request with this token gets. */
  readonly statusOf: (token: string, method?: string) => Promise<number>;
  readonly admin: (path: string) => Promise<string>;
}

async function deploy(t: Scope, ...more: readonly string[]): Promise<Deployment> {
  const idp = await startOidcProvider(t);
  const receiver = await startUpstreamServer(t);
  const file = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(file, configOf(idp, receiver, more));
  const serve = startServe(t, file);
  const port = await serve.port('proxy');
  const adminPort = await serve.port('admin');
  await until('ready', async () => (await request(adminPort, { path: '/readyz' })).status === 200);
  return {
    idp,
    receiver,
    serve,
    statusOf: async (token, method = 'GET') =>
      (await request(port, { method, path: '/orders', headers: { Authorization: `Bearer ${token}` } })).status,
    admin: async (path) => (await request(adminPort, { path })).text,
  };
}

t.test('tokens of every algorithm pass, and their rights are those of their scope', async (t) => {
  const { idp, receiver, serve, statusOf, admin } = await deploy(t);
  for (const alg of algorithms) {
    const token = await idp.token(alg);
    t.match(decodeProtectedHeader(token), { alg, typ: 'at+jwt' });
    t.match(decodeJwt(token), { iss: idp.issuer, aud: 'orders', client_id: 'checkout', sub: 'checkout' });
    t.equal(await statusOf(token), 200, alg);
    t.equal(await statusOf(token, 'POST'), 403, `${alg}: without the scope`);
    t.equal(await statusOf(await idp.token(alg, 'orders:read orders:write'), 'POST'), 200, `${alg}: with it`);
    t.equal(await statusOf(`${token.slice(0, -9)}AAAAAAAAA`), 401, `${alg}: another signature`);
    t.notOk(serve.output().includes(token), 'and no token is in the log');
  }
  const [seen] = receiver.requests;
  t.same([seen?.field('x-auth-kind'), seen?.field('x-auth-subject')], [['service'], ['checkout']]);
  t.equal(await statusOf(await idp.token('opaque')), 401, 'an opaque token');
  t.match(JSON.parse(await admin('/status')), {
    issuers: [{ name: 'idp', usable: true, metadata: { keys_from: `${idp.issuer}/jwks`, last_error: null } }],
  });
});

t.test('keys that rotate and move are followed in mid-run, and old ones count no more', async (t) => {
  const { idp, statusOf, admin } = await deploy(t, 'jwks: { cooldown: 100ms }');
  let before = await idp.token('ES256');
  t.equal(await statusOf(before), 200);
  for (const path of ['/jwks', '/moved/jwks', '/jwks']) {
    await idp.rotate(path);
    for (const alg of algorithms) {
      const token = await idp.token(alg);
      await until(`${alg} at ${path}`, async () => (await statusOf(token)) === 200);
    }
    t.equal(await statusOf(before), 401, `the old key after ${path}`);
    before = await idp.token('ES256');
  }
  const metrics = await admin('/metrics');
  const refreshes = (result: string): number =>
    seriesValue(metrics, `sallyport_discovery_refreshes_total{issuer="idp",result="${result}"}`);
  t.ok(refreshes('ok') >= 3, 'the metadata was asked again');
  t.equal(refreshes('refused'), 0);
});
