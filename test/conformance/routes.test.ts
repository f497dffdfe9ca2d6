/** docs/contract.md 3.1, 3.2 and 3.6: methods, which route holds, who may pass, and what nobody may learn. */
import t, { type Test } from 'tap';
import type { RawResponse } from '../support/raw-client.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, comparable, refusals, type Refusal } from './refusals.js';
import { checkSilence } from './silence.js';

const open = { subjects: ['checkout'], permissions: [] };
const nobody = { subjects: ['nobody'], permissions: [] };
const proxy = await startProxyProcess(t, {
  config: {
    // Otherwise spellings such as /tree/OAK, which another route takes here, would have the config refused.
    receiver: {
      case_sensitive: true,
      strict_slash: true,
      format_suffix: false,
      trailing_dots: false,
      head_as_get: false,
    },
    routes: [
      // The least specific ones first: their order must not matter.
      { ...nobody, name: 'below-tree', methods: ['GET'], path: '/tree/**' },
      { ...nobody, name: 'any-leaf', methods: ['GET'], path: '/tree/{leaf}' },
      { ...open, name: 'oak', methods: ['GET'], path: '/tree/oak' },
      { ...open, name: 'oak-part', methods: ['GET'], path: '/tree/{leaf}/bark' },
      { ...open, name: 'two-paths', methods: ['GET'], path: ['/first', '/second/{x}'] },
      { ...open, name: 'every-method', methods: ['*'], path: '/any', idempotency: 'none' },
      { ...open, name: 'read-only', methods: ['GET'], path: '/thing' },
      { ...open, name: 'head-only', methods: ['HEAD'], path: '/headed' },
      { ...open, name: 'with-body', methods: ['GET', 'HEAD'], path: '/query', body: 'allow' },
      { name: 'needs-both', methods: ['GET'], path: '/both', subjects: ['checkout'], permissions: ['a', 'b'] },
      {
        name: 'pairs',
        methods: ['POST'],
        path: '/pairs',
        idempotency: 'none',
        any_of: [
          { subjects: ['checkout'], permissions: ['orders:write'] },
          { subjects: ['migration'], permissions: ['orders:import'] },
        ],
      },
      { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
      { name: 'public-passing', methods: ['GET'], path: '/passing', access: 'public', forward_authorization: true },
    ],
  },
});

interface Row {
  readonly method?: string;
  readonly path: string;
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly expected: number;
  readonly route: string;
}

const send = async ({ method = 'GET', path, claims }: Row, requestId: string): Promise<RawResponse> =>
  proxy.request({ method, path, headers: { ...proxy.authorization(claims), 'X-Request-Id': requestId } });

async function checkRows(t: Test, label: string, rows: readonly Row[]): Promise<void> {
  for (const [index, row] of rows.entries()) {
    const requestId = `${label}-${String(index)}`;
    const name = `${row.method ?? 'GET'} ${row.path}${row.claims === undefined ? '' : ` ${JSON.stringify(row.claims)}`}`;
    const response = await send(row, requestId);
    if (row.expected === 403) checkRefusal(t, response, refusals.forbidden, name);
    else t.equal(response.status, row.expected, name);
  }
  for (const [index, row] of rows.entries()) {
    t.equal(
      (await proxy.logOf(`${label}-${String(index)}`))['route'],
      row.route,
      `${row.path}: ${row.route} in the log`,
    );
  }
}

t.test('the most specific route holds, whatever the order', async (t) => {
  await checkRows(t, 'specific', [
    { path: '/tree/oak', expected: 200, route: 'oak' },
    { path: '/tree/elm', expected: 403, route: 'any-leaf' },
    { path: '/tree/elm/bark', expected: 200, route: 'oak-part' },
    { path: '/tree/oak/bark', expected: 200, route: 'oak-part' },
    { path: '/tree/oak/leaf', expected: 403, route: 'below-tree' },
    { path: '/tree/a/b/c', expected: 403, route: 'below-tree' },
    { path: '/tree/%C3%B6ak', expected: 403, route: 'any-leaf' },
    { path: '/first', expected: 200, route: 'two-paths' },
    { path: '/second/a%20b', expected: 200, route: 'two-paths' },
  ]);
});

t.test('methods are exact, GET is not HEAD, * is all but TRACE and CONNECT', async (t) => {
  await checkRows(t, 'methods', [
    { path: '/thing', expected: 200, route: 'read-only' },
    { method: 'HEAD', path: '/headed', expected: 200, route: 'head-only' },
    { path: '/headed', expected: 403, route: 'none' },
    { method: 'POST', path: '/thing', expected: 403, route: 'none' },
    { method: 'DELETE', path: '/thing', expected: 403, route: 'none' },
    { method: 'OPTIONS', path: '/thing', expected: 403, route: 'none' },
    ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'].map((method) => ({
      method,
      path: '/any',
      expected: 200,
      route: 'every-method',
    })),
  ]);
  const head = await proxy.request({ method: 'HEAD', path: '/thing', headers: proxy.authorization() });
  t.match(head, { status: 403, text: '' }, 'HEAD where only GET is written: 403 without a body');
});

