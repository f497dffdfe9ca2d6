import { createServer } from 'node:net';
import t, { type Test } from 'tap';
import { localFiles } from '../../../src/adapters/files/files.js';
import { type LoadedKeySet, type LoadLimits, createUrlOrigin } from '../../../src/adapters/jwks/fetch-url.js';
import type { Result } from '../../../src/lib/result.js';
import { startJwksServer, type Behaviour } from '../../support/jwks-server.js';
import { listen } from '../../support/listening.js';
import { until } from '../../support/until.js';

const limits: LoadLimits = { maxBytes: 1024, timeoutMs: 20_000 };

function load(url: string, signal = new AbortController().signal): Promise<Result<LoadedKeySet, string>> {
  return createUrlOrigin(url, { caFile: null, tokenFile: null, files: localFiles }).load(limits, signal);
}

function text(loaded: Result<LoadedKeySet, string>): string {
  return loaded.ok ? Buffer.from(loaded.value.bytes).toString() : `refused: ${loaded.error}`;
}

async function answered(t: Test, behaviour: Behaviour): Promise<string> {
  const server = await startJwksServer(t);
  server.behave(behaviour);
  return text(await load(server.url));
}

t.test('asks plainly: GET, the path and query of the config, nothing of ours', async (t) => {
  const server = await startJwksServer(t);
  let seen: unknown;
  server.behave((req, res) => {
    seen = { method: req.method, url: req.url, ...req.headers };
    res.end('{}');
  });
  t.equal(text(await load(`${server.url}?tenant=a%2Fb`)), '{}');
  t.match(seen, {
    method: 'GET',
    url: '/auth/jwt/jwks.json?tenant=a%2Fb',
    host: `127.0.0.1:${String(server.port)}`,
    accept: 'application/json',
    connection: 'close',
    'accept-encoding': undefined,
    cookie: undefined,
    authorization: undefined,
  });
});

t.test('reads the cache headers', async (t) => {
  const server = await startJwksServer(t);
  const rows: { fields: Record<string, string | string[]>; expected: number | null }[] = [
    { fields: {}, expected: null },
    { fields: { 'cache-control': 'max-age=60, must-revalidate' }, expected: 60_000 },
    { fields: { 'cache-control': 'max-age=60', age: '15' }, expected: 45_000 },
    { fields: { 'cache-control': ['max-age=60', 'no-store'] }, expected: 0 },
    { fields: { date: 'Tue, 15 Nov 1994 08:12:31 GMT', expires: 'Tue, 15 Nov 1994 08:12:41 GMT' }, expected: 10_000 },
  ];
  for (const { fields, expected } of rows) {
    server.behave((_req, res) => res.writeHead(200, fields).end('{}'));
    t.match(await load(server.url), { ok: true, value: { freshnessMs: expected } }, JSON.stringify(fields));
  }
});

t.test('the size is counted while reading', async (t) => {
  const atLimit = 'x'.repeat(limits.maxBytes);
  t.equal(await answered(t, (_req, res) => res.end(atLimit)), atLimit, 'at the limit');
  t.equal(
    await answered(t, (_req, res) => res.end(`${atLimit}x`)),
    'refused: the response is larger than 1024 bytes',
    'above it',
  );
  t.equal(
    await answered(t, (_req, res) => {
      res.write(atLimit);
      res.end('x');
    }),
    'refused: the response is larger than 1024 bytes',
    'without a length',
  );
  let closed = false;
  const endless = await answered(t, (_req, res) => {
    const more = (): void => {
      while (!closed && res.write(atLimit));
    };
    res.on('drain', more).on('close', () => {
      closed = true;
    });
    more();
  });
  t.equal(endless, 'refused: the response is larger than 1024 bytes', 'without an end');
  await until('the connection is closed', () => closed);
});

