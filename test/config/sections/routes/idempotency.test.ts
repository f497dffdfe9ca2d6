import t from 'tap';
import { compiled, errorsOf, problemsOf, withRoutes } from '../../inspection.js';

const store = { store: '{ redis: { url: "redis://127.0.0.1" } }' };
const who = 'subjects: [s], permissions: [p]';

/** A config with a store, whose routes are for POST and say this; they begin in line 6. */
function posts(...routes: readonly string[]): string {
  return withRoutes(
    routes.map((route, index) => `name: r${index}, methods: [POST], path: /r${index}, ${who}, ${route}`),
    store,
  );
}

function rulesOf(route: string) {
  return compiled(posts(route)).routes[0]?.reservation;
}

const standard = {
  key: 'required',
  singleUse: false,
  operation: 'r0',
  retentionMs: 86_400_000,
  fields: [],
  storeHeaders: new Set(),
  releaseOn: new Set([401, 403, 408, 421, 425, 429]),
  receiver: 'plain',
  maxBodyBytes: 1_048_576,
  maxStoredResponseBytes: 262_144,
};

const forms = [
  { input: 'idempotency: none', expected: null },
  { input: 'idempotency: { mode: none }', expected: null },
  { input: 'idempotency: none, single_use: false', expected: null },
  { input: 'idempotency: required', expected: standard },
  { input: 'idempotency: { mode: required }', expected: standard },
  { input: 'idempotency: optional', expected: { ...standard, key: 'optional' } },
  { input: 'idempotency: optional_over_http2', expected: { ...standard, key: 'optional_over_http2' } },
  { input: 'idempotency: required, single_use: true', expected: { ...standard, singleUse: true } },
  { input: 'idempotency: none, single_use: true', expected: { ...standard, key: null, singleUse: true } },
  {
    input: 'idempotency: { mode: none, max_body: 2KiB, max_stored_response: 0B }, single_use: true',
    expected: { ...standard, key: null, singleUse: true, maxBodyBytes: 2_048, maxStoredResponseBytes: 0 },
  },
  {
    input:
      'idempotency: { mode: optional, retention: 7d, operation: orders, fields: [If-Match, prefer, if-match], store_headers: [X-Total, ETag], ' +
      'release_on: [409], receiver: deduplicates, max_body: 16MiB, max_stored_response: 4MiB }, max_body: 20MiB',
    expected: {
      key: 'optional',
      singleUse: false,
      operation: 'orders',
      retentionMs: 604_800_000,
      fields: ['if-match', 'prefer'],
      storeHeaders: new Set(['x-total', 'etag']),
      releaseOn: new Set([409]),
      receiver: 'deduplicates',
      maxBodyBytes: 16_777_216,
      maxStoredResponseBytes: 4_194_304,
    },
  },
  { input: 'idempotency: { mode: required, release_on: [] }', expected: { ...standard, releaseOn: new Set() } },
  { input: 'idempotency: { mode: required, max_body: 2MiB }', expected: standard, name: 'the route’s own limit holds' },
];

t.test('what a route reserves, compiled', (t) => {
  for (const { input, expected, name } of forms) t.same(rulesOf(input), expected, name ?? input);
  const get = compiled(withRoutes([`name: r0, methods: [PUT], path: /a, ${who}, single_use: true`], store)).routes[0]
    ?.reservation;
  t.same(get, { ...standard, key: null, singleUse: true }, 'without a word on keys');
  t.end();
});

