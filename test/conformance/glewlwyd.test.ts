/** Tokens of a second authorization server, in C: its issuer has a path, and its keys are found by its metadata. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeProtectedHeader } from 'jose';
import t from 'tap';
import { startGlewlwyd } from '../support/glewlwyd.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { startServe } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

t.test('tokens of glewlwyd pass, and those for others do not', async (t) => {
  const idp = await startGlewlwyd(t, ['orders', 'billing']);
  const receiver = await startUpstreamServer(t);
  const file = join(tempDir(t), 'sallyport.yaml');
  const config = [
    'listen: { host: 127.0.0.1, port: 0 }',
    'admin: { host: 127.0.0.1, port: 0 }',
    `upstream: { url: "${receiver.url}" }`,
    'issuers:',
    '  idp:',
    '    profile: oauth',
    `    issuer: ${idp.issuer}`,
    '    audience: orders',
    'routes:',
    '  - { name: list, methods: [GET], path: /orders, subjects: [checkout], permissions: [orders] }',
  ];
  writeFileSync(file, config.join('\n'));
  const serve = startServe(t, file);
  const [port, adminPort] = [await serve.port('proxy'), await serve.port('admin')];
  await until('ready', async () => (await request(adminPort, { path: '/readyz' })).status === 200);
  const statusOf = async (token: string): Promise<number> =>
    (await request(port, { path: '/orders', headers: { Authorization: `Bearer ${token}` } })).status;
  const token = await idp.token('orders');
  t.match(decodeProtectedHeader(token), { alg: 'RS256', typ: 'at+jwt' });
  t.equal(await statusOf(token), 200);
  t.equal(await statusOf(await idp.token('billing')), 401, 'another audience');
  t.equal(await statusOf(`${token.slice(0, -9)}AAAAAAAAA`), 401, 'another signature');
});
