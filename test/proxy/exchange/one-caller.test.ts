/** What one caller, or everybody without a credential together, can hold of what all share. */
import t, { type Test } from 'tap';
import { connectRaw, request, type RawConnection } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy, type Harness } from '../harness.js';

const open = { name: 'open', methods: ['GET', 'POST'], path: '/open', access: 'public', idempotency: 'none' };
const routes = [
  {
    name: 'any',
    methods: ['GET', 'POST'],
    path: '/**',
    subjects: ['checkout', 'other'],
    permissions: [],
    idempotency: 'none',
    max_body: '1GiB',
  },
  open,
];

/** Begins so many requests, each on a connection of its own. */
async function begin(
  t: Test,
  proxy: Harness,
  count: number,
  bytes: string | Buffer,
): Promise<readonly RawConnection[]> {
  const before = proxy.server.counts().inFlight;
  const begun = await Promise.all(Array.from({ length: count }, async () => connectRaw(proxy.port)));
  for (const connection of begun) {
    t.teardown(connection.end);
    connection.write(bytes);
  }
  await until('they are under way', () => proxy.server.counts().inFlight === before + count);
  return begun;
}

async function othersAreServed(t: Test, proxy: Harness, name: string): Promise<void> {
  const other = proxy.authorization({ sub: 'other' });
  for (const input of [
    { path: '/a', headers: other },
    { method: 'POST', path: '/a', headers: other, body: 'x'.repeat(200_000) },
  ]) {
    t.equal((await request(proxy.port, input)).status, 200, `${name}: another caller's ${input.method ?? 'GET'}`);
  }
}

const upload = (path: string, bearer: string, body: string, length = 1_000_000): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\n${bearer}Content-Length: ${String(length)}\r\n\r\n${body}`;

t.test('128 uploads of which hardly anything comes keep nobody from being served', async (t) => {
  for (const count of [128, 384]) {
    const proxy = await startProxy(t, { config: { routes, upstream: { connect_timeout: '20s' } } });
    const uploads = await begin(t, proxy, count, upload('/upload', proxy.bearer(), 'x', 1_000));
    t.ok(proxy.activeConfig().upstream.counts().active <= 32, 'connections of uploads that are not there');
    await othersAreServed(t, proxy, `${String(count)} uploads`);
    t.equal((await request(proxy.port, { path: '/open' })).status, 200, 'without a credential');
    if (count === 128) {
      const own = { method: 'POST', path: '/a', headers: proxy.authorization(), body: 'x' };
      t.equal((await request(proxy.port, own)).status, 200, 'an upload of its own that is there');
    }
    for (const { write } of uploads) write('x'.repeat(999));
    for (const { readResponse } of uploads) {
      t.equal((await readResponse())?.status, 200, 'and each goes on when the rest comes');
    }
    t.same(proxy.activeConfig().upstream.counts(), { active: 0, waiting: 0 });
  }
});

t.test(
  'uploads that stop after their first 64 KiB, and answers that do not come, leave connections to others',
  async (t) => {
    const proxy = await startProxy(t, { config: { routes, upstream: { connect_timeout: '2s' } } });
    const large = 'x'.repeat(70_000);
    proxy.receiver.behave((req, res) => {
      if (req.url === '/slow' || req.url === '/open') return;
      req.resume().on('end', () => res.end('ok'));
    });
    const cases: readonly {
      readonly name: string;
      readonly path: string;
      readonly bytes: string;
      readonly most: number;
    }[] = [
      { name: 'uploads', path: '/upload', bytes: upload('/upload', proxy.bearer(), large), most: 112 },
      { name: 'answers', path: '/slow', bytes: `GET /slow HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`, most: 112 },
      { name: 'uploads of strangers', path: '/open', bytes: upload('/open', '', large), most: 96 },
      { name: 'answers for strangers', path: '/open', bytes: 'GET /open HTTP/1.1\r\nHost: a\r\n\r\n', most: 96 },
    ];
    for (const { name, path, bytes, most } of cases) {
      const held = await begin(t, proxy, 128, bytes);
      await until('all that may have a connection do', () => proxy.activeConfig().upstream.counts().active === most);
      await othersAreServed(t, proxy, name);
      for (const { end } of held) end();
      await until(
        `nothing of ${path} is left`,
        () => proxy.server.counts().inFlight === 0 && proxy.activeConfig().upstream.counts().active === 0,
      );
    }
  },
);

t.test('one caller holds no more than seven eighths of max_in_flight', async (t) => {
  const proxy = await startProxy(t, {
    config: { routes, listen: { max_in_flight: 40 }, upstream: { max_connections: 200 } },
  });
  proxy.receiver.behave((req, res) => {
    if (req.url !== '/slow') res.end('ok');
  });
  const get = `GET /slow HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`;
  await begin(t, proxy, 35, get);
  t.equal(
    (await request(proxy.port, { path: '/a', headers: proxy.authorization() })).status,
    503,
    'the 36th of one caller',
  );
  t.equal((await request(proxy.port, { path: '/a', headers: proxy.authorization({ sub: 'other' }) })).status, 200);
  t.equal((await request(proxy.port, { path: '/open' })).status, 200);
});
