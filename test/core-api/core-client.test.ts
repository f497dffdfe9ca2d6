import type { LookupAddress } from 'node:dns';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import t from 'tap';
import {
  createCoreClient,
  type CoreClient,
  type CoreClientOptions,
  type CoreFailure,
} from '../../src/core-api/core-client.js';
import type { Lookup } from '../../src/core-api/pinned-connector.js';
import { certificates } from '../support/certificates.js';
import { startFakeCore } from '../support/fake-core.js';
import { listen } from '../support/listening.js';
import { until } from '../support/until.js';

const key = 'k3y-of-twenty-and-more-characters';
const headers = [{ name: 'api-key', value: key }];
type Scope = Parameters<typeof listen>[0];

function client(t: Scope, baseUrl: string, options: Partial<CoreClientOptions> = {}): CoreClient {
  const made = createCoreClient({
    baseUrl,
    headers,
    ca: null,
    rules: { allowHttp: false, allowPublic: false },
    ...options,
  });
  t.teardown(() => made.close());
  return made;
}

async function failure(client: CoreClient): Promise<CoreFailure> {
  const answer = await client.call({ method: 'POST', path: '/recipe/jwt', body: {} });
  if (answer.ok) throw new Error(`answered ${String(answer.value.status)}`);
  return answer.error;
}

t.test('a call carries its headers and its body, behind the base path', async (t) => {
  const core = await startFakeCore(t);
  const given = [
    ...headers,
    { name: 'RID', value: 'other' },
    { name: 'cdi-version', value: '5.4' },
    { name: 'X-Team', value: 'ops' },
  ];
  const made = client(t, `${core.url}/base`, { headers: given });
  const answer = await made.call({
    method: 'PUT',
    path: '/recipe/user',
    rid: 'passwordless',
    cdiVersion: '2.16',
    body: { name: 'Zoë' },
  });
  t.match(answer, { ok: true, value: { status: 200, json: { status: 'OK' }, retryAfterMs: null } });
  await made.call({ method: 'GET', path: '/apiversion' });
  const [first, second] = core.calls;
  t.match(first, { method: 'PUT', target: '/base/recipe/user', body: '{"name":"Zoë"}' });
  t.same(Object.fromEntries(first?.headers.filter(([name]) => !['host', 'connection'].includes(name)) ?? []), {
    'user-agent': 'sallyport',
    accept: 'application/json',
    'api-key': key,
    'x-team': 'ops',
    'content-type': 'application/json; charset=utf-8',
    rid: 'passwordless',
    'cdi-version': '2.16',
    'content-length': '15',
  });
  t.match(
    Object.fromEntries(second?.headers ?? []),
    { rid: 'other', 'cdi-version': '5.4' },
    "the file's own where the call says nothing",
  );
  t.equal(second?.body, '');
});

t.test('what the Core or something before it says comes out readable, short and without secrets', async (t) => {
  const core = await startFakeCore(t);
  const made = client(t, core.url, { headers: [...headers, { name: 'x-key', value: 'ab=cd==' }] });
  const cases = [
    { name: 'plain', status: 401, body: 'Invalid API key', text: 'Invalid API key' },
    {
      name: 'our key',
      status: 400,
      body: `api-key ${key}! ${encodeURIComponent(key)}`,
      text: 'api-key [hidden]! [hidden]',
    },
    {
      name: 'a page',
      status: 502,
      text: '502 Bad Gateway a < b',
      body: '<html><head><title>x</title></head><style>p{}</style><body><h1>502 Bad&nbsp;Gateway</h1>\n<p>a &lt; b</p>',
    },
    {
      name: 'our key, cut short',
      status: 400,
      body: `${key.slice(0, 20)}… ${key.slice(0, 9)}`,
      text: '[hidden]… k3y-of-tw',
    },
    {
      name: 'our other key as JSON',
      status: 400,
      body: 'ab\\u003dcd\\u003d\\u003d ab%3Dcd%3D%3D',
      text: '[hidden] [hidden]',
    },
    { name: 'controls', status: 500, body: 'a\u001b[31mb\r\nc\u202ed', text: 'a [31mb c d' },
    {
      name: 'a token',
      status: 200,
      body: '{"jwt":"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln"}',
      text: '{"jwt":"[token]"}',
    },
    { name: 'a hash of the body', status: 400, body: 'bad $2a$10$abcdefgh', text: 'bad [hidden]' },
    { name: 'much', status: 500, body: 'é'.repeat(500), text: `${'é'.repeat(200)} …` },
    { name: 'nothing', status: 404, body: '', text: '' },
  ];
  for (const { name, status, body, text } of cases) {
    core.answer((_, response) =>
      response.writeHead(status, { 'content-type': 'text/html', 'retry-after': '2' }).end(body),
    );
    const answer = await made.call({ method: 'POST', path: '/recipe/jwt', body: {}, secrets: ['$2a$10$abcdefgh'] });
    t.match(answer, { ok: true, value: { status, text, retryAfterMs: 2_000 } }, name);
  }
  const notStrict = ['{"status":"OK","status":"OK"}', '[]', 'OK', ''];
  for (const body of notStrict) {
    core.answer((_, response) => response.end(body));
    t.match(await made.call({ method: 'GET', path: '/' }), { ok: true, value: { json: null } }, body);
  }
});

