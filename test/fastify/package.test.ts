/** `sallyport/fastify` as an application has it among its packages, and the example of docs/fastify.md. */
import { execFile, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { blockThatBegins } from '../docs/fenced-blocks.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { typeFaults } from '../support/type-faults.js';
import { applicationFolder } from './application-folder.js';

const exec = promisify(execFile);

t.test('the example of docs/fastify.md works as it stands', async (t) => {
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const dir = applicationFolder(t);
  writeFileSync(join(dir, 'app.mjs'), blockThatBegins('docs/fastify.md', 'import { fastify }').text);
  const config = blockThatBegins('docs/fastify.md', 'issuers:').text;
  writeFileSync(join(dir, 'sallyport.yaml'), config.replace('https://core.example.com/auth/jwt/jwks.json', jwks.url));
  const program = spawn(process.execPath, ['app.mjs'], { cwd: dir, env: { ...process.env, PORT: '0' } });
  t.teardown(() => program.kill());
  let output = '';
  for (const stream of [program.stdout, program.stderr]) {
    stream.on('data', (text: Buffer) => (output += text.toString()));
  }
  const port = await until('the port', () => /listening at http:\/\/127\.0\.0\.1:(\d+)/.exec(output)?.[1]);
  const ask = async (path: string, claims: object | null): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      headers: claims === null ? {} : { authorization: `Bearer ${mintToken({ key, claims: { ...claims } })}` },
    });
  t.equal((await ask('/healthz', null)).status, 200);
  t.same(await (await ask('/orders', {})).json(), { orders: [], for: 'checkout' });
  t.same(await (await ask('/orders/7', {})).json(), { id: '7' });
  t.equal((await ask('/orders/7', { permissions: [] })).status, 403);
  t.equal((await ask('/orders', null)).status, 401);
  const order = async (): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/orders`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${mintToken({ key })}`,
        'content-type': 'application/json',
        'idempotency-key': 'one',
      },
      body: '{"sku":"a"}',
    });
  for (const replayed of [null, 'true']) {
    const answer = await order();
    t.equal(answer.status, 201);
    t.same(await answer.json(), { id: 1, sku: 'a' });
    t.equal(answer.headers.get('idempotent-replayed'), replayed);
  }
});

t.test('it is loaded from modules of both kinds', async (t) => {
  const dir = applicationFolder(t);
  const programs = {
    'a.mjs': "import one, { sallyport } from 'sallyport/fastify'; console.log(typeof one, one === sallyport);",
    'a.cjs':
      "const one = require('sallyport/fastify'); console.log(typeof one, one === one.sallyport && one === one.default);",
  };
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(dir, name), text);
    const { stdout } = await exec(process.execPath, [name], { cwd: dir });
    t.equal(stdout, 'function true\n', name);
  }
});

t.test('it has types', async (t) => {
  const dir = applicationFolder(t);
  const body = `
const app = fastify();
void app.register(sallyport, { config: { issuers: {} }, uncovered: 'refuse', watch: false });
app.get('/a', { config: { sallyport: { subjects: ['a'], permissions: [], limits: null } } }, (request) => {
  const who: string | undefined = request.principal?.subject;
  return { who, status: app.sallyport.readiness().status };
});
// @ts-expect-error: a list is meant
app.get('/b', { config: { sallyport: { subjects: 'a' } } }, () => null);
// @ts-expect-error: a config is needed
void app.register(sallyport, {});
app.get('/c', (request) => {
  // @ts-expect-error: nobody changes who calls
  if (request.principal !== null) request.principal.subject = 'x';
});
`;
  const files = {
    'a.mts': `import { fastify } from 'fastify';\nimport sallyport, { type RoutePolicy } from 'sallyport/fastify';\nexport type Policy = RoutePolicy;\n${body}`,
    'b.mts': `import { fastify } from 'fastify';\nimport { sallyport } from 'sallyport/fastify';\n${body}`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  const written = Object.keys(files).map((name) => join(dir, name));
  t.same(typeFaults(written), []);
});