const bounds = [
  { key: 'retention', good: ['1h', '31d'], bad: ['59m', '32d', '1'] },
  { key: 'operation', good: ['a', '"a/b:c.d-e"', 'x'.repeat(128)], bad: ['""', '"a b"', '-a', 'x'.repeat(129)] },
  { key: 'release_on', good: ['[]', '[400, 599]'], bad: ['[399]', '[600]', '["409"]', '409'] },
  { key: 'receiver', good: ['plain', 'reports', 'deduplicates'], bad: ['maybe', 'true'] },
  { key: 'max_body', good: ['0B', '16MiB'], bad: ['17MiB', '16777217B'] },
  { key: 'max_stored_response', good: ['0B', '4MiB'], bad: ['5MiB', '4194305B'] },
  {
    key: 'fields',
    good: ['[]', '[Host]', '[If-Match, If-None-Match, Prefer, Accept-Language, X-Tenant]'],
    bad: [
      '[Authorization]',
      '[date]',
      '[Traceparent]',
      '[X-Request-Id]',
      '[Idempotency-Key]',
      '[Content-Type]',
      '[content-encoding]',
      '[X-Forwarded-Host]',
      '[X-Auth-Subject]',
      '[X-Forwarded-For]',
      '[Connection]',
      '["a b"]',
      '[""]',
      'If-Match',
    ],
  },
  {
    key: 'store_headers',
    good: ['[]', '[X-Total-Count, Vary, Content-Disposition, ETag]'],
    bad: [
      '[Set-Cookie]',
      '[set-cookie2]',
      '[WWW-Authenticate]',
      '[Proxy-Status]',
      '[Content-Length]',
      '[Date]',
      '[Traceparent]',
      '[X-Request-Id]',
      '[Cache-Control]',
      '[Idempotent-Replayed]',
      '[Access-Control-Allow-Origin]',
      '[RateLimit-Policy]',
      '[X-RateLimit-Remaining]',
      '[Transfer-Encoding]',
      'X-Total',
    ],
  },
];

t.test('the bounds of what a route reserves', (t) => {
  for (const { key, good, bad } of bounds) {
    for (const value of good) {
      t.same(errorsOf(posts(`idempotency: { mode: required, ${key}: ${value} }`)), [], `${key}: ${value}`);
    }
    for (const value of bad) {
      const expected = new RegExp(`^c\\.yaml:6:\\d+: error: routes\\[0\\]\\.idempotency\\.${key}(\\[0\\])? is `);
      t.match(errorsOf(posts(`idempotency: { mode: required, ${key}: ${value} }`)), [expected], `${key}: ${value}`);
    }
  }
  t.end();
});

const reasons = [
  {
    input: 'fields: [Date]',
    expected: 'fields[0] is "Date", which differs between honest retries; allowed: another header, such as If-Match',
  },
  {
    input: 'fields: [Content-Type]',
    expected: 'fields[0] is "Content-Type", which is compared in any case; allowed: another header, such as If-Match',
  },
  {
    input: 'fields: [X-Forwarded-Host]',
    expected:
      'fields[0] is "X-Forwarded-Host", which is never passed on as it came; allowed: another header, such as If-Match',
  },
  {
    input: 'store_headers: [Set-Cookie]',
    expected:
      'store_headers[0] is "Set-Cookie", which is never kept: it is one caller’s credential; allowed: another header, such as X-Total-Count',
  },
  {
    input: 'store_headers: [Date]',
    expected:
      'store_headers[0] is "Date", which is never kept: it belongs to one moment; allowed: another header, such as X-Total-Count',
  },
];

t.test('a field that is refused is refused with the reason', (t) => {
  for (const { input, expected } of reasons) {
    t.same(
      problemsOf(posts(`idempotency: { mode: required, ${input} }`)).map((line) => line.split('idempotency.')[1]),
      [expected],
    );
  }
  t.end();
});

const malformed = [
  {
    input: 'idempotency: maybe',
    expected: [
      /^c\.yaml:6:\d+: error: routes\[0\]\.idempotency is "maybe"; allowed: required, optional, optional_over_http2, none, or a map with mode$/,
    ],
  },
  { input: 'idempotency: true', expected: [/error: routes\[0\]\.idempotency is true; /] },
  { input: 'idempotency: null', expected: [/error: routes\[0\]\.idempotency is empty; /] },
  { input: 'idempotency: [required]', expected: [/error: routes\[0\]\.idempotency is a list; /] },
  {
    input: 'idempotency: {}',
    expected: [
      /error: routes\[0\]\.idempotency\.mode is missing; allowed: required, optional, optional_over_http2, none$/,
    ],
  },
  { input: 'idempotency: { mode: always }', expected: [/error: routes\[0\]\.idempotency\.mode is "always"; /] },
  {
    input: 'idempotency: { mode: required, retntion: 1h }',
    expected: [
      /error: unknown key "retntion" in routes\[0\]\.idempotency, did you mean "retention"\?; allowed: mode, because, retention, /,
    ],
  },
  {
    input: 'idempotency: required, single_use: "yes"',
    expected: [/error: routes\[0\]\.single_use is "yes"; allowed: true or false$/],
  },
];

