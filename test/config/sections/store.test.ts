import t from 'tap';
import { compiled, configText, errorsOf, problemsOf } from '../inspection.js';

function redis(settings: string): string {
  return configText({ store: `{ redis: { ${settings} } }` });
}

const urls = [
  { input: 'redis://127.0.0.1', expected: { host: '127.0.0.1', port: 6379, database: 0, tls: false } },
  { input: 'redis://127.0.0.1/', expected: { host: '127.0.0.1', port: 6379, database: 0, tls: false } },
  { input: 'redis://localhost:7000/15', expected: { host: 'localhost', port: 7000, database: 15, tls: false } },
  { input: 'redis://[::1]:7000', expected: { host: '::1', port: 7000, database: 0, tls: false } },
  { input: 'redis://[::1]/1', expected: { host: '::1', port: 6379, database: 1, tls: false } },
  {
    input: 'rediss://redis.example.com:6380/0',
    expected: { host: 'redis.example.com', port: 6380, database: 0, tls: true },
  },
  { input: 'rediss://redis:65535', expected: { host: 'redis', port: 65_535, database: 0, tls: true } },
  { input: 'redis://redis:65536', expected: null },
  { input: 'redis://redis:0', expected: null },
  { input: 'redis://redis:', expected: null },
  { input: 'redis://', expected: null },
  { input: 'redis:///0', expected: null },
  { input: 'redis://redis/db', expected: null },
  { input: 'redis://redis/01', expected: null },
  { input: 'redis://redis/-1', expected: null },
  { input: 'redis://redis/0/1', expected: null },
  { input: 'redis://redis?db=1', expected: null },
  { input: 'redis://redis#x', expected: null },
  { input: 'redis://a b', expected: null },
  { input: 'redis://[127.0.0.1]', expected: null },
  { input: 'redis://::1', expected: null },
  { input: 'redis://127.1', expected: null },
  { input: 'REDIS://redis', expected: null },
  { input: 'http://redis', expected: null },
  { input: 'unix:/run/redis.sock', expected: null },
  { input: 'redis:6379', expected: null },
  { input: '', expected: null },
];

t.test('one server by its URL', (t) => {
  for (const { input, expected } of urls) {
    const text = redis(`url: "${input}"`);
    if (expected === null) {
      t.match(
        errorsOf(text),
        [
          /^c\.yaml:5:24: error: store\.redis\.url is .*; allowed: redis:\/\/HOST:PORT or rediss:\/\/HOST:PORT, with \/N /,
        ],
        input,
      );
      continue;
    }
    const { tls, ...place } = expected;
    t.match(
      compiled(text).store,
      { kind: 'redis', topology: { kind: 'single', ...place }, tls: tls ? { caFile: null, serverName: null } : null },
      input,
    );
  }
  t.end();
});

t.test('a password in the URL is refused with the reason, and not shown', (t) => {
  for (const authority of ['sallyport:hunter2@redis', ':hunter2@redis', 'hunter2@redis', 'hunter2@']) {
    const [problem = '', ...others] = problemsOf(redis(`url: "redis://${authority}"`));
    t.same(others, []);
    t.match(
      problem,
      /^c\.yaml:5:24: error: store\.redis\.url has a user or a password in it, where it would be read with the config; /,
      authority,
    );
    t.match(problem, /allowed: .*the password in a file that password_file names$/);
    t.notMatch(problem, /hunter2/);
  }
  const [problem] = problemsOf(redis('url: "${env:URL}"'), { env: { URL: 'redis://:hunter2@redis' } });
  t.equal(problem?.split(';')[0], 'c.yaml:5:24: error: store.redis.url is what ${env:URL} stands for');
  t.end();
});

const nodes = [
  { input: 'redis-0:6379', expected: { host: 'redis-0', port: 6379 } },
  { input: '10.0.0.1:1', expected: { host: '10.0.0.1', port: 1 } },
  { input: '[2001:db8::1]:65535', expected: { host: '2001:db8::1', port: 65_535 } },
  { input: 'redis-0', expected: null },
  { input: '2001:db8::1:6379', expected: null },
  { input: 'redis-0:65536', expected: null },
  { input: 'redis-0:06379', expected: null },
  { input: 'redis_0:6379', expected: null },
  { input: ':6379', expected: null },
  { input: 'redis://redis-0:6379', expected: null },
];