t.test('TRACE, TRACK and CONNECT get 405, methods that are no upper-case token 400', async (t) => {
  const before = proxy.receiver.requests.length;
  for (const path of ['/any', '/thing', '/unknown', '/healthz']) {
    checkRefusal(
      t,
      await proxy.request({ method: 'TRACE', path, headers: proxy.authorization() }),
      refusals.methodNotAllowed,
      `TRACE ${path}`,
    );
  }
  for (const bytes of [
    'CONNECT /any HTTP/1.1\r\nHost: a\r\n\r\n',
    'CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: a\r\n\r\n',
    'TRACK /any HTTP/1.1\r\nHost: a\r\n\r\n',
  ]) {
    const [response] = await proxy.send(bytes);
    t.ok(response !== undefined && [400, 405].includes(response.status), bytes.slice(0, 20));
  }
  for (const method of ['get', 'Get', 'gET', 'G!T', 'FOO']) {
    t.equal((await proxy.request({ method, path: '/any', headers: proxy.authorization() })).status, 400, method);
  }
  t.equal(proxy.receiver.requests.length, before);
});

t.test('subject and every permission, or one of several pairs', async (t) => {
  const write = { method: 'POST', path: '/pairs', route: 'pairs' };
  await checkRows(t, 'policy', [
    { path: '/both', claims: { permissions: ['a', 'b'] }, expected: 200, route: 'needs-both' },
    { path: '/both', claims: { permissions: ['b', 'x', 'a'] }, expected: 200, route: 'needs-both' },
    { path: '/both', claims: { permissions: ['a'] }, expected: 403, route: 'needs-both' },
    { path: '/both', claims: { permissions: ['a b'] }, expected: 403, route: 'needs-both' },
    { path: '/both', claims: { permissions: ['ab'] }, expected: 403, route: 'needs-both' },
    { path: '/both', claims: { permissions: ['A', 'B'] }, expected: 403, route: 'needs-both' },
    { path: '/both', claims: { permissions: [] }, expected: 403, route: 'needs-both' },
    { path: '/both', claims: { permissions: ['a', 'b'], sub: 'Checkout' }, expected: 403, route: 'needs-both' },
    { path: '/both', claims: { permissions: ['a', 'b'], sub: 'checkout2' }, expected: 403, route: 'needs-both' },
    { path: '/both', claims: { permissions: ['a', 'b'], sub: '__proto__' }, expected: 403, route: 'needs-both' },
    { path: '/both', claims: { permissions: ['constructor', 'a'] }, expected: 403, route: 'needs-both' },
    { ...write, claims: { permissions: ['orders:write'] }, expected: 200 },
    { ...write, claims: { sub: 'migration', permissions: ['orders:import'] }, expected: 200 },
    { ...write, claims: { sub: 'migration', permissions: ['orders:write'] }, expected: 403 },
    { ...write, claims: { permissions: ['orders:import'] }, expected: 403 },
    { ...write, claims: { sub: 'other', permissions: ['orders:write', 'orders:import'] }, expected: 403 },
    { path: '/first', claims: { permissions: [] }, expected: 200, route: 'two-paths' },
  ]);
});