t.test('what a route may not say of reservations', (t) => {
  for (const { input, expected } of malformed) {
    const problems = problemsOf(posts(input));
    t.equal(problems.length, expected.length, `${input}: ${problems.join('\n')}`);
    t.match(problems, expected, input);
  }
  t.end();
});

t.test('placeholders stand for numbers in it too', (t) => {
  const { config } = {
    config: compiled(
      posts('idempotency: { mode: "${env:MODE}", release_on: ["${env:STATUS}"] }, single_use: "${env:ONCE}"'),
      {
        env: { MODE: 'optional', STATUS: '409', ONCE: 'true' },
      },
    ),
  };
  t.match(config.routes[0]?.reservation, { key: 'optional', singleUse: true });
  t.same(config.routes[0]?.reservation?.releaseOn, new Set([409]));
  t.end();
});

/** Said by whoever decided that a write may run twice. */
const acknowledged = 'idempotency: { mode: none, because: a second one is taken for the first }';

interface Together {
  readonly name: string;
  readonly route: string;
  readonly store?: string;
  readonly expected: readonly RegExp[];
}

const together: readonly Together[] = [
  {
    name: 'a key without a store',
    route: `methods: [POST], ${who}, idempotency: optional`,
    store: 'null',
    expected: [
      /error: routes\[0\]\.idempotency needs a place to keep reservations, and no store is configured; allowed: store\.redis, or store\.memory for development$/,
    ],
  },
  {
    name: 'a map without a store',
    route: `methods: [POST], ${who}, idempotency: { mode: required }`,
    store: 'null',
    expected: [/error: routes\[0\]\.idempotency needs a place/],
  },
  {
    name: 'a single-use token without a store',
    route: `methods: [GET], ${who}, single_use: true`,
    store: 'null',
    expected: [/error: routes\[0\]\.single_use needs a place/],
  },
  {
    name: 'both without a store are one problem',
    route: `methods: [POST], ${who}, single_use: true, idempotency: required`,
    store: 'null',
    expected: [/idempotency needs a place/],
  },
  { name: 'nothing needs no store', route: `methods: [POST], ${who}, ${acknowledged}`, store: 'null', expected: [] },
  {
    name: 'a store that could not be read',
    route: `methods: [POST], ${who}, idempotency: required`,
    store: '{ redis: { url: x } }',
    expected: [/error: store\.redis\.url is "x"; /],
  },
  {
    name: 'another mistake in the route',
    route: 'methods: [POST], subjects: [s], permissions: [p], idempotency: required, max_body: 1',
    store: 'null',
    expected: [/error: routes\[0\]\.idempotency needs a place/, /error: routes\[0\]\.max_body is 1; /],
  },
  {
    name: 'a public route',
    route: 'methods: [POST], access: public, idempotency: required',
    expected: [
      /error: routes\[0\]\.idempotency stands beside routes\[0\]\.access: whose reservation it is would not be known; allowed: a protected route$/,
    ],
  },
  {
    name: 'a public route and a single-use token',
    route: 'methods: [GET], access: public, single_use: true',
    expected: [/error: routes\[0\]\.single_use stands beside routes\[0\]\.access/],
  },
  {
    name: 'settings without a key',
    route: `methods: [POST], ${who}, idempotency: { mode: none, retention: 1h, max_body: 1KiB }`,
    expected: [
      /warning: route "a" writes with idempotency: none/,
      /error: routes\[0\]\.idempotency\.retention has no use with mode: none; allowed: mode: required or optional$/,
      /error: routes\[0\]\.idempotency\.max_body has no use/,
    ],
  },
  {
    name: 'settings with a token alone',
    route: `methods: [POST], ${who}, single_use: true, idempotency: { mode: none, because: appends to a set, retention: 1h, max_body: 1KiB }`,
    expected: [/error: routes\[0\]\.idempotency\.retention has no use/],
  },
  {
    name: 'reads',
    route: `methods: [GET, POST], ${who}, idempotency: optional`,
    expected: [
      /warning: route "a" keeps results of GET: a repeated read gets the first answer; allowed: routes of their own for reads, with idempotency: none$/,
    ],
  },
  {
    name: 'every method',
    route: `methods: ["*"], ${who}, idempotency: required`,
    expected: [/warning: route "a" keeps results of GET, HEAD, OPTIONS: /],
  },
  { name: 'reads with a single-use token', route: `methods: [GET], ${who}, single_use: true`, expected: [] },
  {
    name: 'statuses after which the write may have happened',
    route: `methods: [POST], ${who}, idempotency: { mode: required, release_on: [409, 500, 503, 504] }`,
    expected: [
      /warning: routes\[0\]\.idempotency\.release_on\[1\] is 500, which an upstream may answer after it acted: the write may then run twice; /,
      /release_on\[3\] is 504/,
    ],
  },
];

