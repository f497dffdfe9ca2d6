/** `max_in_flight` in an application: a place is held for as long as a handler runs, and never longer than that. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import httpProxy from '@fastify/http-proxy';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import t from 'tap';
import { listen } from '../support/listening.js';
import type { ConfigTree } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { until } from '../support/until.js';
import { connectRaw } from '../support/raw-client.js';
import { openApp, type OpenApp } from './open-app.js';
import { createGate, reserves, writes } from './writes-app.js';

const policy = { subjects: ['checkout'], permissions: ['orders:read'] };
const reads = { config: { sallyport: policy } };

interface CountingApp extends OpenApp {
  /** Requests that came as far as their handler, or were refused. */
  readonly decided: () => number;
}

async function openWith(t: Scope, config: ConfigTree, routes: (app: FastifyInstance) => unknown): Promise<CountingApp> {
  const decided = new Set<FastifyRequest>();
  const count = (request: FastifyRequest): void => void decided.add(request);
  const opened = await openApp(t, {
    config: { store: { memory: {} }, routes: undefined, ...config },
    before: (app) =>
      app.addHook('onSend', (request, _reply, _payload, next) => {
        count(request);
        next();
      }),
    routes: async (app) => {
      app.addHook('preHandler', (request, _reply, next) => {
        count(request);
        next();
      });
      await routes(app);
    },
  });
  return { ...opened, decided: () => decided.size };
}

/** Sends requests, and breaks off so long after all are decided on. */
async function breakOff(
  { app, port, token, decided }: Pick<CountingApp, 'app' | 'port' | 'token' | 'decided'>,
  path: string,
  { afterMs = 0, method = 'GET', body = '', count = 1 } = {},
): Promise<void> {
  const connections = promisify(app.server.getConnections.bind(app.server));
  const [open, expected] = [await connections(), decided() + count];
  const callers = await Promise.all(Array.from({ length: count }, async () => connectRaw(port)));
  for (const caller of callers) {
    caller.write(
      `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token()}\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`,
    );
  }
  await until('they are decided on', () => decided() === expected);
  await delay(afterMs);
  for (const { socket } of callers) socket.resetAndDestroy();
  await until('the connections are closed', async () => (await connections()) <= open);
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
  for (let i = 0; i < 6; i += 1) await breakOff(app, '/slow', { count: 4 });
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
    const quick = { config: { sallyport: { ...policy, response_timeout: '2s' } } };
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
    app.get('/hijack-unwritten', quick, (_request, reply) => {
      reply.hijack();
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
    await breakOff(app, `/${path}`, { afterMs: 60 });
    await until(`a place of ${path} that was over`, async () => (await inFlight(app)) === 0, 3_000);
  }
  for (const path of ['hijack-late', 'hijack-unwritten', 'nothing', 'never']) {
    await breakOff(app, `/${path}`);
    t.ok(await inFlight(app), `${path} holds it`);
    await until(`a place of ${path}`, async () => (await inFlight(app)) === 0, 3_000);
  }
  for (const path of ['orders', 'parsed']) {
    await breakOff(app, `/${path}`, { method: 'POST', body: '{}' });
    await until(`a place of ${path}`, async () => (await inFlight(app)) === 0, 3_000);
  }
  const authorization = { Authorization: `Bearer ${app.token()}` };
  for (const path of ['sends', 'throws', 'hook']) await app.request({ path: `/${path}`, headers: authorization });
  t.equal((await app.request({ path: '/missing', headers: authorization })).status, 403);
  await app.app.inject({ url: '/sends', headers: authorization });
  await until('nothing is left', async () => (await inFlight(app)) === 0, 3_000);
});

t.test('@fastify/http-proxy holds a place for as long as its upstream is asked', async (t) => {
  const gate = createGate();
  let asked = 0;
  const upstream = createServer((_req, res) => {
    asked += 1;
    void gate.passed.then(() => res.setHeader('X-From', 'upstream').end('answered'));
  });
  const { port } = await listen(t, upstream);
  const app = await openWith(
    t,
    { listen: { max_in_flight: 3 }, routes: [{ name: 'all', methods: ['GET'], path: '/**', ...policy }] },
    async (app) => {
      const rewriteHeaders = (): Record<string, string> => ({ 'x-rewritten': 'yes' });
      const httpMethods = ['GET'];
      const upstream = `http://127.0.0.1:${String(port)}`;
      const preHandler = (_request: FastifyRequest, reply: FastifyReply): void => void reply.from();
      await app.register(httpProxy, { upstream, prefix: '/plain', httpMethods });
      await app.register(httpProxy, { upstream, prefix: '/rewritten', httpMethods, replyOptions: { rewriteHeaders } });
      await app.register(httpProxy, { upstream, prefix: '/from', httpMethods, preHandler });
    },
  );
  const authorization = { Authorization: `Bearer ${app.token()}` };
  for (const path of ['/plain/a', '/rewritten/a', '/from/a']) await breakOff(app, path);
  await until('all are asked', () => asked === 3);
  await delay(50);
  t.equal(await inFlight(app), 3);
  t.equal((await app.request({ path: '/plain/a', headers: authorization })).status, 503);
  gate.open();
  await until('all places are free', async () => (await inFlight(app)) === 0, 3_000);
  const answers = await Promise.all(
    ['/plain/a', '/rewritten/a', '/from/a'].map(async (path) => app.request({ path, headers: authorization })),
  );
  t.same(
    answers.map(({ status, text, field }) => [status, text, field('x-from'), field('x-rewritten')]),
    [
      [200, 'answered', 'upstream', null],
      [200, 'answered', null, 'yes'],
      [200, 'answered', 'upstream', null],
    ],
  );
});

t.test('the time for it runs from when the handler began', async (t) => {
  const quick = { config: { sallyport: { ...policy, response_timeout: '1s' } } };
  const app = await openWith(t, { listen: { max_in_flight: 3 } }, (app) => {
    app.get('/never', quick, async () => new Promise<never>(() => undefined));
  });
  await breakOff(app, '/never', { afterMs: 1_100 });
  await until('the place is free', async () => (await inFlight(app)) === 0, 500);
  await breakOff(app, '/never');
  t.equal(await inFlight(app), 1);
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
  for (let i = 0; i < 10; i += 1) await breakOff(used, '/orders', { method: 'POST', body: '{}' });
  t.equal(running, 3);
  gate.open();
  await until('all places are free', async () => (await inFlight(app)) === 0, 3_000);
});
