import type { ServerResponse } from 'node:http';
import t from 'tap';
import { connectRaw, request } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { startProxy } from './harness.js';

const routes = [{ name: 'any', methods: ['GET', 'POST'], path: '/**', subjects: ['checkout'], permissions: [], idempotency: 'none' }];

t.test('no more connections to the receiver than max_connections, and the rest wait in order', async (t) => {
  const proxy = await startProxy(t, { config: { routes, upstream: { max_connections: 2, connect_timeout: '20s' } } });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const callers = [];
  for (let i = 0; i < 6; i++) {
    const caller = await connectRaw(proxy.port);
    t.teardown(caller.end);
    caller.write(`GET /${String(i)} HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
    await until('it has its place', () => proxy.server.counts().inFlight === i + 1);
    callers.push(caller);
  }
  t.same(proxy.inForce().upstream.counts(), { active: 2, waiting: 4 });
  for (let i = 0; i < 6; i++) {
    await until('it is with the receiver', () => held.length > i);
    held[i]?.end(String(i));
    t.equal((await callers[i]?.readResponse())?.text, String(i));
  }
  t.same(proxy.receiver.requests.map(({ target }) => target), ['/0', '/1', '/2', '/3', '/4', '/5']);
  t.ok(proxy.receiver.connections() <= 2);
  t.same(proxy.inForce().upstream.counts(), { active: 0, waiting: 0 });
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
    const response = await request(proxy.port, { method, path: '/second', headers: { ...proxy.authorization(), 'X-Request-Id': method }, ...body });
    t.equal(response.status, 503);
    t.match(response.text, 'urn:sallyport:overloaded');
    t.match(await proxy.recordOf(method), { decision: 'failed', reason: 'overloaded', upstream_ms: null });
  }
  t.equal(proxy.receiver.requests.length, 1, 'who was told so was not sent on');
  t.same(proxy.inForce().upstream.counts(), { active: 1, waiting: 0 });
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
  await until('it is out of the line', () => proxy.inForce().upstream.counts().waiting === 1);
  await until('the first is with the receiver', () => held.length === 1);
  held[0]?.end('one');
  t.equal((await first.readResponse())?.text, 'one');
  await until('the third follows', () => held.length === 2);
  held[1]?.end('three');
  t.equal((await third.readResponse())?.text, 'three');
  t.same(proxy.receiver.requests.map(({ target }) => target), ['/1', '/3']);
});

t.test('a connection that failed makes room for the next in line', async (t) => {
  const proxy = await startProxy(t, { config: { routes, upstream: { max_connections: 1, connect_timeout: '20s' } } });
  proxy.receiver.behave((req) => {
    req.socket.destroy();
  });
  const responses = await Promise.all(Array.from({ length: 20 }, async () => request(proxy.port, { path: '/a', headers: proxy.authorization() })));
  t.same(responses.map(({ status }) => status), Array(20).fill(502));
  t.same(proxy.inForce().upstream.counts(), { active: 0, waiting: 0 });
});

t.test('public routes leave connections to callers with a credential, and wait for theirs', async (t) => {
  const open = { name: 'open', methods: ['POST'], path: '/open/{id}', access: 'public', idempotency: 'none' };
  const cases = [
    { connections: 1, public: 1 }, { connections: 2, public: 2 }, { connections: 3, public: 3 }, { connections: 4, public: 3 }, { connections: 8, public: 6 },
  ];
  for (const { connections, public: share } of cases) {
    const proxy = await startProxy(t, { config: { routes: [...routes, open], upstream: { max_connections: connections, connect_timeout: '20s' } } });
    const uploads = [];
    for (let i = 0; i < 10; i++) {
      const upload = await connectRaw(proxy.port);
      t.teardown(upload.end);
      upload.write(`POST /open/${String(i)} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell`);
      await until('it has its place', () => proxy.server.counts().inFlight === i + 1);
      uploads.push(upload);
    }
    t.same(proxy.inForce().upstream.counts(), { active: share, waiting: 10 - share }, `${String(connections)} connections`);
    if (share < connections) t.equal((await request(proxy.port, { path: '/a', headers: proxy.authorization() })).status, 200);
    for (const upload of uploads) upload.write('o');
    for (const upload of uploads) t.equal((await upload.readResponse())?.status, 200);
    t.same(proxy.inForce().upstream.counts(), { active: 0, waiting: 0 });
    const inOrder = proxy.receiver.requests.map(({ target }) => target).filter((target) => target !== '/a');
    t.same(inOrder.slice(share), Array.from({ length: 10 - share }, (_, i) => `/open/${String(share + i)}`));
  }
});
