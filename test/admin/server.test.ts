import t from 'tap';
import { createPageServer, type Page } from '../../src/admin/server.js';
import type { Scope } from '../support/scope.js';
import { connectRaw, request, sendRaw, type RawConnection } from '../support/raw-client.js';
import { until } from '../support/until.js';

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const page = (body: string): Page => ({ status: 200, type: 'text/plain', body });

const maxConnections = 8;

async function start(
  t: Scope,
  checksHost = true,
  pages: Readonly<Record<string, () => Page | Promise<Page>>> = {},
  probes: Readonly<Record<string, () => Promise<Page>>> = {},
): Promise<number> {
  const server = createPageServer({
    listen: { host: '127.0.0.1', port: 0 },
    checksHost,
    maxConnections,
    pages: {
      ...pages,
      '/livez': () => page('alive'),
      '/broken': () => {
        throw new Error('a bug');
      },
    },
    probes,
    log: silent,
  });
  t.teardown(server.close);
  return (await server.listen()).port;
}

t.test('a page answers GET and HEAD', async (t) => {
  const port = await start(t);
  const got = await request(port, { path: '/livez' });
  t.equal(got.status, 200);
  t.equal(got.body.toString(), 'alive');
  t.equal(got.field('cache-control'), 'no-store');
  t.equal(got.field('x-content-type-options'), 'nosniff');
  const head = await request(port, { method: 'HEAD', path: '/livez' });
  t.equal(head.status, 200);
  t.equal(head.field('content-length'), '5');
  t.equal(head.body.length, 0);
  t.equal((await request(port, { path: '/livez?verbose=1' })).status, 200, 'a query changes nothing');
});

t.test('what is no page is refused', async (t) => {
  const port = await start(t);
  const rows: readonly { name: string; method?: string; path: string; status: number }[] = [
    { name: 'another path', path: '/', status: 404 },
    { name: 'a name every object has', path: '/constructor', status: 404 },
    { name: 'a trailing slash', path: '/livez/', status: 404 },
    { name: 'another case', path: '/LIVEZ', status: 404 },
    { name: 'an absolute target', path: 'http://127.0.0.1/livez', status: 404 },
    { name: 'an encoded letter', path: '/live%7a', status: 404 },
    { name: 'a broken encoding', path: '/livez%zz', status: 404 },
    { name: 'a fragment', path: '/livez#a', status: 404 },
    { name: 'parameters of a segment', path: '/livez;a', status: 404 },
    { name: 'POST elsewhere', method: 'POST', path: '/nothing', status: 404 },
    { name: 'OPTIONS', method: 'OPTIONS', path: '/livez', status: 405 },
    { name: 'a method of WebDAV', method: 'PROPFIND', path: '/livez', status: 405 },
    { name: 'POST', method: 'POST', path: '/livez', status: 405 },
    { name: 'DELETE', method: 'DELETE', path: '/livez', status: 405 },
    { name: 'TRACE', method: 'TRACE', path: '/livez', status: 405 },
  ];
  for (const { name, method = 'GET', path, status } of rows) {
    const got = await request(port, { method, path });
    t.equal(got.status, status, name);
    t.equal(got.field('content-type'), 'application/problem+json', name);
    if (status === 405) t.equal(got.field('allow'), 'GET, HEAD', name);
  }
});

t.test('Host is checked', async (t) => {
  const port = await start(t);
  t.equal((await request(port, { path: '/livez', headers: { Host: 'evil.example' } })).status, 421);
  t.equal(
    (await request(port, { path: '/nothing', headers: { Host: 'evil.example' } })).status,
    421,
    'whatever the path',
  );
  t.equal((await request(port, { path: '/livez', headers: { Host: `localhost:${String(port)}` } })).status, 200);
  t.equal(
    (
      await request(port, {
        path: '/livez',
        headers: [
          ['Host', 'localhost'],
          ['Host', 'evil.example'],
        ],
      })
    ).status,
    400,
  );
  const [without] = await sendRaw(port, 'GET /livez HTTP/1.1\r\n\r\n');
  t.equal(without?.status, 400, 'HTTP/1.1 has to name a host');
  const [old] = await sendRaw(port, 'GET /livez HTTP/1.0\r\n\r\n');
  t.equal(old?.status, 400, 'and so has HTTP/1.0 here');
});

t.test('where Host is not checked, monitors may use any name', async (t) => {
  const port = await start(t, false);
  t.equal((await request(port, { path: '/livez', headers: { Host: 'sallyport.default.svc:9902' } })).status, 200);
  const [old] = await sendRaw(port, 'GET /livez HTTP/1.0\r\n\r\n');
  t.equal(old?.status, 200, 'or none, in HTTP/1.0');
  t.equal(
    (
      await request(port, {
        path: '/livez',
        headers: [
          ['Host', 'a'],
          ['Host', 'b'],
        ],
      })
    ).status,
    400,
    'but not two',
  );
});

t.test('a page that fails says nothing of why', async (t) => {
  const port = await start(t);
  const got = await request(port, { path: '/broken' });
  t.equal(got.status, 500);
  t.notMatch(got.body.toString(), /bug/);
});

