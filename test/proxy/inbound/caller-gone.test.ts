import type { ServerResponse } from 'node:http';
import t from 'tap';
import { connectRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy, type Harness } from '../harness.js';

const routes = [
  {
    name: 'any',
    methods: ['GET', 'POST'],
    path: '/**',
    subjects: ['checkout'],
    permissions: [],
    max_body: '64MiB',
    idempotency: 'none',
  },
];

async function isQuiet(proxy: Harness): Promise<void> {
  await until('nothing is in flight', () => proxy.server.counts().inFlight === 0);
  await until('no connection is left', () => proxy.server.counts().connections === 0);
  await until('the receiver has none either', () => proxy.receiver.open() === 0);
}

t.test('a caller that leaves cancels its request at the upstream', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const moments = [
    { name: 'while the receiver thinks', head: 'GET /a HTTP/1.1', body: '', answer: () => undefined, status: 0 },
    {
      name: 'after a body, while the receiver thinks',
      head: 'POST /a HTTP/1.1\r\nContent-Length: 2',
      body: 'hi',
      answer: () => undefined,
      status: 0,
    },
    {
      name: 'in the midst of its body',
      head: 'POST /a HTTP/1.1\r\nContent-Length: 9',
      body: 'hi',
      answer: () => undefined,
      status: 0,
    },
    {
      name: 'in the midst of its chunks',
      head: 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked',
      body: '2\r\nhi\r\n',
      answer: () => undefined,
      status: 0,
    },
    {
      name: 'in the midst of the answer',
      head: 'GET /a HTTP/1.1',
      body: '',
      answer: (res: ServerResponse) => res.write('some'),
      status: 200,
    },
  ];
  for (const [index, { name, head, body, answer, status }] of moments.entries()) {
    for (const how of ['closes', 'resets']) {
      const id = `${String(index)}-${how}`;
      const before = proxy.receiver.requests.length;
      let gone = false;
      proxy.receiver.behave((_req, res) => {
        res.on('close', () => {
          gone = !res.writableFinished;
        });
        answer(res);
      });
      const connection = await connectRaw(proxy.port);
      connection.write(`${head}\r\nHost: a\r\nX-Request-Id: ${id}\r\n${proxy.bearer()}\r\n${body}`);
      await until('it is with the receiver', () => proxy.receiver.requests.length === before + 1);
      if (body !== '') {
        await until('so is what there is of the body', () => proxy.receiver.requests[before]?.body.toString() === 'hi');
      }
      if (status > 0) await until('the answer began', () => connection.pending().length > 0);
      if (how === 'closes') connection.end();
      else connection.socket.resetAndDestroy();
      await until(`${name}: the receiver is told`, () => gone);
      const isBroken = name.startsWith('in the midst of its');
      // Whoever ends its side in the midst of a body may still be reading: it is answered.
      const expected =
        isBroken && how === 'closes'
          ? { decision: 'denied', reason: 'body_broken', status: 400 }
          : { decision: 'forwarded', reason: 'caller_gone', status };
      t.match(await proxy.recordOf(id), expected, `${name}, ${how}`);
      if (isBroken) t.equal(proxy.receiver.requests[before]?.complete, false, 'a broken body stays broken');
      await isQuiet(proxy);
    }
  }
  t.equal(proxy.counted.requests.length, 10);
  t.same(
    [proxy.counted.denials, proxy.counted.failures].map((reasons) => new Set(reasons)),
    [new Set(['body_broken']), new Set(['caller_gone'])],
  );
});

t.test('a caller that leaves while keys are looked up is not waited for', async (t) => {
  let answer: (() => void) | null = null;
  const proxy = await startProxy(t, {
    config: { routes },
    find: async (keyId) =>
      new Promise((resolve) => {
        answer = () => {
          resolve({ kind: 'found', key: { keyId, algorithm: 'RS256', key: proxy.key.publicKey } });
        };
      }),
  });
  const connection = await connectRaw(proxy.port);
  connection.write(`GET /a HTTP/1.1\r\nHost: a\r\nX-Request-Id: early\r\n${proxy.bearer()}\r\n`);
  const found = await until('it is being judged', () => answer);
  connection.end();
  await until('it is over', () => proxy.records.length === 1);
  t.match(proxy.records, [{ decision: 'denied', reason: 'caller_gone', status: 0, upstream_ms: null }]);
  found();
  answer = null;
  const next = await connectRaw(proxy.port);
  next.write(`GET /next HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  (await until('the next one is being judged', () => answer))();
  t.equal((await next.readResponse())?.status, 200);
  next.end();
  await until('no connection is left', () => proxy.server.counts().connections === 0);
  t.equal(proxy.records.length, 2, 'each recorded once');
  t.same(
    proxy.receiver.requests.map(({ target }) => target),
    ['/next'],
  );
});

t.test('a thousand callers that leave leave nothing behind', async (t) => {
  const proxy = await startProxy(t, {
    config: { routes, listen: { max_in_flight: 2000 }, upstream: { max_connections: 50, connect_timeout: '20s' } },
  });
  proxy.receiver.behave(() => undefined);
  for (let round = 0; round < 10; round++) {
    const connections = await Promise.all(Array.from({ length: 100 }, async () => connectRaw(proxy.port)));
    for (const connection of connections) connection.write(`GET /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
    await until('all are under way', () => proxy.server.counts().inFlight === 100);
    for (const connection of connections) connection.end();
    await until('none is', () => proxy.server.counts().inFlight === 0);
  }
  await isQuiet(proxy);
  t.same(proxy.activeConfig().upstream.counts(), { active: 0, waiting: 0 });
  t.equal(proxy.records.length, 1000);
  proxy.receiver.behave(null);
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(`GET /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  t.equal((await connection.readResponse())?.status, 200);
});
