/** Applications that share a Redis: reservations outlive their handlers, callers and processes. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { stringify } from 'yaml';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { connectRaw, request } from '../support/raw-client.js';
import { startRedis } from '../support/redis-server.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { applicationFolder } from './application-folder.js';
import { applicationConfig } from './open-app.js';
import { createGate, openWriting, serveWrites, writes } from './writes-app.js';

/** One route, with the same policy in each application: its name is the scope of keys. */
function sharing(port: number, more: ConfigTree = {}): ConfigTree {
  return {
    store: { redis: { url: `redis://127.0.0.1:${port}`, durability: 'none', settle_timeout: '250ms' } },
    upstream: { url: 'unix:/unused', connect_timeout: '100ms' },
    routes: [
      {
        name: 'orders',
        methods: ['POST'],
        path: '/orders',
        ...writes,
        idempotency: 'required',
        response_timeout: '1s',
      },
    ],
    ...more,
  };
}

t.test('of duplicates at two applications one runs', async (t) => {
  const { port } = await startRedis(t);
  let ran = 0;
  const open = async (): Promise<Awaited<ReturnType<typeof openWriting>>> =>
    openWriting(t, {
      config: sharing(port),
      routes: (app) =>
        app.post('/orders', async () => {
          ran += 1;
          await delay(20);
          return { ran };
        }),
    });
  const apps = [await open(), await open()];
  for (let round = 1; round <= 10; round += 1) {
    const answers = await Promise.all(
      Array.from({ length: 8 }, async (_, i) => apps[i % 2]?.write('/orders', `key-${String(round)}`)),
    );
    t.equal(ran, round);
    const told = answers.map((answer) => answer?.status);
    t.ok(
      told.every((status) => status === 200 || status === 409),
      told.join(),
    );
    t.ok(told.includes(200));
  }
});

t.test('what a killed application was at is in doubt, and runs nowhere else', async (t) => {
  const { port } = await startRedis(t);
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const dir = applicationFolder(t);
  writeFileSync(join(dir, 'sallyport.yaml'), stringify(applicationConfig(jwks.url, sharing(port))));
  writeFileSync(
    join(dir, 'app.mjs'),
    `import { fastify } from 'fastify';
     import sallyport from 'sallyport/fastify';
     const app = fastify({ logger: true });
     await app.register(sallyport, { config: 'sallyport.yaml' });
     app.post('/orders', () => { console.log('it runs'); return new Promise(() => undefined); });
     await app.listen({ host: '127.0.0.1', port: 0 });`,
  );
  const program = spawn(process.execPath, ['app.mjs'], { cwd: dir });
  t.teardown(() => program.kill('SIGKILL'));
  let output = '';
  program.stdout.on('data', (text: Buffer) => (output += text.toString()));
  const first = Number(await until('the port', () => /listening at http:\/\/127\.0\.0\.1:(\d+)/.exec(output)?.[1]));
  const headers = {
    Authorization: `Bearer ${mintToken({ key })}`,
    'Content-Type': 'application/json',
    'Idempotency-Key': 'k',
  };
  const write = { method: 'POST', path: '/orders', headers, body: '{"sku":"a"}' };
  const broken = request(first, write).catch(() => null);
  await until('the handler runs', () => output.includes('it runs'));
  program.kill('SIGKILL');
  t.equal(await broken, null);
  let ran = 0;
  const second = await openWriting(t, { config: sharing(port), routes: (app) => app.post('/orders', () => ++ran) });
  t.match((await second.write('/orders', 'k')).text, /in-progress/);
  await until('the lease ends', async () => /outcome-unknown/.test((await second.write('/orders', 'k')).text));
  t.equal(ran, 0);
});

t.test('an application that closes lets its writes end, with or without their callers', async (t) => {
  const { port } = await startRedis(t);
  const gate = createGate();
  let ran: ReadonlyMap<string, number> = new Map();
  const closing = await openWriting(t, {
    config: sharing(port, { routes: undefined, shutdown: { delay: '0s', grace: '10s' } }),
    routes: (app) =>
      (ran = serveWrites(app, {
        '/kept': async () => gate.passed.then(() => ({ is: 'kept' })),
        '/left': async () => gate.passed.then(() => ({ is: 'left' })),
      })),
  });
  const kept = closing.write('/kept', 'k');
  const leaving = await connectRaw(closing.port);
  leaving.write(
    `POST /left HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${closing.token()}\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n`,
  );
  await until('both run', () => ran.size === 2);
  leaving.end();
  await until('one left', () => closing.lines.some(({ reason }) => reason === 'caller_gone'));
  const closed = closing.app.close();
  await delay(50);
  gate.open();
  t.equal((await kept).text, '{"is":"kept"}');
  await closed;
  const later = await openWriting(t, {
    config: sharing(port, { routes: undefined }),
    routes: (app) => serveWrites(app, { '/kept': () => 'again', '/left': () => 'again' }),
  });
  t.equal((await later.write('/kept', 'k')).text, '{"is":"kept"}');
  const headers = { Authorization: `Bearer ${later.token()}`, 'Idempotency-Key': 'k' };
  const left = await later.request({ method: 'POST', path: '/left', headers, body: '' });
  t.equal(left.text, '{"is":"left"}');
  t.equal(left.field('idempotent-replayed'), 'true');
});

t.test('what does not end within the grace is in doubt', async (t) => {
  const { port } = await startRedis(t);
  let ran = 0;
  const closing = await openWriting(t, {
    config: sharing(port, { shutdown: { delay: '0s', grace: '500ms' } }),
    routes: (app) =>
      app.post('/orders', async () => {
        ran += 1;
        await delay(5_000, undefined, { ref: false });
      }),
  });
  const answer = closing.write('/orders', 'k');
  await until('it runs', () => ran === 1);
  await closing.app.close();
  t.equal((await answer).status, 504);
  const later = await openWriting(t, { config: sharing(port), routes: (app) => app.post('/orders', () => ++ran) });
  t.match((await later.write('/orders', 'k')).text, /outcome-unknown/);
  t.equal(ran, 1);
});

t.test('without Redis nothing runs, and what ran is written down when it is back', async (t) => {
  const redis = await startRedis(t);
  const gate = createGate();
  let ran = 0;
  const { write } = await openWriting(t, {
    config: sharing(redis.port),
    routes: (app) =>
      app.post('/orders', async () => {
        ran += 1;
        await gate.passed;
        return { ran };
      }),
  });
  const first = write('/orders', 'a');
  await until('it runs', () => ran === 1);
  await redis.kill();
  const refused = await write('/orders', 'b');
  t.equal(refused.status, 503);
  t.match(refused.text, /store-unavailable/);
  gate.open();
  t.equal((await first).text, '{"ran":1}');
  await redis.restart();
  const again = await until('the store is back', async () => {
    const answer = await write('/orders', 'a');
    return answer.status === 200 ? answer : null;
  });
  t.equal(again.text, '{"ran":1}');
  t.equal(again.field('idempotent-replayed'), 'true');
  t.equal(ran, 1);
});
