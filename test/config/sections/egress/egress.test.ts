import t from 'tap';
import { compiled, configText, problemsOf } from '../../inspection.js';

const target =
  'name: orders, prefix: /orders, url: "https://orders.shop.svc/api", allow: [{ methods: [GET], path: "/**" }]';
const tokens = 'tokens: { t: { file: /run/token } }';

function egress(text: string): string {
  return configText({ egress: `{ ${text} }` });
}

t.test('without the section there is no calling side', (t) => {
  t.equal(compiled(configText({})).egress, null);
  t.end();
});

t.test('every default of the section', (t) => {
  const { egress: settings } = compiled(egress(`targets: [{ ${target} }]`));
  t.match(settings, {
    listen: { host: '127.0.0.1', port: 8181, tls: null, http2: false, maxInFlight: 512, headerTimeoutMs: 10_000 },
    socket: null,
    totalRetryBufferBytes: 64 * 1024 ** 2,
    tokens: [],
    targets: [
      {
        name: 'orders',
        prefix: '/orders',
        basePath: '/api',
        token: null,
        missingKey: 'pass',
        keyFrom: null,
        retries: { attempts: 3, withinMs: 10_000, budget: 0.1 },
        retryBufferBytes: 1024 ** 2,
        upstream: {
          url: 'https://orders.shop.svc',
          caFile: null,
          connectTimeoutMs: 1_000,
          responseTimeoutMs: 30_000,
          idleTimeoutMs: 60_000,
          maxConnections: 128,
          http2: false,
        },
        routes: [{ name: 'egress:orders', access: 'public', maxBodyBytes: 1024 ** 3, allowsWebSocket: false }],
      },
    ],
  });
  t.equal(settings?.targets[0]?.routes[0]?.paths[0]?.text, '/orders/**');
  t.end();
});

t.test('a socket, a key of the body, and a budget', (t) => {
  const { egress: settings } = compiled(
    egress(
      `listen: { unix: /run/e.sock, mode: "0660" }, hold_bodies: 1MiB, ${tokens}, targets: [{ ${target}, token: t, key_from: { json: /a~1b/c~0d }, ` +
        'idempotency: generate, retries: { attempts: 2, within: 1s, budget: 25% } }, ' +
        '{ name: b, prefix: /b, url: "http://127.0.0.1:1", allow: [{ methods: ["*"], path: / }], key_from: { header: X-Order-Id } }]',
    ),
  );
  t.same(settings?.socket, { path: '/run/e.sock', mode: 0o660, owner: null });
  for (const [owner, expected] of [
    ['1000', { uid: 1000, gid: null }],
    ['1000:2000', { uid: 1000, gid: 2000 }],
    [':2000', { uid: null, gid: 2000 }],
  ] as const) {
    const { egress: owned } = compiled(
      egress(`listen: { unix: /run/e.sock, owner: "${owner}" }, targets: [{ ${target} }]`),
    );
    t.same(owned?.socket?.owner, expected, owner);
  }
  t.match(settings?.targets, [
    {
      token: 't',
      missingKey: 'generate',
      keyFrom: { kind: 'json', path: ['a/b', 'c~d'] },
      retries: { attempts: 2, budget: 0.25 },
    },
    { basePath: '', keyFrom: { kind: 'header', name: 'x-order-id' }, routes: [{ methods: null }] },
  ]);
  t.end();
});