t.test('a response that is no key set of the source is refused', async (t) => {
  const rows: { name: string; behaviour: Behaviour; error: RegExp }[] = [
    {
      name: 'not found',
      behaviour: (_req, res) => res.writeHead(404).end('{"keys":[]}'),
      error: /^refused: the response has status 404$/,
    },
    { name: 'an error', behaviour: (_req, res) => res.writeHead(500).end(), error: /status 500/ },
    { name: 'no content', behaviour: (_req, res) => res.writeHead(204).end(), error: /status 204/ },
    { name: 'not modified', behaviour: (_req, res) => res.writeHead(304).end(), error: /status 304/ },
    {
      name: 'compressed',
      behaviour: (_req, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
      error: /compressed/,
    },
    {
      name: 'cut off',
      behaviour: (_req, res) => {
        res.writeHead(200, { 'content-length': '100' });
        res.write('{"keys":[', () => res.destroy());
      },
      error: /broke|length/,
    },
    { name: 'closed without an answer', behaviour: (req) => req.socket.destroy(), error: /broke/ },
    {
      name: 'a huge header',
      behaviour: (_req, res) => res.writeHead(200, { x: 'y'.repeat(20_000) }).end('{}'),
      error: /header of the response/,
    },
  ];
  for (const { name, behaviour, error } of rows) t.match(await answered(t, behaviour), error, name);
});

t.test('what is not there, or does not speak HTTP', async (t) => {
  const gone = await startJwksServer(t);
  await gone.close();
  t.match(text(await load(gone.url)), /^refused: the connection was refused \(ECONNREFUSED\)$/);
  const other = createServer((socket) => socket.end('+OK secret-banner\r\n'));
  const { port } = await listen(t, other);
  const answer = text(await load(`http://127.0.0.1:${String(port)}/`));
  t.match(answer, /^refused: the response is not HTTP \(/);
  t.notMatch(answer, /secret/, 'what was received is not repeated');
});

t.test('redirects stay on the host', async (t) => {
  const other = await startJwksServer(t);
  const rows: { name: string; hops: readonly string[]; expected: RegExp }[] = [
    { name: 'none', hops: [], expected: /"keys"/ },
    { name: 'a path', hops: ['/b'], expected: /"keys"/ },
    { name: 'a relative path', hops: ['b?x=1'], expected: /"keys"/ },
    { name: 'three', hops: ['/b', '/c', '/d'], expected: /"keys"/ },
    { name: 'four', hops: ['/b', '/c', '/d', '/e'], expected: /more than 3 redirects/ },
    { name: 'another port', hops: [other.url], expected: /another host/ },
    {
      name: 'another name of the same host',
      hops: [other.url.replace('127.0.0.1', 'localhost')],
      expected: /another host/,
    },
    { name: 'another host without a scheme', hops: ['//evil.example/jwks'], expected: /another host/ },
    { name: 'another host after a good one', hops: ['/b', 'http://evil.example/'], expected: /another host/ },
    { name: 'a file', hops: ['file:///etc/passwd'], expected: /another scheme/ },
    { name: 'data', hops: ['data:application/json,{}'], expected: /another scheme/ },
    { name: 'no URL', hops: ['http://['], expected: /without a usable Location/ },
  ];
  for (const { name, hops, expected } of rows) {
    const server = await startJwksServer(t);
    const left = [...hops];
    server.behave((_req, res) => {
      const location = left.shift();
      if (location === undefined) return res.end('{"keys":[]}');
      return res.writeHead(302, { location }).end('<a>moved</a>');
    });
    t.match(text(await load(server.url)), expected, name);
    await server.close();
  }
  t.equal(other.hits(), 0, 'nobody else was asked');
});

t.test('a redirect that says nowhere, or says it twice', async (t) => {
  for (const status of [301, 302, 303, 307, 308]) {
    t.match(await answered(t, (_req, res) => res.writeHead(status).end()), /without a usable Location/, String(status));
  }
  t.match(
    await answered(t, (_req, res) =>
      res
        .writeHead(
          302,
          [
            ['location', '/a'],
            ['location', '/b'],
          ].flat(),
        )
        .end(),
    ),
    /without a usable Location/,
  );
});

t.test('the whole attempt ends when it is called off', async (t) => {
  const rows: { name: string; behaviour: Behaviour }[] = [
    { name: 'before the head', behaviour: () => undefined },
    { name: 'within the body', behaviour: (_req, res) => res.write('{"keys":[') },
    {
      name: 'after a redirect',
      behaviour: (req, res) => (req.url === '/b' ? undefined : res.writeHead(302, { location: '/b' }).end()),
    },
  ];
  for (const { name, behaviour } of rows) {
    const server = await startJwksServer(t);
    let closed = false;
    let asked = false;
    server.behave((req, res) => {
      if (name !== 'after a redirect' || req.url === '/b') {
        asked = true;
        res.on('close', () => {
          closed = true;
        });
      }
      behaviour(req, res);
    });
    const controller = new AbortController();
    const loading = load(server.url, controller.signal);
    await until('the source is asked', () => asked);
    controller.abort();
    t.match(text(await loading), /^refused: /, name);
    await until('the connection is closed', () => closed);
  }
});

t.test('a proxy in the environment is not used', async (t) => {
  const server = await startJwksServer(t);
  process.env['HTTP_PROXY'] = 'http://127.0.0.1:9';
  t.teardown(() => {
    delete process.env['HTTP_PROXY'];
  });
  t.match(text(await load(server.url)), /"keys"/);
});
