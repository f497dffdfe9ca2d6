import t from 'tap';
import { connectRaw, request } from '../../../support/raw-client.js';
import { until } from '../../../support/until.js';
import { startProxy } from '../../harness.js';
import { poison, poisons } from '../poison.js';
import { okResponse, startRawUpstream } from '../raw-upstream.js';
import { rest } from '../upstream-harness.js';

const routes = [
  {
    name: 'any',
    methods: ['GET', 'POST', 'HEAD', 'DELETE'],
    path: '/**',
    subjects: ['checkout'],
    permissions: [],
    idempotency: 'none',
  },
];

t.test('one connection to the upstream serves many callers, one after another', async (t) => {
  for (const config of [{ upstream: { reuse: 'always' } }, { receiver: { reads_bodies: true } }]) {
    const proxy = await startProxy(t, { config: { routes, ...config } });
    for (let i = 0; i < 20; i++) {
      const method = i % 2 === 0 ? 'GET' : 'POST';
      t.equal(
        (
          await request(proxy.port, {
            method,
            path: '/a',
            headers: proxy.authorization(),
            ...(i % 2 === 0 ? {} : { body: 'x' }),
          })
        ).status,
        200,
      );
      if ('receiver' in config) await rest();
    }
    t.equal(proxy.receiver.connections(), 1, JSON.stringify(config));
  }
});

t.test('nothing is sent twice when the upstream closes idle connections under our hands', async (t) => {
  for (const closesAfterMs of [0, 1, null]) {
    const upstream = await startRawUpstream(t, (socket) => {
      socket.write(okResponse('ok'));
      if (closesAfterMs === null) setImmediate(() => socket.end());
      else setTimeout(() => socket.end(), closesAfterMs);
    });
    const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
    const caller = await connectRaw(proxy.port);
    t.teardown(caller.end);
    const statuses = new Map<number, number>();
    const rounds = 60;
    for (let i = 0; i < rounds; i++) {
      const body = i % 3 === 0 ? '' : 'hello';
      caller.write(
        `POST /${String(i)} HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: ${String(body.length)}\r\n\r\n${body}`,
      );
      const status = (await caller.readResponse())?.status ?? 0;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (i % 4 === 0) await new Promise((resolve) => setTimeout(resolve, i % 3));
    }
    const lines =
      upstream
        .received()
        .join('')
        .match(/^POST \S+/gm) ?? [];
    t.equal(new Set(lines).size, lines.length, 'no request came twice');
    t.ok(
      [...statuses.keys()].every((status) => status === 200 || status === 502 || status === 503),
      [...statuses].join(' '),
    );
    t.ok((statuses.get(200) ?? 0) > rounds / 2, 'and most were served');
    const unanswered = rounds - (statuses.get(503) ?? 0);
    t.ok(lines.length <= unanswered, '503 says that nothing was sent');
  }
});

t.test('a connection that was closed while idle is replaced without the caller noticing', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write(okResponse('ok'));
    socket.end();
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  for (let i = 1; i <= 5; i++) {
    const response = await request(proxy.port, {
      method: 'POST',
      path: '/a',
      headers: proxy.authorization(),
      body: 'x',
    });
    t.equal(response.status, 200);
    await until('the connection is closed', () => upstream.open() === 0);
    t.equal(upstream.connections(), i);
  }
});

t.test('a response that nobody asked for reaches no caller', async (t) => {
  for (const way of poisons) {
    const { served, mistaken, other } = await poison(t, way, 30);
    t.same({ mistaken, other }, { mistaken: 0, other: 0 }, way.name);
    t.ok(served > 15, `${way.name}: ${String(served)} of 30 served`);
  }
});

t.test("the upstream's own Keep-Alive time-out is kept to", async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  proxy.receiver.behave((_req, res) => {
    res.writeHead(200, { 'Keep-Alive': 'timeout=2', 'Content-Length': 2 });
    res.end('ok');
  });
  await request(proxy.port, { path: '/a', headers: proxy.authorization() });
  await until('we closed it first', () => proxy.receiver.open() === 0);
  t.equal((await request(proxy.port, { path: '/a', headers: proxy.authorization() })).status, 200);
  t.equal(proxy.receiver.connections(), 2);
});