t.test('reservations and the rest of the config', (t) => {
  for (const { name, route, store: written, expected } of together) {
    const problems = problemsOf(
      withRoutes([`name: a, path: /a, ${route}`], written === undefined ? store : { store: written }),
    );
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    t.match(problems, expected, name);
  }
  t.end();
});

t.test('two routes may share an operation', (t) => {
  const text = posts('idempotency: required', 'idempotency: { mode: required, operation: r0 }');
  t.same(problemsOf(text), []);
  t.same(
    compiled(text).routes.map(({ reservation }) => reservation?.operation),
    ['r0', 'r0'],
  );
  t.end();
});

t.test('a spelling that passes without the key or with a used token is refused', (t) => {
  const path = (name: string, text: string, more: string): string =>
    `name: ${name}, methods: [POST], path: ${text}, ${who}, ${more}`;
  const rows = [
    { guard: 'idempotency: required', open: 'idempotency: none', refused: true },
    { guard: 'idempotency: required', open: 'idempotency: optional', refused: true },
    { guard: 'idempotency: required', open: 'idempotency: required', refused: false },
    { guard: 'idempotency: optional', open: 'idempotency: none', refused: false },
    { guard: 'idempotency: none, single_use: true', open: 'idempotency: required', refused: true },
    { guard: 'idempotency: none, single_use: true', open: 'idempotency: none, single_use: true', refused: false },
  ];
  for (const { guard, open, refused } of rows) {
    const problems = errorsOf(withRoutes([path('guard', '/orders', guard), path('open', '"/{any}"', open)], store));
    t.equal(
      problems.some((problem) => problem.includes('route "open"') && problem.includes('less restrictive')),
      refused,
      `${guard} · ${open}`,
    );
    const strict = {
      ...store,
      receiver:
        '{ case_sensitive: true, strict_slash: true, format_suffix: false, trailing_dots: false, head_as_get: false }',
    };
    t.same(
      errorsOf(withRoutes([path('guard', '/orders', guard), path('open', '"/{any}"', open)], strict)),
      [],
      'a strict router tells them apart',
    );
  }
  t.end();
});

t.test('neither a key nor a token that passes once has a meaning for a WebSocket connection', (t) => {
  for (const route of ['idempotency: required', 'idempotency: { mode: optional }', 'single_use: true']) {
    const key = route.split(':')[0] ?? '';
    const text = withRoutes([`name: a, methods: [GET], path: /a, ${who}, websocket: true, ${route}`], store);
    t.match(
      errorsOf(text).join('\n'),
      `routes[0].${key} stands beside routes[0].websocket; allowed: one of them`,
      route,
    );
  }
  t.end();
});

