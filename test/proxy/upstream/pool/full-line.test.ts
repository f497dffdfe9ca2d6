import type { ServerResponse } from 'node:http';
import t from 'tap';
import { connectRaw, request } from '../../../support/raw-client.js';
import { until } from '../../../support/until.js';
import { startProxy } from '../../harness.js';

const routes = [
  { name: 'any', methods: ['GET', 'POST'], path: '/**', subjects: ['checkout'], permissions: [], idempotency: 'none' },
];

t.test('no more connections to the upstream than max_connections, and the rest wait in order', async (t) => {
  const proxy = await startProxy(t, { config: { routes, upstream: { max_connections: 2, connect_timeout: '20s' } } });
  const held: ServerResponse[] = [];
  let most = 0;
  proxy.receiver.behave((_req, res) => {
    most = Math.max(most, proxy.receiver.open());
    held.push(res);
  });
  const callers = [];
  for (let i = 0; i < 6; i++) {
    const caller = await connectRaw(proxy.port);
    t.teardown(caller.end);
    caller.write(`GET /${String(i)} HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
    await until('it has its place', () => proxy.server.counts().inFlight === i + 1);
    callers.push(caller);
  }
  t.same(proxy.activeConfig().upstream.counts(), { active: 2, waiting: 4 });
  for (let i = 0; i < 6; i++) {
    await until('it is with the receiver', () => held.length > i);
    held[i]?.end(String(i));
    t.equal((await callers[i]?.readResponse())?.text, String(i));
  }
  t.same(
    proxy.receiver.requests.map(({ target }) => target),
    ['/0', '/1', '/2', '/3', '/4', '/5'],
  );
  t.equal(most, 2);
  t.same(proxy.activeConfig().upstream.counts(), { active: 0, waiting: 0 });
});

t.test('who waits longer than connecting may take is told that there is too much to do', async (t) => {
  const proxy = await startProxy(t, { config: { routes, upstream: { max_connections: 1, connect_timeout: '500ms' } } });
  proxy.receiver.behave(() => undefined);
  const first = await connectRaw(proxy.port);
  t.teardown(first.end);
  first.write(`GET /first HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  await until('the first is with the receiver', () => proxy.receiver.requests.length === 1);
  for (const method of ['GET', 'POST']) {
    const body = method === 'POST' ? { body: 'hello' } : {};
    const response = await request(proxy.port, {
      method,
      path: '/second',
      headers: { ...proxy.authorization(), 'X-Request-Id': method },
      ...body,
    });
    t.equal(response.status, 503);
    t.match(response.text, 'urn:sallyport:overloaded');
    t.match(await proxy.recordOf(method), { decision: 'failed', reason: 'overloaded', upstream_ms: null });
  }
  t.equal(proxy.receiver.requests.length, 1, 'who was told so was not sent on');
  t.same(proxy.activeConfig().upstream.counts(), { active: 1, waiting: 0 });
});

t.test('a caller that leaves while it waits is taken out of the line', async (t) => {
  const proxy = await startProxy(t, { config: { routes, upstream: { max_connections: 1, connect_timeout: '20s' } } });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const first = await connectRaw(proxy.port);
  const second = await connectRaw(proxy.port);
  const third = await connectRaw(proxy.port);
  t.teardown(first.end);
  t.teardown(third.end);
  for (const [index, caller] of [first, second, third].entries()) {
    caller.write(`POST /${String(index + 1)} HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 2\r\n\r\nhi`);
    await until('it has its place', () => proxy.server.counts().inFlight === index + 1);
  }
  second.end();
  await until('it is out of the line', () => proxy.activeConfig().upstream.counts().waiting === 1);
  await until('the first is with the receiver', () => held.length === 1);
  held[0]?.end('one');
  t.equal((await first.readResponse())?.text, 'one');
  await until('the third follows', () => held.length === 2);
  held[1]?.end('three');
  t.equal((await third.readResponse())?.text, 'three');
  t.same(
    proxy.receiver.requests.map(({ target }) => target),
    ['/1', '/3'],
  );
});

t.test('a connection that failed makes room for the next in line', async (t) => {
  const proxy = await startProxy(t, { config: { routes, upstream: { max_connections: 1, connect_timeout: '20s' } } });
  proxy.receiver.behave((req) => {
    req.socket.destroy();
  });
  const responses = await Promise.all(
    Array.from({ length: 20 }, async () => request(proxy.port, { path: '/a', headers: proxy.authorization() })),
  );
  t.same(
    responses.map(({ status }) => status),
    Array(20).fill(502),
  );
  t.same(proxy.activeConfig().upstream.counts(), { active: 0, waiting: 0 });
});

t.test(
  'public routes leave connections to callers with a credential, and one caller to others, and both wait for theirs',
  async (t) => {
    const open = { name: 'open', methods: ['POST'], path: '/open/{id}', access: 'public', idempotency: 'none' };
    const any = {
      name: 'any',
      methods: ['GET', 'POST'],
      path: '/**',
      subjects: ['checkout', 'other'],
      permissions: [],
      idempotency: 'none',
    };
    const cases = [
      { connections: 1, open: 1, own: 1 },
      { connections: 2, open: 2, own: 2 },
      { connections: 3, open: 3, own: 3 },
      { connections: 4, open: 3, own: 3 },
      { connections: 8, open: 6, own: 7 },
    ];
    for (const { connections, open: ofAll, own } of cases) {
      for (const [path, share] of [
        ['/open', ofAll],
        ['/own', own],
      ] as const) {
        const proxy = await startProxy(t, {
          config: { routes: [any, open], upstream: { max_connections: connections, connect_timeout: '20s' } },
        });
        const held: ServerResponse[] = [];
        proxy.receiver.behave((req, res) => {
          if (req.method === 'GET') res.end('ok');
          else held.push(res);
        });
        const bearer = path === '/open' ? '' : proxy.bearer();
        const callers = [];
        for (let i = 0; i < 10; i++) {
          const caller = await connectRaw(proxy.port);
          t.teardown(caller.end);
          caller.write(`POST ${path}/${String(i)} HTTP/1.1\r\nHost: a\r\n${bearer}Content-Length: 5\r\n\r\nhello`);
          await until('it has its place', () => proxy.server.counts().inFlight === i + 1);
          callers.push(caller);
        }
        const name = `${String(connections)} connections, ${path}`;
        await until(name, () => held.length === share);
        t.same(proxy.activeConfig().upstream.counts(), { active: share, waiting: 10 - share }, name);
        if (share < connections) {
          t.equal(
            (await request(proxy.port, { path: '/a', headers: proxy.authorization({ sub: 'other' }) })).status,
            200,
            name,
          );
        }
        for (let i = 0; i < 10; i++) (await until('it is with the receiver', () => held[i])).end('ok');
        for (const caller of callers) t.equal((await caller.readResponse())?.status, 200);
        t.same(proxy.activeConfig().upstream.counts(), { active: 0, waiting: 0 });
        const inOrder = proxy.receiver.requests.map(({ target }) => target).filter((target) => target !== '/a');
        t.same(
          inOrder.slice(share),
          Array.from({ length: 10 - share }, (_, i) => `${path}/${String(share + i)}`),
        );
      }
    }
  },
);