t.test('401 before 403, and no response tells which routes exist', async (t) => {
  const paths = ['/both', '/tree/elm', '/unknown', '/thing/below', '/pairs', '/', '/any'];
  const anonymous = await Promise.all(paths.map(async (path) => proxy.request({ path })));
  for (const [index, response] of anonymous.entries()) {
    checkRefusal(t, response, refusals.unauthorized, `anonymous ${String(paths[index])}`);
  }
  const posts = await Promise.all(paths.map(async (path) => proxy.request({ method: 'POST', path })));
  t.equal(new Set([...anonymous, ...posts].map(comparable)).size, 1, 'every 401 is the same');

  const denied = await Promise.all(
    [
      { path: '/both', claims: { permissions: ['a'] } },
      { path: '/both', claims: { sub: 'stranger' } },
      { path: '/unknown' },
      { path: '/tree/elm' },
      { path: '/thing', method: 'DELETE' },
      { path: '/pairs', method: 'POST', claims: { permissions: [] } },
    ].map(async (row, index) => send({ ...row, expected: 403, route: '' }, `same-${String(index)}`)),
  );
  for (const response of denied) checkRefusal(t, response, refusals.forbidden, 'denied');
  t.equal(new Set(denied.map(comparable)).size, 1, 'every 403 is the same');
});

t.test('public routes need no credential, look at none and pass none', async (t) => {
  const rows = [
    {},
    { Authorization: 'Bearer not-a-token-at-all' },
    proxy.authorization(),
    { Authorization: 'Basic dXNlcjpodXNoLTVkMWY=' },
  ];
  for (const headers of rows) {
    t.equal((await proxy.request({ path: '/healthz', headers })).status, 200);
    const received = proxy.receiver.requests.at(-1);
    t.same(received?.field('authorization'), [], 'the receiver sees no Authorization');
    t.same(
      received?.rawHeaders.filter((name) => /^x-auth/i.test(name)),
      [],
      'and no identity',
    );
  }
  await proxy.request({ path: '/passing', headers: { Authorization: 'Bearer passed-on-as-it-is' } });
  t.same(
    proxy.receiver.requests.at(-1)?.field('authorization'),
    ['Bearer passed-on-as-it-is'],
    'unless the route says so',
  );
  for (const [path, expected] of [
    ['/healthz', refusals.unauthorized],
    ['/healthz/', refusals.unauthorized],
    ['/HEALTHZ', refusals.unauthorized],
  ] as const) {
    const response = await proxy.request({ method: path === '/healthz' ? 'POST' : 'GET', path });
    checkRefusal(t, response, expected, `${path} is not public in another spelling or method`);
  }
});

t.test('a body on GET or HEAD is 400 unless the route allows it', async (t) => {
  const before = proxy.receiver.requests.length;
  const chunked = { 'Transfer-Encoding': 'chunked' };
  const rows: readonly {
    name: string;
    method: string;
    path: string;
    headers: Record<string, string>;
    body: string;
    expected: Refusal | 200;
  }[] = [
    { name: 'GET with a length', method: 'GET', path: '/thing', headers: {}, body: 'x', expected: refusals.badRequest },
    {
      name: 'GET in chunks',
      method: 'GET',
      path: '/thing',
      headers: chunked,
      body: '1\r\nx\r\n0\r\n\r\n',
      expected: refusals.badRequest,
    },
    {
      name: 'GET in no chunks',
      method: 'GET',
      path: '/thing',
      headers: chunked,
      body: '0\r\n\r\n',
      expected: refusals.badRequest,
    },
    { name: 'a public GET', method: 'GET', path: '/healthz', headers: {}, body: 'x', expected: refusals.badRequest },
    {
      name: 'GET with length 0',
      method: 'GET',
      path: '/thing',
      headers: { 'Content-Length': '0' },
      body: '',
      expected: 200,
    },
    { name: 'GET where it is allowed', method: 'GET', path: '/query', headers: {}, body: '{"q":1}', expected: 200 },
    {
      name: 'GET in chunks where it is allowed',
      method: 'GET',
      path: '/query',
      headers: chunked,
      body: '1\r\nx\r\n0\r\n\r\n',
      expected: 200,
    },
  ];
  for (const { name, method, path, headers, body, expected } of rows) {
    const response = await proxy.request({ method, path, headers: { ...proxy.authorization(), ...headers }, body });
    if (expected === 200) t.equal(response.status, 200, name);
    else checkRefusal(t, response, expected, name);
  }
  const received = proxy.receiver.requests.slice(before).map((request) => [request.target, request.body.toString()]);
  t.same(received, [
    ['/thing', ''],
    ['/query', '{"q":1}'],
    ['/query', 'x'],
  ]);
  const head = await proxy.request({
    method: 'HEAD',
    path: '/headed',
    headers: { ...proxy.authorization(), 'Content-Length': '1' },
    body: 'x',
  });
  t.equal(head.status, 400, 'HEAD with a length');
});

checkSilence(t, proxy);
