/** `max_in_flight` in an application: a place is held for as long as a handler runs, and never longer than that. */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import t from 'tap';
import type { ConfigTree } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { until } from '../support/until.js';
import { connectRaw } from '../support/raw-client.js';
import { openApp, type OpenApp } from './open-app.js';
import { createGate, reserves, writes } from './writes-app.js';

const policy = { subjects: ['checkout'], permissions: ['orders:read'] };
const reads = { config: { sallyport: policy } };

interface CountingApp extends OpenApp {
  /** Requests that came, whatever became of them. */
  readonly arrived: () => number;
}

async function openWith(t: Scope, config: ConfigTree, routes: (app: FastifyInstance) => unknown): Promise<CountingApp> {
  let arrived = 0;
  const opened = await openApp(t, {
    config: { store: { memory: {} }, routes: undefined, ...config },
    before: (app) =>
      app.addHook('onRequest', (_request, _reply, next) => {
        arrived += 1;
        next();
      }),
    routes,
  });
  return { ...opened, arrived: () => arrived };
}

/** Sends a request, and breaks off so long after it came. */
async function breakOff(
  { port, token, arrived }: Pick<CountingApp, 'port' | 'token' | 'arrived'>,
  path: string,
  afterMs = 5,
  method = 'GET',
  body = '',
): Promise<void> {
  const caller = await connectRaw(port);
  const before = arrived();
  caller.write(
    `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token()}\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`,
  );
  await until('the request has come', () => arrived() > before);
  await delay(afterMs);
  caller.socket.resetAndDestroy();
}

/** Requests in flight, as its metrics have them. */
async function inFlight({ app }: OpenApp): Promise<number> {
  return Number(/^sallyport_requests_in_flight (\d+)$/m.exec(await app.sallyport.metrics())?.[1]);
}

t.test('callers that break off do not have more handlers run than there are places', async (t) => {
  const gate = createGate();
  let running = 0;
  let ran = 0;
  const app = await openWith(t, { listen: { max_in_flight: 4 } }, (app) => {
    app.get('/slow', reads, async () => {
      running += 1;
      ran += 1;
      await gate.passed;
      running -= 1;
      return {};
    });
  });
  for (let i = 0; i < 6; i += 1) await Promise.all([1, 2, 3, 4].map(async () => breakOff(app, '/slow')));
  t.equal(running, 4);
  t.equal(await inFlight(app), 4);
  const authorization = { Authorization: `Bearer ${app.token()}` };
  t.equal((await app.request({ path: '/slow', headers: authorization })).status, 503);
  gate.open();
  await until('all places are free', async () => (await inFlight(app)) === 0);
  t.equal((await app.request({ path: '/slow', headers: authorization })).status, 200);
  t.equal(ran, 5);
});

t.test('nor more than the caller may have', async (t) => {
  const gate = createGate();
  let running = 0;
  const app = await openWith(t, { limits: { max_in_flight: 2 } }, (app) => {
    app.get('/slow', reads, async () => {
      running += 1;
      await gate.passed;
      return {};
    });
  });
  for (let i = 0; i < 10; i += 1) await breakOff(app, '/slow');
  t.equal(running, 2);
  t.equal((await app.request({ path: '/slow', headers: { Authorization: `Bearer ${app.token()}` } })).status, 429);
  gate.open();
  await until('all places are free', async () => (await inFlight(app)) === 0);
});

t.test('however a handler ends, its place is given back once, when its caller is gone too', async (t) => {
  const never = new Promise<never>(() => undefined);
  const drip = (): Readable => new Readable({ read: () => undefined });
  const raw = (reply: FastifyReply): void => {
    reply.raw.writeHead(200);
    reply.raw.write('event');
  };
  const later = async (): Promise<void> => delay(30);
  const app = await openWith(t, { listen: { max_in_flight: 100 } }, (app) => {
    app.addHook('preHandler', async (request) => {
      if (request.url === '/hook') {
        await later();
        throw new Error('in a hook');
      }
    });
    const quick = { config: { sallyport: { ...policy, response_timeout: '300ms' } } };
    app.get('/returns', reads, async () => {
      await later();
      return {};
    });
    app.get('/sends', reads, (_request, reply) => void later().then(() => reply.send('sent')));
    app.get('/throws', reads, async () => {
      await later();
      throw new Error('in a handler');
    });
    app.get('/hook', reads, () => ({}));
    app.get('/stream', reads, (_request, reply) => reply.send(drip()));
    app.get('/raw', reads, async (_request, reply) => {
      raw(reply);
      return never;
    });
    app.get('/hijack', reads, (_request, reply) => {
      reply.hijack();
      raw(reply);
    });
    app.get('/hijack-late', quick, async (_request, reply) => {
      await once(reply.raw, 'close');
      reply.hijack();
      reply.raw.end('x');
    });
    app.get('/nothing', quick, async () => later());
    app.get('/never', quick, async () => never);
    app.post('/orders', reserves, async () => {
      await later();
      return {};
    });
    app.post(
      '/parsed',
      { config: { sallyport: { ...writes, idempotency: { mode: 'none', because: 'a test' } } } },
      (_request, reply) => later().then(() => reply.send({})),
    );
  });
  for (const path of ['returns', 'sends', 'throws', 'hook', 'stream', 'raw', 'hijack']) {
    await breakOff(app, `/${path}`);
    await until(`a place of ${path}`, async () => (await inFlight(app)) === 0, 3_000);
    await breakOff(app, `/${path}`, 60);
    await until(`a place of ${path} that was over`, async () => (await inFlight(app)) === 0, 3_000);
  }
  for (const path of ['hijack-late', 'nothing', 'never']) {
    await breakOff(app, `/${path}`);
    t.ok(await inFlight(app), `${path} holds it`);
    await until(`a place of ${path}`, async () => (await inFlight(app)) === 0, 3_000);
  }
  for (const path of ['orders', 'parsed']) {
    await breakOff(app, `/${path}`, 5, 'POST', '{}');
    await until(`a place of ${path}`, async () => (await inFlight(app)) === 0, 3_000);
  }
  const authorization = { Authorization: `Bearer ${app.token()}` };
  for (const path of ['sends', 'throws', 'hook']) await app.request({ path: `/${path}`, headers: authorization });
  t.equal((await app.request({ path: '/missing', headers: authorization })).status, 403);
  await app.app.inject({ url: '/sends', headers: authorization });
  await until('nothing is left', async () => (await inFlight(app)) === 0, 3_000);
});

t.test('a write that shadow mode lets by at its reservation holds its place as well', async (t) => {
  const gate = createGate();
  let running = 0;
  const app = await openWith(
    t,
    {
      mode: 'shadow',
      listen: { max_in_flight: 3 },
      routes: [
        { name: 'orders', methods: ['POST'], path: '/orders', ...writes, idempotency: 'none', single_use: true },
      ],
    },
    (app) => {
      app.post('/orders', async () => {
        running += 1;
        await gate.passed;
        return {};
      });
    },
  );
  const token = app.token({ jti: 'used' });
  const used = { ...app, token: () => token };
  for (let i = 0; i < 10; i += 1) await breakOff(used, '/orders', 20, 'POST', '{}');
  t.equal(running, 3);
  gate.open();
  await until('all places are free', async () => (await inFlight(app)) === 0, 3_000);
});