t.test('an answer that cannot be taken: redirect, too large, compressed, broken off', async (t) => {
  const core = await startFakeCore(t);
  const other = await startFakeCore(t);
  const made = client(t, core.url);
  const cases: readonly {
    readonly name: string;
    readonly answer: Parameters<typeof core.answer>[0];
    readonly reason: RegExp;
  }[] = [
    {
      name: 'redirect',
      answer: (_, response) => response.writeHead(307, { location: other.url }).end(),
      reason: /redirect \(status 307\)/,
    },
    {
      name: 'too large',
      answer: (_, response) => response.end('x'.repeat(1024 * 1024 + 1)),
      reason: /larger than 1048576/,
    },
    {
      name: 'compressed',
      answer: (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
      reason: /compressed/,
    },
    { name: 'broken off', answer: (_, response) => response.socket?.destroy(), reason: /connection broke/ },
    {
      name: 'a head without end',
      answer: (_, response) => response.writeHead(200, { x: 'y'.repeat(20_000) }).end(),
      reason: /header of the response/,
    },
  ];
  for (const { name, answer, reason } of cases) {
    core.answer(answer);
    t.match(await failure(made), { kind: 'broken', reason, mayHaveRun: true }, name);
  }
  t.equal(other.calls.length, 0, 'the key went nowhere else');
  core.answer((_, response) => response.end('x'.repeat(1024 * 1024)));
  t.match(await made.call({ method: 'GET', path: '/' }), { ok: true, value: { status: 200 } }, 'of the largest size');
});

t.test('no answer: refused, unknown, silent, called off, closed', async (t) => {
  const core = await startFakeCore(t);
  core.answer(() => undefined);
  const gone = await startFakeCore(t);
  await gone.close();
  t.match(await failure(client(t, gone.url)), { kind: 'unreachable', reason: /refused/, mayHaveRun: false });
  const unknown: Lookup = (_hostname, _options, callback) =>
    callback(Object.assign(new Error('x'), { code: 'ENOTFOUND' }), []);
  t.match(await failure(client(t, 'http://core.invalid', { lookup: unknown })), {
    kind: 'unreachable',
    reason: /host name is unknown/,
    mayHaveRun: false,
  });
  const nowhere: Lookup = (_hostname, _options, callback) => callback(null, []);
  t.match(await failure(client(t, 'http://core.invalid', { lookup: nowhere })), {
    kind: 'unreachable',
    mayHaveRun: false,
  });
  t.match(await failure(client(t, core.url, { timeoutMs: 50 })), {
    kind: 'timeout',
    reason: 'no complete response within 50 ms',
    mayHaveRun: true,
  });

  const closed = client(t, core.url);
  const waiting = failure(closed);
  await until('the call came', () => core.calls.length === 2);
  await closed.close();
  t.match(await waiting, { kind: 'aborted', mayHaveRun: true });
  t.match(await failure(closed), { kind: 'aborted' }, 'and after the end');

  const controller = new AbortController();
  const aborted = client(t, core.url).call({ method: 'GET', path: '/', signal: controller.signal });
  controller.abort();
  t.match(await aborted, { ok: false, error: { kind: 'aborted' } });
});

t.test('TLS is verified, whatever the environment says', async (t) => {
  const { ca, otherCa, server, misnamed } = certificates(t);
  const core = await startFakeCore(t, { cert: readFileSync(server.certFile), key: readFileSync(server.keyFile) });
  const wrongName = await startFakeCore(t, {
    cert: readFileSync(misnamed.certFile),
    key: readFileSync(misnamed.keyFile),
  });
  t.match(await client(t, core.url, { ca: [ca.cert] }).call({ method: 'GET', path: '/' }), { ok: true });
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  t.teardown(() => delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']);
  t.match(await failure(client(t, core.url)), { kind: 'unreachable', reason: /not trusted/, mayHaveRun: false });
  t.match(await failure(client(t, core.url, { ca: [otherCa.cert] })), { kind: 'unreachable', reason: /not trusted/ });
  t.match(await failure(client(t, wrongName.url, { ca: [ca.cert] })), {
    kind: 'unreachable',
    reason: /another host name/,
  });
  t.equal(core.calls.length + wrongName.calls.length, 1);
  const plain = await startFakeCore(t);
  t.match(
    await failure(client(t, plain.url.replace('http:', 'https:'))),
    { kind: 'unreachable', mayHaveRun: false },
    'http where TLS is expected',
  );
});

function resolving(...addresses: readonly string[]): Lookup & { readonly names: string[] } {
  const names: string[] = [];
  const found: LookupAddress[] = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  return Object.assign<Lookup, { names: string[] }>(
    (hostname, _, callback) => {
      names.push(hostname);
      callback(null, found);
    },
    { names },
  );
}

t.test('a name is looked up once for a connection, and the connection goes to what was judged', async (t) => {
  const core = await startFakeCore(t);
  const lookup = resolving('127.0.0.1');
  t.match(await client(t, `http://core.example:${String(core.port)}`, { lookup }).call({ method: 'GET', path: '/' }), {
    ok: true,
  });
  t.same(lookup.names, ['core.example']);
  t.same(
    core.calls[0]?.headers.find(([name]) => name === 'host'),
    ['host', `core.example:${String(core.port)}`],
  );

  const refused = async (url: string, addresses: readonly string[]): Promise<CoreFailure> =>
    failure(client(t, url, { lookup: resolving(...addresses) }));
  t.match(await refused('https://core.example', ['198.51.100.7']), {
    kind: 'refused_address',
    reason: /core\.example \(198\.51\.100\.7\).*public/,
    mayHaveRun: false,
  });
  t.match(
    await refused('https://core.example', ['127.0.0.1', '198.51.100.7']),
    { kind: 'refused_address' },
    'one of several',
  );
  t.match(await refused('http://core.example', ['10.0.0.1']), {
    kind: 'refused_address',
    reason: /10\.0\.0\.1.*in the clear/,
  });
  t.match(
    await failure(client(t, 'http://198.51.100.7')),
    { kind: 'refused_address', reason: /^198\.51\.100\.7 is a public/ },
    'an address is judged without a look-up',
  );
  t.match(await failure(client(t, 'https://[2001:db8::1]')), { kind: 'refused_address' });
});

t.test('as many connections as allowed, and a silent one is given up', async (t) => {
  const core = await startFakeCore(t);
  const open: (() => void)[] = [];
  core.answer((_, response) => open.push(() => response.end('{}')));
  const made = client(t, core.url, { maxConnections: 2 });
  const answers = [1, 2, 3].map(() => made.call({ method: 'GET', path: '/' }));
  await until('two calls came', () => open.length === 2);
  open.splice(0).forEach((end) => end());
  await until('the third came', () => open.length === 1);
  open.splice(0).forEach((end) => end());
  for (const answer of await Promise.all(answers)) t.ok(answer.ok);
  t.equal(core.calls.length, 3);

  const silent = createServer();
  const { port } = await listen(t, silent);
  const slow = client(t, `https://127.0.0.1:${String(port)}`, { connectTimeoutMs: 50, timeoutMs: 10_000 });
  t.match(await failure(slow), { kind: 'unreachable', reason: /timed out/, mayHaveRun: false }, 'no TLS handshake');
});