t.test('garbage and large heads are refused', async (t) => {
  const port = await start(t);
  const [garbage] = await sendRaw(port, 'nonsense\r\n\r\n');
  t.equal(garbage?.status, 400);
  const large = await request(port, { path: '/livez', headers: { 'X-Large': 'x'.repeat(9 * 1024) } });
  t.equal(large.status, 400);
});

t.test('a body is not read, whatever it is said to be', async (t) => {
  const port = await start(t);
  for (const type of ['application/json', 'nonsense', '']) {
    const got = await request(port, { method: 'POST', path: '/livez', headers: { 'Content-Type': type }, body: '{' });
    t.equal(got.status, 405, type);
    t.equal(got.field('connection'), 'close', type);
    t.equal(got.field('content-type'), 'application/problem+json', type);
  }
});

t.test('a probe is forwarded once for each request, whatever it says, and gets nothing of the request', async (t) => {
  for (const status of [200, 401, 503, 504]) {
    const asked: unknown[][] = [];
    const probe = (...given: unknown[]): Promise<Page> => {
      asked.push(given);
      return Promise.resolve({ status, type: 'application/json', body: '{"status":"x"}' });
    };
    const failing = (): Promise<Page> => Promise.reject(new Error('a bug'));
    const port = await start(t, true, {}, { '/app-probe/live': probe, '/app-probe/broken': failing });
    const headers = { Connection: 'X-A', 'X-A': 'b' };
    const got = await request(port, { path: '/app-probe/live?a=/../%zz', headers });
    t.match(
      [got.status, got.field('content-type'), got.field('cache-control'), got.body.toString()],
      [status, 'application/json', 'no-store', '{"status":"x"}'],
    );
    t.equal((await request(port, { method: 'HEAD', path: '/app-probe/live' })).status, status);
    t.same(asked, [[], []]);
    t.equal((await request(port, { method: 'POST', path: '/app-probe/live' })).status, 405);
    t.equal((await request(port, { path: '/app-probe/live/' })).status, 404);
    const broken = await request(port, { path: '/app-probe/broken' });
    t.equal(broken.status, 500);
    t.equal(broken.field('content-type'), 'application/problem+json');
  }
});

t.test('JSON has no charset', async (t) => {
  const body = '{"a":1}';
  const port = await start(t, true, { '/json': () => ({ status: 503, type: 'application/json', body }) });
  const got = await request(port, { path: '/json' });
  t.match([got.status, got.field('content-type'), got.body.toString()], [503, 'application/json', body]);
});

t.test('a body is not read', async (t) => {
  const port = await start(t);
  const got = await request(port, { path: '/livez', body: 'x' });
  t.equal(got.status, 200);
  t.equal(got.field('connection'), 'close');
});

t.test('silent connections do not keep a monitor out: the oldest gives way', async (t) => {
  const port = await start(t);
  const half = 'GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n';
  const crowd: RawConnection[] = [];
  for (let index = 0; index < maxConnections; index += 1) {
    const connection = await connectRaw(port);
    t.teardown(connection.end);
    // Half a request is none.
    if (index % 2 === 0) connection.write(half);
    crowd.push(connection);
  }
  for (let round = 0; round < 3; round += 1) t.equal((await request(port, { path: '/livez' })).status, 200);
  await crowd[0]?.closed;
});

t.test('a connection that is being answered stays while there are silent ones', async (t) => {
  let asked = 0;
  let answer = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const port = await start(t, true, {
    '/slow': async () => {
      asked += 1;
      await gate;
      return page('done');
    },
  });
  const kept = await connectRaw(port);
  t.teardown(kept.end);
  kept.write('GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  t.equal((await kept.readResponse())?.status, 200, 'this one idles');
  const slow = request(port, { path: '/slow' });
  await until('the slow page is asked for', () => asked === 1);
  for (let index = 0; index < 3 * maxConnections; index += 1) t.teardown((await connectRaw(port)).end);
  await kept.closed;
  answer();
  t.equal((await slow).status, 200);
});

t.test('callers that do not read their responses do not keep a monitor out either', async (t) => {
  let asked = 0;
  const port = await start(t, true, {
    '/stuck': () => {
      asked += 1;
      return new Promise<Page>(() => undefined);
    },
  });
  const crowd: RawConnection[] = [];
  for (let index = 0; index < maxConnections; index += 1) {
    const connection = await connectRaw(port);
    t.teardown(connection.end);
    connection.write('GET /stuck HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    crowd.push(connection);
  }
  await until('all of them are being answered', () => asked === maxConnections);
  t.equal((await request(port, { path: '/livez' })).status, 200);
  await crowd[0]?.closed;
  t.equal(crowd.filter((connection) => connection.isClosed()).length, 1, 'one gives way for one');
});

t.test('close ends silent connections', async (t) => {
  const server = createPageServer({
    listen: { host: '127.0.0.1', port: 0 },
    checksHost: true,
    maxConnections,
    pages: {},
    log: silent,
  });
  const { port } = await server.listen();
  const connection = await connectRaw(port);
  await server.close();
  await connection.closed;
  t.pass('closed');
});

t.test('an address that is taken is an error', async (t) => {
  const port = await start(t);
  const second = createPageServer({
    listen: { host: '127.0.0.1', port },
    checksHost: true,
    maxConnections,
    pages: {},
    log: silent,
  });
  await t.rejects(second.listen(), { code: 'EADDRINUSE' });
});