const wrong: readonly { readonly name: string; readonly text: string; readonly expected: readonly RegExp[] }[] = [
  {
    name: 'no target',
    text: 'targets: []',
    expected: [/egress\.targets is an empty list; allowed: a list of targets/],
  },
  {
    name: 'a listener that others reach',
    text: `listen: { host: 0.0.0.0 }, targets: [{ ${target} }]`,
    expected: [/error: whoever reaches the listener acts in the workload’s name: egress\.listen\.host is "0\.0\.0\.0"/],
  },
  {
    name: 'a socket and a port',
    text: `listen: { unix: /run/e.sock, port: 1 }, targets: [{ ${target} }]`,
    expected: [/egress\.listen\.port stands beside egress\.listen\.unix; allowed: one of them/],
  },
  {
    name: 'a mode without a socket',
    text: `listen: { mode: "0660" }, targets: [{ ${target} }]`,
    expected: [/egress\.listen\.mode has no use without egress\.listen\.unix/],
  },
  {
    name: 'an owner without a socket',
    text: `listen: { owner: "1000" }, targets: [{ ${target} }]`,
    expected: [/egress\.listen\.owner has no use without egress\.listen\.unix/],
  },
  {
    name: 'an owner by name',
    text: `listen: { unix: /run/e.sock, owner: "app:" }, targets: [{ ${target} }]`,
    expected: [/egress\.listen\.owner is "app:"; allowed: ids such as "1000", "1000:1000" or ":1000", in quotes/],
  },
  {
    name: 'plaintext to another machine',
    text: `targets: [{ ${target.replace('https:', 'http:')} }]`,
    expected: [/error: tokens would cross the network in plaintext: egress\.targets\[0\]\.url is http on another host/],
  },
  {
    name: 'an unknown token',
    text: `targets: [{ ${target}, token: other }]`,
    expected: [/egress\.targets\[0\]\.token is "other", which egress\.tokens does not have/],
  },
  {
    name: 'a token that nobody uses',
    text: `${tokens}, targets: [{ ${target} }]`,
    expected: [/warning: egress\.tokens\.t is a token that no target names/],
  },
  {
    name: 'prefixes that begin alike',
    text: `targets: [{ ${target} }, { ${target.replace('name: orders, prefix: /orders', 'name: b, prefix: /orders/eu')} }]`,
    expected: [/egress\.targets\[1\]\.prefix and that of target "orders" begin alike/],
  },
  {
    name: 'one name twice',
    text: `targets: [{ ${target} }, { ${target.replace('prefix: /orders', 'prefix: /b')} }]`,
    expected: [/egress\.targets\[1\]\.name is the name of another target/],
  },
  {
    name: 'WebSockets over HTTP/2',
    text: `targets: [{ ${target}, websocket: true, http2: true }]`,
    expected: [/egress\.targets\[0\]\.websocket is true beside http2/],
  },
  {
    name: 'authorities without https',
    text: `targets: [{ ${target.replace('https://orders.shop.svc', 'http://127.0.0.1:1')}, ca_file: /ca, server_name: a, cert_file: /c, key_file: /k }]`,
    expected: [
      /ca_file has no use without https/,
      /server_name has no use without https/,
      /cert_file has no use without https/,
      /key_file has no use without https/,
    ],
  },
  ...['/', '/a/', 'a', '/a/../b', '/a/./b', '/%61', '/a b', '/a//b', '/a?b'].map((prefix) => ({
    name: `the prefix ${prefix}`,
    text: `targets: [{ ${target.replace('prefix: /orders', `prefix: "${prefix}"`)} }]`,
    expected: [/egress\.targets\[0\]\.prefix is .*; allowed: a path such as \/orders/],
  })),
  // Each has one value for all writes, or another for each, or none: not one for each operation.
  ...['Host', 'via', 'X-Request-Id', 'traceparent', 'X-Forwarded-For', 'X-Auth-Subject', 'TE', 'Authorization'].map(
    (header) => ({
      name: `a key of ${header}`,
      text: `targets: [{ ${target}, key_from: { header: ${header} } }]`,
      expected: [
        /egress\.targets\[0\]\.key_from\.header is "[\w-]+", which does not go on as the caller sent it; allowed: a header of the caller/,
      ],
    }),
  ),
  ...['10', '101%', '-1%', '1.5%'].map((budget) => ({
    name: `the budget ${budget}`,
    text: `targets: [{ ${target}, retries: { budget: "${budget}" } }]`,
    expected: [/retries\.budget is .*; allowed: a whole percentage from 0% to 100%/],
  })),
];

t.test('what is wrong is named, with what is allowed', (t) => {
  for (const { name, text, expected } of wrong) {
    const problems = problemsOf(egress(text));
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    t.match(problems, expected, name);
  }
  t.end();
});