t.test('nodes of Sentinel and of a Cluster', (t) => {
  for (const { input, expected } of nodes) {
    for (const way of ['sentinel: { name: main,', 'cluster: {']) {
      const text = redis(`${way} nodes: ["${input}"] }`);
      if (expected === null) t.match(errorsOf(text), [/error: store\.redis\.\w+\.nodes\[0\] is "/], input);
      else t.match(compiled(text).store, { topology: { nodes: [expected] } }, input);
    }
  }
  t.match(
    compiled(redis('sentinel: { name: main, nodes: ["a:1", "b:2"] }, tls: { server_name: redis.internal }')).store,
    {
      topology: {
        kind: 'sentinel',
        name: 'main',
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
        ],
      },
      tls: { caFile: null, serverName: 'redis.internal' },
    },
  );
  t.end();
});

t.test('the settings of Redis, compiled', (t) => {
  t.same(compiled(redis('url: "redis://127.0.0.1"')).store, {
    kind: 'redis',
    topology: { kind: 'single', host: '127.0.0.1', port: 6379, database: 0 },
    username: null,
    passwordFile: null,
    tls: null,
    prefix: 'sallyport',
    replicas: 0,
    reserveTimeoutMs: 250,
    settleTimeoutMs: 1_000,
    startsWithoutRevocations: false,
    keptPerCaller: null,
    durability: 'verified',
  });
  t.same(
    compiled(
      redis(
        'url: "rediss://redis:1/2", username: orders, password_file: /run/secrets/redis, tls: { ca_file: /ca.crt, server_name: redis.internal }, ' +
          'prefix: orders.v1, replicas: 2, reserve_timeout: 1s, settle_timeout: 5s, start_without_revocations: true, ' +
          'kept_per_caller: 64MiB, durability: unverified',
      ),
    ).store,
    {
      kind: 'redis',
      topology: { kind: 'single', host: 'redis', port: 1, database: 2 },
      username: 'orders',
      passwordFile: '/run/secrets/redis',
      tls: { caFile: '/ca.crt', serverName: 'redis.internal' },
      prefix: 'orders.v1',
      replicas: 2,
      reserveTimeoutMs: 1_000,
      settleTimeoutMs: 5_000,
      startsWithoutRevocations: true,
      keptPerCaller: 64 * 1024 * 1024,
      durability: 'unverified',
    },
  );
  t.equal(compiled(configText()).store, null);
  t.equal(compiled(configText({ store: 'null' })).store, null);
  t.same(compiled(configText({ store: '{ memory: {} }' })).store, { kind: 'memory' });
  t.equal(
    compiled(redis('url: "redis://127.0.0.1", replicas: "${env:N}"'), { env: { N: '1' } }).warnings.length,
    0,
    'a placeholder may stand for a number',
  );
  t.end();
});

const together = [
  {
    name: 'nothing',
    input: '{}',
    expected: [
      /^c\.yaml:5:8: error: store does not say where reservations are kept; allowed: redis, or memory for development$/,
    ],
  },
  {
    name: 'both',
    input: '{ redis: { url: "redis://127.0.0.1" }, memory: {} }',
    expected: [/^c\.yaml:5:47: error: store\.memory stands beside store\.redis; allowed: one of them$/],
  },
  { name: 'neither', input: '{ redis: null, memory: null }', expected: [/error: store does not say/] },
  {
    name: 'memory',
    input: '{ memory: {} }',
    expected: [
      /^c\.yaml:5:18: warning: reservations are kept by this process alone and forgotten at its end: a write may then run twice; allowed: store\.redis, /,
    ],
  },
  {
    name: 'settings of memory',
    input: '{ memory: { size: 5 } }',
    expected: [/error: unknown key "size" in store\.memory/],
  },
  {
    name: 'no way to Redis',
    input: '{ redis: {} }',
    expected: [/error: store\.redis does not say where Redis is; allowed: url, sentinel or cluster$/],
  },
  {
    name: 'two ways',
    input: '{ redis: { url: "redis://127.0.0.1", cluster: { nodes: ["127.0.0.1:1"] } } }',
    expected: [/error: store\.redis\.cluster stands beside store\.redis\.url; allowed: one of them$/],
  },
  {
    name: 'two other ways',
    input: '{ redis: { sentinel: { name: a, nodes: ["127.0.0.1:1"] }, cluster: { nodes: ["127.0.0.1:1"] } } }',
    expected: [/error: store\.redis\.cluster stands beside store\.redis\.sentinel; /],
  },
  {
    name: 'no nodes',
    input: '{ redis: { cluster: { nodes: [] } } }',
    expected: [/error: store\.redis\.cluster\.nodes is an empty list; allowed: .*, at least one$/],
  },
  {
    name: 'plaintext to another machine',
    input: '{ redis: { url: "redis://redis" } }',
    expected: [
      /^c\.yaml:5:24: warning: reservations and kept responses cross the network in plaintext: .*; allowed: rediss:\/\/, or a loopback address$/,
    ],
  },
  {
    name: 'plaintext to one of several',
    input: '{ redis: { cluster: { nodes: ["127.0.0.1:1", "redis:1"] } } }',
    expected: [/warning: reservations and kept responses cross .*; allowed: store\.redis\.tls, or loopback addresses$/],
  },
  { name: 'TLS', input: '{ redis: { url: "rediss://redis" } }', expected: [] },
  { name: 'TLS towards a Cluster', input: '{ redis: { cluster: { nodes: ["redis:1"] }, tls: {} } }', expected: [] },
  {
    name: 'TLS settings without TLS',
    input: '{ redis: { url: "redis://redis", tls: {} } }',
    expected: [/error: store\.redis\.tls has no use with redis:\/\/; allowed: rediss:\/\/ in store\.redis\.url$/],
  },
  {
    name: 'what may forget',
    input: '{ redis: { url: "rediss://redis", durability: none } }',
    expected: [/^c\.yaml:5:54: warning: store\.redis\.durability is none: /],
  },
  {
    name: 'another durability',
    input: '{ redis: { url: "rediss://redis", durability: maybe } }',
    expected: [/error: store\.redis\.durability is "maybe"; allowed: verified, unverified, none$/],
  },
  {
    name: 'an unknown key',
    input: '{ redis: { url: "rediss://redis", pasword_file: /x } }',
    expected: [/error: unknown key "pasword_file" in store\.redis, did you mean "password_file"\?; /],
  },
  {
    name: 'a password',
    input: '{ redis: { url: "rediss://redis", password: hunter2 } }',
    expected: [/error: unknown key "password" in store\.redis/],
  },
];

t.test('what the settings of the store say together', (t) => {
  for (const { name, input, expected } of together) {
    const problems = problemsOf(configText({ store: input }));
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    t.match(problems, expected, name);
  }
  t.end();
});

const bounds = [
  { key: 'prefix', good: ['a', '"A.b_c-9"', 'x'.repeat(64)], bad: ['""', '"a:b"', '"a{b}"', 'x'.repeat(65)] },
  { key: 'replicas', good: ['0', '10'], bad: ['-1', '11', '1.5', '"1"'] },
  { key: 'reserve_timeout', good: ['10ms', '10s'], bad: ['9ms', '11s'] },
  { key: 'settle_timeout', good: ['10ms', '60s'], bad: ['9ms', '61s'] },
  { key: 'username', good: ['a', 'x'.repeat(128)], bad: ['"a b"', '""', 'x'.repeat(129)] },
  { key: 'password_file', good: ['/run/secrets/redis', 'redis.txt'], bad: ['""'] },
];

t.test('the bounds of the settings of Redis', (t) => {
  for (const { key, good, bad } of bounds) {
    for (const value of good) {
      t.same(
        problemsOf(
          configText({ store: `{ redis: { url: "rediss://redis", ${key}: ${value} } }`, shutdown: '{ grace: 1h }' }),
        ),
        [],
        `${key}: ${value}`,
      );
    }
    for (const value of bad) {
      t.match(
        problemsOf(redis(`url: "rediss://redis", ${key}: ${value}`)),
        [new RegExp(`error: store\\.redis\\.${key} is `)],
        `${key}: ${value}`,
      );
    }
  }
  t.end();
});

t.test('a stop has time to settle: settle_timeout is at most half of shutdown.grace', (t) => {
  const withGrace = (settle: string, grace: string | null): string =>
    configText({
      store: `{ redis: { url: "redis://127.0.0.1"${settle} } }`,
      shutdown: grace === null ? null : `{ grace: ${grace} }`,
    });
  const rows = [
    { settle: ', settle_timeout: 5s', grace: '10s', expected: [] },
    {
      settle: ', settle_timeout: 5s',
      grace: '9999ms',
      expected: [
        /error: store\.redis\.settle_timeout is more than half of shutdown\.grace: .*; allowed: at most 4999ms, or a longer shutdown\.grace$/,
      ],
    },
    { settle: ', settle_timeout: 12s', grace: null, expected: [] },
    { settle: ', settle_timeout: 13s', grace: null, expected: [/; allowed: at most 12500ms, /] },
    { settle: '', grace: '2s', expected: [] },
    { settle: '', grace: '1999ms', expected: [/error: store\.redis\.settle_timeout is more than half/] },
  ];
  for (const { settle, grace, expected } of rows) {
    const errors = errorsOf(withGrace(settle, grace));
    t.equal(errors.length, expected.length, `${settle} ${String(grace)}`);
    t.match(errors, expected, `${settle} ${String(grace)}`);
  }
  t.same(
    errorsOf(configText({ store: '{ memory: {} }', shutdown: '{ grace: 0ms }' })),
    [],
    'the memory store takes no time',
  );
  t.end();
});