t.test('a route that writes unreserved is a warning that names the risk, until it says why', (t) => {
  const none = 'idempotency: none';
  const rows: readonly { readonly name: string; readonly route: string; readonly expected: readonly RegExp[] }[] = [
    {
      name: 'a POST',
      route: `methods: [POST], ${who}, ${none}`,
      expected: [
        new RegExp(
          '^c\\.yaml:6:\\d+: warning: route "a" writes with idempotency: none: a POST that is sent again, by a caller that got no answer ' +
            'or whoever has its token, runs again; allowed: required; or \\{ mode: none, because: "…" \\} with the reason why that does no harm$',
        ),
      ],
    },
    {
      name: 'as a map',
      route: `methods: [POST], ${who}, idempotency: { mode: none }`,
      expected: [/warning: route "a" writes with idempotency: none/],
    },
    {
      name: 'every writing method',
      route: `methods: [GET, DELETE, PATCH, PUT, POST], ${who}, ${none}`,
      expected: [/none: a POST, PUT, PATCH, DELETE that/],
    },
    {
      name: 'all methods',
      route: `methods: ["*"], ${who}, ${none}`,
      expected: [/none: a POST, PUT, PATCH, DELETE that/],
    },
    {
      name: 'PUT',
      route: `methods: [PUT], ${who}, ${none}`,
      expected: [/none: a PUT that .*; or no idempotency at all where a repeated PUT changes nothing more$/],
    },
    {
      name: 'DELETE and PATCH',
      route: `methods: [DELETE, PATCH], ${who}, ${none}`,
      expected: [/why that does no harm$/],
    },
    { name: 'PUT and DELETE that say nothing', route: `methods: [PUT, DELETE], ${who}`, expected: [] },
    { name: 'reads', route: `methods: [GET, HEAD], ${who}, ${none}`, expected: [] },
    {
      name: 'a token that passes once',
      route: `methods: [POST], ${who}, ${none}, single_use: true`,
      expected: [
        /a POST that is sent again, by a caller that got no answer and has a new token, runs again; allowed: required; or/,
      ],
    },
    {
      name: 'a public route',
      route: `methods: [POST], access: public, ${none}`,
      expected: [/sent again, by anybody, runs again; allowed: \{ mode: none, because: "…" \} with/],
    },
    { name: 'acknowledged', route: `methods: [POST], ${who}, ${acknowledged}`, expected: [] },
    {
      name: 'acknowledged, a token that passes once',
      route: `methods: [POST], ${who}, ${acknowledged}, single_use: true`,
      expected: [],
    },
    { name: 'optional', route: `methods: [POST], ${who}, idempotency: optional`, expected: [] },
    {
      name: 'an empty reason',
      route: `methods: [POST], ${who}, idempotency: { mode: none, because: "" }`,
      expected: [
        /error: routes\[0\]\.idempotency\.because is ""; allowed: why a write may run again: 1 to 500 characters in one line$/,
      ],
    },
    {
      name: 'a blank reason',
      route: `methods: [POST], ${who}, idempotency: { mode: none, because: "  " }`,
      expected: [/error: routes\[0\]\.idempotency\.because is "  "/],
    },
    {
      name: 'two lines',
      route: `methods: [POST], ${who}, idempotency: { mode: none, because: "a\\nb" }`,
      expected: [/error: routes\[0\]\.idempotency\.because is/],
    },
    {
      name: 'no text',
      route: `methods: [POST], ${who}, idempotency: { mode: none, because: true }`,
      expected: [/error: routes\[0\]\.idempotency\.because is true/],
    },
    {
      name: 'a reason for nothing',
      route: `methods: [POST], ${who}, idempotency: { mode: required, because: x }`,
      expected: [
        /error: routes\[0\]\.idempotency\.because has no use with mode: required; allowed: mode: none, or no because$/,
      ],
    },
  ];
  for (const { name, route, expected } of rows) {
    const problems = problemsOf(withRoutes([`name: a, path: /a, ${route}`], store));
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    t.match(problems, expected, name);
  }
  t.equal(compiled(posts(acknowledged)).routes[0]?.unreservedBecause, 'a second one is taken for the first');
  t.equal(compiled(posts('idempotency: required')).routes[0]?.unreservedBecause, null);
  t.end();
});
