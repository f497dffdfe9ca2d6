import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { run } from '../../../src/cli/program.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../captured-io.js';
import { startCommand } from '../started-command.js';

const routes = [
  {
    name: 'list-orders',
    methods: ['GET'],
    path: '/orders',
    subjects: ['checkout', 'reporting'],
    permissions: ['orders:read'],
  },
  {
    name: 'create-order',
    methods: ['POST'],
    path: '/orders',
    idempotency: 'required',
    single_use: true,
    max_body: '10B',
    any_of: [
      { subjects: ['checkout'], permissions: ['orders:write', 'orders:read'] },
      { subjects: ['migration'], permissions: ['orders:import'] },
    ],
  },
  {
    name: 'read-order',
    methods: ['*'],
    path: '/orders/{id}',
    subjects: ['checkout'],
    permissions: [],
    mode: 'shadow',
    idempotency: 'none',
  },
  {
    name: 'orders-below',
    methods: ['GET'],
    path: ['/orders/**', '/a%20b/c:d/**'],
    subjects: ['checkout'],
    permissions: [],
  },
  {
    name: 'profile',
    methods: ['GET'],
    path: '/me',
    accept: ['session'],
    session: { claims: { 'st-role.v': 'support', level: 2 } },
  },
  { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
];
const policy: ConfigTree = {
  routes,
  store: { memory: {} },
  receiver: { case_sensitive: true, strict_slash: true },
  revoked: { subjects: ['mallory'], issued_before: '2020-01-01T00:00:00Z' },
  sessions: { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' },
};

interface Files {
  readonly config?: ConfigTree;
  readonly suite?: string;
}

function folder(t: Scope, { config = {}, suite = '' }: Files = {}): string {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig({ ...policy, ...config }));
  writeFileSync(join(cwd, 'orders.test.yaml'), suite);
  return cwd;
}

async function test(cwd: string, ...words: readonly string[]): Promise<CapturedIo> {
  const io = captureIo({ cwd });
  await run(['test', ...words], io);
  return io;
}

const suite = (cases: string): string => `config: ./sallyport.yaml\ncases:\n${cases}`;

const good = suite(`
  - name: reads
    request: { method: GET, path: "/orders?x=1", headers: { X-Tag: [a, b], X_Auth.Subject: root } }
    claims: { sub: checkout, permissions: [orders:read] }
    expect: { status: 200, reason: null, route: list-orders, reservation: none, headers: { x-auth-subject: checkout, X-Tag: "a, b", Authorization: null } }
  - name: writes
    request: { method: POST, path: /orders, headers: { Idempotency-Key: k }, body: "ten bytes!" }
    claims: { sub: migration, permissions: [orders:import], jti: j-1 }
    expect: { status: 200, reservation: required, headers: { X-Auth-Token-Id: j-1 } }
  - name: writes too much
    request: { method: POST, path: /orders, headers: { Idempotency-Key: k, Transfer-Encoding: chunked }, body: "eleven byte" }
    claims: { sub: migration, permissions: [orders:import], jti: j-1 }
    expect: { status: 413, reason: body_too_large, route: create-order }
  - name: in shadow
    request: { method: PUT, path: /orders/7 }
    credential: none
    expect: { status: 200, reason: credential_missing, route: read-order }
  - name: forged
    request: { method: GET, path: /orders }
    credential: invalid
    expect: { reason: signature_invalid }
  - name: nobody
    request: { method: GET, path: /orders }
    expect: { status: 401 }
  - name: long ago
    request: { method: GET, path: /orders }
    claims: { sub: checkout, permissions: [orders:read] }
    at: 2019-12-31T23:59:59Z
    expect: { status: 401, reason: issue_time_revoked }
  - name: a user
    request: { method: GET, path: /me }
    session: { sub: user-1, st-role: { v: [support] }, level: 2 }
    expect: { status: 200, headers: { X-Auth-Kind: session, X-Auth-Subject: user-1 } }
  - name: a user without the role
    request: { method: GET, path: /me }
    session: { sub: user-1, level: 2 }
    expect: { status: 403, reason: session_claim_missing }
  - name: a token where sessions count
    request: { method: GET, path: /me }
    claims: { sub: checkout }
    expect: { status: 401, reason: credential_kind_refused }
`);

t.test('where tokens have to be bound, those of the cases are taken for proved', async (t) => {
  const cwd = folder(t, { config: { issuers: { core: { binding: 'require' } } }, suite: good });
  const io = await test(cwd, 'orders.test.yaml');
  t.equal(io.code(), 0, io.out());
});

t.test('cases are decided by the code that serves', async (t) => {
  const io = await test(folder(t, { suite: good }), 'orders.test.yaml');
  t.equal(io.code(), 0, io.out() + io.err());
  t.match(io.out(), /^ok {3}reads\nok {3}writes\n/);
  t.match(io.out(), /\n10 cases, 0 failed\n/);
  t.match(
    io.out(),
    /\ncoverage of sallyport\.yaml: \d+ of \d+ \(\d+ %\)\n {2}not covered: route list-orders: subject reporting is let through by no case\n/,
  );
  t.match(io.out(), /not covered: route create-order: permission orders:write: no case is refused for want of it\n/);
  t.match(io.out(), /not covered: route health: no case\n/);
});

const eve = suite(
  '  - name: eve\n    request: { method: GET, path: /orders }\n    claims: { sub: eve }\n' +
    '    expect: { status: 200, route: x, reservation: required, headers: { a: b } }\n',
);

t.test('a failed case says what is not as expected, where it stands, and why', async (t) => {
  const cwd = folder(t, { suite: eve });
  const io = await test(cwd, 'orders.test.yaml');
  t.equal(io.code(), 1);
  for (const line of [
    'FAIL eve (orders.test.yaml:3)',
    '       status: expected 200, got 403',
    '       route: expected "x", got "list-orders"',
    '       reservation: expected "required", got "none"',
    '       header a: expected "b", but the upstream is not asked',
    '     | denied: 403 subject_not_approved (route list-orders)',
    '1 case, 1 failed',
  ]) {
    t.ok(io.out().split('\n').includes(line), line);
  }
});

t.test('a file with a mistake is refused, with its place; one without a case too', async (t) => {
  const one = (text: string): string => suite(`  - ${text}\n`);
  const rows: readonly { name: string; text: string; says: RegExp }[] = [
    {
      name: 'no case',
      text: 'config: ./sallyport.yaml\ncases: []\n',
      says: /^orders\.test\.yaml:2:8: error: cases is an empty list; allowed: a list of cases, at least one$/m,
    },
    { name: 'cases missing', text: 'config: ./sallyport.yaml\n', says: /error: cases is missing/ },
    {
      name: 'an unknown key',
      text: suite('  - name: a\n    requst: 1\n    request: { method: GET, path: / }\n    expect: { status: 200 }\n'),
      says: /^orders\.test\.yaml:4:5: error: unknown key "requst" in cases\[0\], did you mean "request"\?/m,
    },
    {
      name: 'an unknown key within',
      text: one('{ name: a, request: { method: GET, path: /, header: {} }, expect: { status: 200 } }'),
      says: /unknown key "header" in cases\[0\]\.request, did you mean "headers"/,
    },
    {
      name: 'an unknown expectation',
      text: one('{ name: a, request: { method: GET, path: / }, expect: { code: 200 } }'),
      says: /unknown key "code" in cases\[0\]\.expect/,
    },
    {
      name: 'no expectation',
      text: one('{ name: a, request: { method: GET, path: / }, expect: {} }'),
      says: /at least one of status, reason/,
    },
    {
      name: 'an unknown reason',
      text: one('{ name: a, request: { method: GET, path: / }, expect: { reason: no } }'),
      says: /cases\[0\]\.expect\.reason is "no"; allowed: a denial reason/,
    },
    {
      name: 'two credentials',
      text: one(
        '{ name: a, request: { method: GET, path: / }, claims: {}, credential: none, expect: { status: 200 } }',
      ),
      says: /one of claims, session and credential/,
    },
    {
      name: 'a name twice',
      text: suite(
        '  - { name: a, request: { method: GET, path: / }, expect: { status: 401 } }\n  - { name: a, request: { method: GET, path: / }, expect: { status: 401 } }\n',
      ),
      says: /:4:\d+: error: the name is that of the case in line 3 too/,
    },
    {
      name: 'a bad time',
      text: one('{ name: a, request: { method: GET, path: / }, at: now, expect: { status: 200 } }'),
      says: /cases\[0\]\.at is "now"; allowed: a time/,
    },
    { name: 'no YAML', text: 'cases: [', says: /error: / },
    { name: 'empty', text: '', says: /error: the file is empty/ },
  ];
  for (const { name, text, says } of rows) {
    const io = await test(folder(t, { suite: text }), 'orders.test.yaml');
    t.equal(io.code(), 1, name);
    t.match(io.err(), says, name);
  }
  const config = await test(folder(t, { suite: good, config: { routes: [] } }), 'orders.test.yaml');
  t.equal(config.code(), 1, 'a bad config');
  t.match(config.err(), /^sallyport\.yaml:\d+:\d+: error: routes/m);
  t.equal((await test(folder(t), 'none.yaml')).code(), 2, 'no such file');
  t.equal(
    (await test(folder(t, { suite: good.replace('sallyport.yaml', 'none.yaml') }), 'orders.test.yaml')).code(),
    2,
    'no such config',
  );
  t.equal((await test(folder(t))).code(), 2, 'nothing to run');
  t.equal((await test(folder(t), 'a', '--init', 'b')).code(), 2);
  t.equal((await test(folder(t), 'a', '--min-coverage', '101')).code(), 2);
});

t.test('--init: the cases pass as they are and cover the whole policy', async (t) => {
  const cwd = folder(t);
  const init = await test(cwd, '--init', 'sallyport.yaml');
  t.equal(init.code(), 0);
  t.equal(init.err(), '');
  const { cases } = parse(init.out()) as { cases: { name: string; expect: { status: number } }[] };
  t.same(
    cases.filter(({ name }) => name.startsWith('list-orders')).map(({ name, expect }) => `${name} ${expect.status}`),
    [
      'list-orders: checkout 200',
      'list-orders: checkout without orders:read 403',
      'list-orders: reporting 200',
      'list-orders: reporting without orders:read 403',
      'list-orders: somebody else 403',
      'list-orders: nobody 401',
      'list-orders: an invalid token 401',
    ],
  );
  for (const name of routes.map((route) => route.name)) {
    t.ok(
      cases.some((each) => each.name.startsWith(`${name}: `)),
      name,
    );
  }
  writeFileSync(join(cwd, 'written.yaml'), init.out());
  const io = await test(cwd, 'written.yaml', '--min-coverage', '100');
  t.equal(io.code(), 0, io.out());
  t.match(io.out(), /\(100 %\)\n$/);
});

t.test('--init has each profile’s tokens say what that profile reads', async (t) => {
  const only = (name: string, subjects: readonly unknown[], permissions: readonly string[] = []): object => ({
    name,
    methods: ['GET'],
    path: `/${name}`,
    subjects,
    permissions,
    issuers: [name],
  });
  const cwd = folder(t, {
    config: {
      issuers: {
        rfc: { issuer: 'https://a.example.com', profile: 'oauth', audience: 'orders' },
        idp: {
          issuer: 'https://idp.example.com',
          profile: 'oauth',
          audience: ['orders', 'api'],
          algorithms: ['EdDSA'],
          token_typ: ['JWT'],
          claims: { subject: 'azp', permissions: 'realm.roles', require: { tenant: 'acme', 'realm.id': [1, 2] } },
        },
        pss: { issuer: 'https://b.example.com', profile: 'oauth', audience: 'orders', algorithms: ['PS384'] },
        cluster: {
          issuer: 'https://k8s.example.com',
          profile: 'kubernetes',
          audience: 'orders',
          algorithms: ['ES512'],
          claims: { require: { 'kubernetes\\.io.node.name': 'n-1' } },
        },
        spire: { profile: 'spiffe', trust_domain: 'shop.example', audience: 'orders', bundle_file: '/b.json' },
      },
      routes: [
        only('rfc', ['checkout'], ['read', 'write']),
        only('idp', ['checkout'], ['read']),
        only('pss', ['checkout']),
        only('cluster', ['shop/api', { prefix: 'jobs/' }]),
        only('spire', [{ prefix: 'spiffe://shop.example/ns/' }]),
      ],
    },
  });
  const init = await test(cwd, '--init', 'sallyport.yaml');
  t.equal(init.code(), 0, init.err());
  const { cases } = parse(init.out()) as { cases: { name: string; expect: { status: number } }[] };
  t.same(
    cases
      .filter(({ name }) => !/nobody|invalid|no route/.test(name))
      .map(({ name, expect }) => `${name} ${String(expect.status)}`),
    [
      'rfc: checkout 200',
      'rfc: checkout without read 403',
      'rfc: checkout without write 403',
      'rfc: somebody else 403',
      'idp: checkout 200',
      'idp: checkout without read 403',
      'idp: somebody else 403',
      'pss: checkout 200',
      'pss: somebody else 403',
      'cluster: shop/api 200',
      'cluster: jobs/example 200',
      'cluster: somebody else 403',
      'spire: spiffe://shop.example/ns/example 200',
      'spire: somebody else 403',
    ],
  );
  writeFileSync(join(cwd, 'written.yaml'), init.out());
  const io = await test(cwd, 'written.yaml', '--min-coverage', '100');
  t.equal(io.code(), 0, io.out());
});

t.test('--init names routes that no request reaches, and writes what a revoked caller gets', async (t) => {
  const cwd = folder(t, {
    config: {
      routes: [
        { name: 'slash', methods: ['GET'], path: '/a/', subjects: ['mallory'], permissions: [] },
        { name: 'one', methods: ['GET'], path: '/a/{x}', subjects: ['checkout'], permissions: [] },
        { name: 'more', methods: ['GET'], path: '/a/{x}/**', subjects: ['checkout'], permissions: [] },
        { name: 'all', methods: ['GET'], path: '/a/**', subjects: ['checkout'], permissions: [] },
      ],
    },
  });
  const init = await test(cwd, '--init', 'sallyport.yaml');
  t.equal(init.err(), 'route all: no request reaches it\n');
  t.match(init.out(), /name: "slash: mallory"[^]*?status: 401\n +reason: subject_revoked/);
  t.equal((await test(cwd, '--init', 'none.yaml')).code(), 2);
});

t.test('--min-coverage, --json, --tap, --junit', async (t) => {
  const cwd = folder(t, { suite: good });
  const covered = await test(cwd, 'orders.test.yaml', '--min-coverage', '90');
  t.equal(covered.code(), 1);
  t.match(covered.out(), /; wanted: 90 %/);
  const json = await test(cwd, 'orders.test.yaml', '--json');
  t.match(JSON.parse(json.out()), {
    ok: true,
    problems: [],
    cases: [{ name: 'reads', line: 4, ok: true, mismatches: [], explanation: { decision: 'allowed' } }],
    coverage: [{ config: 'sallyport.yaml' }],
  });

  writeFileSync(
    join(cwd, 'bad.yaml'),
    suite(
      '  - { name: "a # <b>", request: { method: GET, path: "/\\u0007" }, expect: { status: 200 } }\n' +
        '  - { name: c, request: { method: GET, path: /healthz }, expect: { status: 200 } }\n',
    ),
  );
  const tap = await test(cwd, 'bad.yaml', '--tap', '--junit', 'out.xml');
  t.equal(tap.code(), 1);
  t.match(
    tap.out(),
    /^TAP version 14\n1\.\.2\nnot ok 1 - a \\# <b>\n {2}---\n {2}at: bad\.yaml:3\n {2}mismatches:\n[^]* {2}\.\.\.\nok 2 - c\n$/,
  );
  const xml = readFileSync(join(cwd, 'out.xml'), 'utf8');
  t.match(
    xml,
    /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<testsuites tests="2" failures="1">\n {2}<testsuite name="bad\.yaml" tests="2" failures="1">\n/,
  );
  t.match(
    xml,
    /<testcase classname="bad\.yaml" name="a # &lt;b&gt;" line="3">\n {6}<failure message="status: expected 200, got 400">/,
  );
  t.match(xml, /<testcase classname="bad\.yaml" name="c" line="4"\/>/);
  const unwritten = await test(cwd, 'bad.yaml', '--junit', 'none/out.xml');
  t.equal(unwritten.code(), 2);
  t.match(unwritten.err(), /error: none\/out\.xml: its folder does not exist\n/);
});

t.test('--watch runs again when the config or the file changes, and ends at a signal', async (t) => {
  const reads = suite(
    '  - name: reads\n    request: { method: GET, path: /orders }\n    claims: { sub: eve, permissions: [orders:read] }\n' +
      '    expect: { status: 200 }\n',
  );
  const cwd = folder(t, { suite: reads });
  const file = join(cwd, 'orders.test.yaml');
  const started = startCommand(t, ['test', '--watch', file]);
  await started.says(/1 case, 1 failed/);
  writeFileSync(
    join(cwd, 'sallyport.yaml'),
    baseConfig({
      routes: [{ name: 'list-orders', methods: ['GET'], path: '/orders', subjects: ['eve'], permissions: [] }],
    }),
  );
  await started.says(/1 case, 0 failed/);
  writeFileSync(
    file,
    suite('  - name: again\n    request: { method: GET, path: /orders }\n    expect: { status: 401 }\n'),
  );
  await started.says(/ok {3}again\n1 case, 0 failed/);
  started.signal('SIGINT');
  t.same(await started.exited, { code: 0, signal: null });
});
