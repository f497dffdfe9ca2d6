/**
 * What the dependencies do that the data path stands on or works around, so that another version of one cannot change
 * it unseen.
 */
import { createServer, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import httpProxy from '@fastify/http-proxy';
import { fastify } from 'fastify';
import t from 'tap';
import { Client } from 'undici';
import { listen } from '../support/listening.js';
import { connectRaw, request } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { startProxy } from '../proxy/harness.js';

const routes = [
  {
    name: 'any',
    methods: ['GET', 'POST'],
    path: '/**',
    subjects: ['checkout'],
    permissions: [],
    max_body: '1MiB',
    idempotency: 'none',
  },
];

t.test('http-proxy leads every request to the handler it is given, in the same turn', async (t) => {
  const seen: string[] = [];
  const app = fastify({
    rewriteUrl: (req) => {
      req.method = 'GET';
      req.headers = {};
      return '/';
    },
  });
  app.addHook('onRequest', (_request, _reply, done) => {
    seen.push('frame');
    done();
  });
  void app.register(httpProxy, {
    upstream: 'http://upstream.invalid',
    routes: ['/'],
    httpMethods: ['GET'],
    handler: (handled, reply) => {
      reply.hijack();
      seen.push(`${handled.raw.method ?? ''} ${handled.raw.url ?? ''}`);
      reply.raw.end('handled');
    },
  });
  await app.ready();
  t.teardown(async () => app.close());
  const server = createServer((req, res) => {
    app.routing(req, res);
    seen.push('after');
  });
  const { port } = await listen(t, server);
  const targets = [
    { method: 'GET', path: '/a' },
    { method: 'DELETE', path: '/%2e%2e' },
    { method: 'PROPFIND', path: '//evil' },
  ];
  for (const { method, path } of targets) {
    const response = await request(port, {
      method,
      path,
      headers: { 'Content-Type': ';;;', 'Content-Length': '1' },
      body: 'x',
    });
    t.same([response.status, response.text], [200, 'handled']);
  }
  t.same(
    seen,
    targets.flatMap(() => ['frame', 'GET /', 'after']),
  );
});

t.test('a number in a JSON body reaches the upstream as it was written', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  for (const body of ['{"n":1.0}', '1e2', '"\\u0041"', '{ "a" : 1 }']) {
    const headers = { ...proxy.authorization(), 'Content-Type': 'application/json; charset=utf-8' };
    await request(proxy.port, { method: 'POST', path: '/a', headers, body });
    t.equal(proxy.receiver.requests.at(-1)?.body.toString(), body);
    t.same(proxy.receiver.requests.at(-1)?.field('content-type'), ['application/json; charset=utf-8']);
  }
});

t.test('the query is sent on as it came', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  for (const query of ['a=1&a=2', 'b&&c', 'x=%41+%2B', '=', '%', 'a[]=1', '?&?']) {
    await request(proxy.port, { path: `/a?${query}`, headers: proxy.authorization() });
    t.equal(proxy.receiver.requests.at(-1)?.target, `/a?${query}`);
  }
});

t.test('a caller that breaks off is recorded once, with the request sent on once', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  proxy.receiver.behave(() => undefined);
  const caller = await connectRaw(proxy.port);
  caller.write(`GET /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  await until('it is with the receiver', () => proxy.receiver.requests.length === 1);
  caller.end();
  await until('it is recorded', () => proxy.records.length > 0);
  await until('the receiver knows', () => proxy.receiver.open() === 0);
  t.equal(proxy.records.length, 1);
  t.equal(proxy.receiver.requests.length, 1);
});

t.test(
  'undici tells when the last byte was sent, and writes nothing of a request whose body fails first',
  async (t) => {
    const whole: boolean[] = [];
    const server = createServer((req, res) => {
      req
        .on('error', () => undefined)
        .on('close', () => whole.push(req.complete))
        .resume();
      req.on('end', () => res.end('ok'));
    });
    const { port } = await listen(t, server);
    const client = new Client(`http://127.0.0.1:${String(port)}`);
    t.teardown(async () => client.destroy());
    const dispatch = async (body: Readable | null): Promise<string[]> =>
      new Promise((resolve) => {
        const events: string[] = [];
        client.dispatch({ method: 'POST', path: '/', body }, new Recorder(events, resolve));
      });
    t.same(await dispatch(null), ['connect', 'sent', 'head 200', 'complete']);
    t.same(await dispatch(Readable.from([Buffer.from('abc')])), ['connect', 'sent', 'head 200', 'complete']);
    const broken = new Readable({ read: () => undefined });
    setImmediate(() => {
      broken.push('abc');
      setImmediate(() => broken.destroy(new Error('broken')));
    });
    t.same(await dispatch(broken), ['connect', 'error']);
    await until('the server knows', () => whole.length === 3);
    t.same(whole, [true, true, false]);
  },
);

/** Writes down what undici calls, in order. */
class Recorder {
  private readonly events: string[];
  private readonly done: (events: string[]) => void;

  constructor(events: string[], done: (events: string[]) => void) {
    this.events = events;
    this.done = done;
  }

  onConnect(): void {
    this.events.push('connect');
  }

  onRequestSent(): void {
    this.events.push('sent');
  }

  onHeaders(status: number): boolean {
    this.events.push(`head ${String(status)}`);
    return true;
  }

  onData(): boolean {
    return true;
  }

  onComplete(): void {
    this.events.push('complete');
    this.done(this.events);
  }

  onError(): void {
    this.events.push('error');
    this.done(this.events);
  }
}

t.test(
  'Node ends a connection after its last response with `destroySoon`, and hands on what follows an ignored upgrade never',
  async (t) => {
    const ended: string[] = [];
    const seen: string[] = [];
    const server = createServer((req: IncomingMessage, res) => {
      const { socket } = req;
      const destroySoon = socket.destroySoon.bind(socket);
      socket.destroySoon = () => {
        ended.push(req.url ?? '');
        destroySoon();
      };
      seen.push(req.url ?? '');
      if (req.url === '/last') res.setHeader('Connection', 'close');
      res.end();
    });
    const { port } = await listen(t, server);
    const caller = await connectRaw(port);
    t.teardown(caller.end);
    caller.write(
      'GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nGET /lost HTTP/1.1\r\nHost: a\r\n\r\n',
    );
    t.equal((await caller.readResponse())?.status, 200);
    t.same(ended, []);
    const other = await connectRaw(port);
    other.write('GET /last HTTP/1.1\r\nHost: a\r\n\r\n');
    await other.closed;
    t.same(ended, ['/last']);
    t.same(seen, ['/upgrade', '/last'], 'if /lost is here, a connection need not be closed after an offer to upgrade');
  },
);

t.test('Node gives no error listener back to a socket that asked for a tunnel', async (t) => {
  const server = createServer();
  const { port } = await listen(t, server);
  const tunnels: number[] = [];
  server.on('connect', (_req: IncomingMessage, socket) => {
    // The test's own listener is one.
    tunnels.push(socket.listenerCount('error'));
    socket.destroy();
  });
  const caller = await connectRaw(port);
  caller.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(caller.socket, 'close');
  t.same(tunnels, [1]);
});
