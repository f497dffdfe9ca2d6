import t from 'tap';
import { compiled, errorsOf, problemsOf, withRoutes } from '../../inspection.js';

const who = 'subjects: [s], permissions: [p]';

const cases = [
  { name: 'as usual', input: `name: a, methods: [GET], path: /a, ${who}`, expected: [] },
  {
    name: 'pairs',
    input: 'name: a, methods: [GET], path: /a, any_of: [{ subjects: [s], permissions: [p] }]',
    expected: [],
  },
  {
    name: 'a text',
    input: 'a',
    expected: [
      /5:5: error: unknown key "a" in routes\[0\]/,
      /name is missing/,
      /methods is missing/,
      /path is missing/,
      /does not say who/,
    ],
  },
  {
    name: 'no name',
    input: `methods: [GET], path: /a, ${who}`,
    expected: [/5:3: error: routes\[0\]\.name is missing; allowed: 1 to 128 letters, /],
  },
  {
    name: 'a name with a space',
    input: `name: a b, methods: [GET], path: /a, ${who}`,
    expected: [/5:11: error: routes\[0\]\.name is "a b"; /],
  },
  {
    name: 'a name that means something else',
    input: `name: none, methods: [GET], path: /a, ${who}`,
    expected: [/error: routes\[0\]\.name is "none", which stands for no route; /],
  },
  { name: 'the longest name', input: `name: ${'n'.repeat(128)}, methods: [GET], path: /a, ${who}`, expected: [] },
  {
    name: 'too long a name',
    input: `name: ${'n'.repeat(129)}, methods: [GET], path: /a, ${who}`,
    expected: [/error: routes\[0\]\.name is "n+…; /],
  },
  {
    name: 'no methods',
    input: `name: a, methods: [], path: /a, ${who}`,
    expected: [/error: routes\[0\]\.methods is an empty list; allowed: a list of methods, at least one$/],
  },
  {
    name: 'one method without a list',
    input: `name: a, methods: GET, path: /a, ${who}`,
    expected: [/error: routes\[0\]\.methods is "GET"; allowed: a list of methods/],
  },
  {
    name: 'a method in lower case',
    input: `name: a, methods: [get], path: /a, ${who}`,
    expected: [/5:24: error: routes\[0\]\.methods\[0\] is "get"; allowed: an upper-case method other than TRACE, /],
  },
  ...['TRACE', 'TRACK', 'CONNECT', '"GE T"', '""', '"G:"'].map((method) => ({
    name: `the method ${method}`,
    input: `name: a, methods: [${method}], path: /a, ${who}`,
    expected: [/error: routes\[0\]\.methods\[0\] is "/],
  })),
  {
    name: 'a method of one’s own',
    input: `name: a, methods: [PURGE-ALL], path: /a, ${who}`,
    expected: [/warning: .* no registered method/],
  },
  {
    name: 'a method twice',
    input: `name: a, methods: [GET, GET], path: /a, ${who}`,
    expected: [/error: routes\[0\]\.methods\[1\] is "GET", which the list has before; allowed: each method once$/],
  },
  {
    name: 'every method and one',
    input: `name: a, methods: ["*", GET], path: /a, ${who}, idempotency: { mode: none, because: x }`,
    expected: [/5:23: error: routes\[0\]\.methods has \* beside other methods; /],
  },
  {
    name: 'every method',
    input: `name: a, methods: ["*"], path: /a, ${who}, idempotency: { mode: none, because: x }`,
    expected: [],
  },
  ...['POST', 'PATCH', '"*"', 'GET, POST'].map((methods) => ({
    name: `${methods} without a word on repetition`,
    input: `name: a, methods: [${methods}], path: /a, ${who}`,
    expected: [
      /5:3: error: routes\[0\]\.idempotency is missing: a route for POST or PATCH has to say what a repeated request does; allowed: required, optional or none$/,
    ],
  })),
  { name: 'PUT and DELETE need none', input: `name: a, methods: [PUT, DELETE], path: /a, ${who}`, expected: [] },
  {
    name: 'a public POST needs one',
    input: 'name: a, methods: [POST], path: /a, access: public',
    expected: [/error: routes\[0\]\.idempotency is missing/],
  },
  {
    name: 'nobody',
    input: 'name: a, methods: [GET], path: /a',
    expected: [
      /5:3: error: routes\[0\] does not say who is let through; allowed: subjects and permissions, any_of, or access: public$/,
    ],
  },
  {
    name: 'no permissions written',
    input: 'name: a, methods: [GET], path: /a, subjects: [s]',
    expected: [/5:3: error: routes\[0\]\.permissions is missing; allowed: a list; \[\] where none is needed$/],
  },
  {
    name: 'no subjects written',
    input: 'name: a, methods: [GET], path: /a, permissions: [p]',
    expected: [/5:3: error: routes\[0\]\.subjects is missing; allowed: a list$/],
  },
  {
    name: 'no subjects',
    input: 'name: a, methods: [GET], path: /a, subjects: [], permissions: [p]',
    expected: [/error: routes\[0\]\.subjects is an empty list; /],
  },
  ...['orders:read orders:write', 'ändern', '\\"'].map((permission) => ({
    name: `ADR 0010: a permission ${permission}, which no token can grant`,
    input: `name: a, methods: [GET], path: /a, subjects: [s], permissions: [p, "${permission}"]`,
    expected: [
      /error: routes\[0\]\.permissions\[1\] is ".*; allowed: 1 to 256 visible ASCII characters without blank, `"` and `\\`: another permission grants nothing$/,
    ],
  })),
  {
    name: 'a beginning that does not end in a slash',
    input: 'name: a, methods: [GET], path: /a, subjects: [{ prefix: orders }], permissions: [p]',
    expected: [
      /error: routes\[0\]\.subjects\[0\]\.prefix is "orders"; allowed: 2 to 256 visible ASCII characters that end in a slash/,
    ],
  },
  ...['/', '//', 'spiffe://', '"a b/"'].map((prefix) => ({
    name: `a beginning ${prefix}`,
    input: `name: a, methods: [GET], path: /a, subjects: [{ prefix: ${prefix} }], permissions: [p]`,
    expected: [/error: routes\[0\]\.subjects\[0\]\.prefix is /],
  })),
  {
    name: 'a pattern of another kind',
    input: 'name: a, methods: [GET], path: /a, subjects: [{ suffix: /x }], permissions: [p]',
    expected: [
      /error: unknown key "suffix" in routes\[0\]\.subjects\[0\]/,
      /error: routes\[0\]\.subjects\[0\]\.prefix is missing/,
    ],
  },
  {
    name: 'a number for a subject',
    input: 'name: a, methods: [GET], path: /a, subjects: [5], permissions: [p]',
    expected: [/error: routes\[0\]\.subjects\[0\] is 5; allowed: 1 to 256 visible ASCII characters/],
  },
  {
    name: 'a subject with a space',
    input: 'name: a, methods: [GET], path: /a, subjects: [a b], permissions: [p]',
    expected: [/error: routes\[0\]\.subjects\[0\] is "a b"; /],
  },
  {
    name: 'no permission needed',
    input: 'name: a, methods: [GET], path: /a, subjects: [s], permissions: []',
    expected: [],
  },
  {
    name: 'no permission needed in a pair',
    input: 'name: a, methods: [GET], path: /a, any_of: [{ subjects: [s], permissions: [] }]',
    expected: [],
  },
  ...['"a b"', '"a\\"b"', '"a\\\\b"', '""', '"é"', '5'].map((permission) => ({
    name: `the permission ${permission}`,
    input: `name: a, methods: [GET], path: /a, subjects: [s], permissions: [${permission}]`,
    expected: [/error: routes\[0\]\.permissions\[0\] is /],
  })),
  {
    name: 'pairs beside permissions',
    input: 'name: a, methods: [GET], path: /a, permissions: [p], any_of: [{ subjects: [s], permissions: [p] }]',
    expected: [/5:40: error: routes\[0\]\.permissions stands beside routes\[0\]\.any_of; /],
  },
  {
    name: 'pairs that are no list',
    input: 'name: a, methods: [GET], path: /a, any_of: { a: b }',
    expected: [/error: routes\[0\]\.any_of is a map; /],
  },
  {
    name: 'no pairs',
    input: 'name: a, methods: [GET], path: /a, any_of: []',
    expected: [/error: routes\[0\]\.any_of is an empty list; /],
  },
  {
    name: 'an unknown key of a pair',
    input: 'name: a, methods: [GET], path: /a, any_of: [{ subjects: [s], permissions: [p], permission: p }]',
    expected: [
      /error: unknown key "permission" in routes\[0\]\.any_of\[0\], did you mean "permissions"\?; allowed: subjects, permissions$/,
    ],
  },
  {
    name: 'half a pair',
    input: 'name: a, methods: [GET], path: /a, any_of: [{ subjects: [s] }]',
    expected: [/5:49: error: routes\[0\]\.any_of\[0\]\.permissions is missing; /],
  },
  { name: 'WebSockets', input: `name: a, methods: [GET], path: /a, ${who}, websocket: true`, expected: [] },
  {
    name: 'WebSockets for some pages',
    input: `name: a, methods: [GET], path: /a, ${who}, websocket: true, origins: ["https://a.example", "http://[::1]:8080"]`,
    expected: [],
  },
  {
    name: 'origins without WebSockets',
    input: `name: a, methods: [GET], path: /a, ${who}, origins: ["https://a.example"]`,
    expected: [
      /error: routes\[0\]\.origins says who may open WebSockets, and the route takes none; allowed: websocket: true$/,
    ],
  },
  ...['https://a.example/', 'https://A.example', 'a.example', 'null', 'wss://a.example', '*'].map((origin) => ({
    name: `the origin ${origin}`,
    input: `name: a, methods: [GET], path: /a, ${who}, websocket: true, origins: ["${origin}"]`,
    expected: [/error: routes\[0\]\.origins\[0\] is /],
  })),
  {
    name: 'no WebSockets',
    input: `name: a, methods: [GET, POST], path: /a, ${who}, websocket: false, idempotency: { mode: none, because: x }`,
    expected: [],
  },
  {
    name: 'WebSockets in a text',
    input: `name: a, methods: [GET], path: /a, ${who}, websocket: yes`,
    expected: [/error: routes\[0\]\.websocket is "yes"; allowed: true or false$/],
  },
  ...['GET, HEAD', 'POST', '"*"'].map((methods) => ({
    name: `WebSockets and ${methods}`,
    input: `name: a, methods: [${methods}], path: /a, ${who}, websocket: true, idempotency: { mode: none, because: x }`,
    expected: [
      /error: routes\[0\] takes WebSockets and has other methods than GET; allowed: \[GET\]; a route of their own for other methods$/,
    ],
  })),
  {
    name: 'WebSockets without reservations',
    input: `name: a, methods: [GET], path: /a, ${who}, websocket: true, idempotency: { mode: none }, single_use: false`,
    expected: [],
  },
  { name: 'public', input: 'name: a, methods: [GET], path: /a, access: public', expected: [] },
  ...['subjects: [s]', 'permissions: [p]', 'any_of: [{ subjects: [s], permissions: [p] }]', 'issuers: [core]'].map(
    (key) => ({
      name: `public beside ${key}`,
      input: `name: a, methods: [GET], path: /a, ${key}, access: public`,
      expected: [/5:40: error: routes\[0\]\.\w+ stands beside routes\[0\]\.access; allowed: one of them$/],
    }),
  ),
  {
    name: 'another access',
    input: 'name: a, methods: [GET], path: /a, access: private',
    expected: [/error: routes\[0\]\.access is "private"; allowed: public$/],
  },
  { name: 'an issuer', input: `name: a, methods: [GET], path: /a, ${who}, issuers: [core]`, expected: [] },
  {
    name: 'an unknown issuer',
    input: `name: a, methods: [GET], path: /a, ${who}, issuers: [cor]`,
    expected: [/error: routes\[0\]\.issuers\[0\] is "cor", which is no issuer; allowed: core$/],
  },
  {
    name: 'no issuers',
    input: `name: a, methods: [GET], path: /a, ${who}, issuers: []`,
    expected: [/error: routes\[0\]\.issuers is an empty list; /],
  },
  { name: 'no body', input: `name: a, methods: [GET], path: /a, ${who}, max_body: 0B`, expected: [] },
  {
    name: 'body is a word',
    input: `name: a, methods: [GET], path: /a, ${who}, body: true`,
    expected: [/error: routes\[0\]\.body is true; allowed: refuse, allow$/],
  },
  {
    name: 'no paths',
    input: `name: a, methods: [GET], path: [], ${who}`,
    expected: [/error: routes\[0\]\.path is an empty list; allowed: a list of paths, at least one$/],
  },
  {
    name: 'an unknown key',
    input: `name: a, methods: [GET], path: /a, ${who}, permisions: [x]`,
    expected: [
      /error: unknown key "permisions" in routes\[0\], did you mean "permissions"\?; allowed: name, methods, path, /,
    ],
  },
];

t.test('a route that says too little, too much or something else is told of with its place', (t) => {
  for (const { name, input, expected } of cases) {
    const problems = problemsOf(withRoutes([input]));
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    for (const pattern of expected) {
      t.ok(
        problems.some((line) => pattern.test(line)),
        `${name}: ${pattern.source} in ${problems.join('\n')}`,
      );
    }
  }
  t.end();
});

t.test('every problem of a route at once', (t) => {
  t.same(
    errorsOf(
      withRoutes(['name: none, methods: [post, PATCH], path: /a/../b, subjects: [], issuers: [x], max_body: 1']),
    ).map((line) => line.split(';')[0]),
    [
      'c.yaml:5:3: error: routes[0].idempotency is missing: a route for POST or PATCH has to say what a repeated request does',
      'c.yaml:5:3: error: routes[0].permissions is missing',
      'c.yaml:5:11: error: routes[0].name is "none", which stands for no route',
      'c.yaml:5:27: error: routes[0].methods[0] is "post"',
      'c.yaml:5:47: error: routes[0].path has "..", which no request may have',
      'c.yaml:5:66: error: routes[0].subjects is an empty list',
      'c.yaml:5:80: error: routes[0].issuers[0] is "x", which is no issuer',
      'c.yaml:5:94: error: routes[0].max_body is 1',
    ],
  );
  t.end();
});

t.test('names are unique, and both lines are told', (t) => {
  const routes = [
    ['a', '/a'],
    ['b', '/b'],
    ['a', '/c'],
  ].map(([name, path]) => `name: ${name ?? ''}, methods: [GET], path: ${path ?? ''}, ${who}`);
  t.same(problemsOf(withRoutes(routes)), [
    'c.yaml:7:11: error: routes[2].name is "a", like that of the route in line 5; allowed: a name of its own',
  ]);
  t.end();
});

t.test('what is no name is not compared with others', (t) => {
  t.match(
    problemsOf(withRoutes([`name: 5, methods: [GET], path: /a, ${who}`, `name: 5, methods: [GET], path: /b, ${who}`])),
    [/routes\[0\]\.name is 5; /, /routes\[1\]\.name is 5; /],
  );
  t.end();
});

const lists = [
  {
    name: 'none',
    input: 'routes: []\n',
    expected: [/error: routes is an empty list; allowed: a list of routes, at least one$/],
  },
  { name: 'a map', input: 'routes: { a: b }\n', expected: [/error: routes is a map; allowed: a list of routes/] },
  {
    name: 'missing',
    input: '',
    expected: [/^c\.yaml:1:1: error: routes is missing; allowed: a list of routes, at least one$/],
  },
  { name: 'a text in it', input: 'routes: [a]\n', expected: [/error: routes\[0\] is a text; allowed: a map$/] },
  { name: 'nothing in it', input: 'routes:\n-\n', expected: [/error: routes\[0\] is empty; allowed: a map$/] },
];

t.test('there are routes', (t) => {
  for (const { name, input, expected } of lists) {
    const text = withRoutes([]).replace('routes:\n', input);
    const problems = problemsOf(text);
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    t.match(problems, expected, name);
  }
  t.end();
});

t.test('routes, compiled', (t) => {
  const [plain, rich, open] = compiled(
    withRoutes(
      [
        `name: a, methods: [GET], path: "/a/{id}", ${who}`,
        'name: b, methods: [GET, HEAD], path: [/b, "/c/**"], any_of: [{ subjects: [s, t], permissions: [p, q] }, { subjects: [u, { prefix: orders/ }, { prefix: orders/ }], permissions: [] }], ' +
          'issuers: [core], body: allow, max_body: 2MiB, encoded_slashes: allow, path_parameters: allow, forward_authorization: false, response_timeout: 1s',
        'name: c, methods: ["*"], path: /, access: public, idempotency: { mode: none, because: x }',
      ],
      {
        identity: '{ forward_authorization: true }',
        upstream: '{ url: "http://127.0.0.1:3000", response_timeout: 7s }',
      },
    ),
  ).routes;
  t.same(plain, {
    name: 'a',
    methods: new Set(['GET']),
    paths: [
      {
        text: '/a/{id}',
        segments: [
          { kind: 'literal', text: 'a' },
          { kind: 'parameter', name: 'id' },
        ],
      },
    ],
    access: 'protected',
    mode: 'enforce',
    acceptsService: true,
    session: null,
    approvals: [{ subjects: new Set(['s']), prefixes: [], permissions: ['p'] }],
    issuers: null,
    isGrpc: false,
    allowsWebSocket: false,
    origins: null,
    allowsBody: false,
    encodedSlashes: false,
    pathParameters: false,
    forwardsAuthorization: true,
    maxBodyBytes: 1_048_576,
    responseTimeoutMs: 7_000,
    reservation: null,
    clientCertificates: null,
    unreservedBecause: null,
    limits: null,
  });
  t.same(rich, {
    name: 'b',
    methods: new Set(['GET', 'HEAD']),
    paths: [
      { text: '/b', segments: [{ kind: 'literal', text: 'b' }] },
      { text: '/c/**', segments: [{ kind: 'literal', text: 'c' }, { kind: 'rest' }] },
    ],
    access: 'protected',
    mode: 'enforce',
    acceptsService: true,
    session: null,
    approvals: [
      { subjects: new Set(['s', 't']), prefixes: [], permissions: ['p', 'q'] },
      { subjects: new Set(['u']), prefixes: ['orders/'], permissions: [] },
    ],
    issuers: new Set(['core']),
    isGrpc: false,
    allowsWebSocket: false,
    origins: null,
    allowsBody: true,
    encodedSlashes: true,
    pathParameters: true,
    forwardsAuthorization: false,
    maxBodyBytes: 2_097_152,
    responseTimeoutMs: 1_000,
    reservation: null,
    clientCertificates: null,
    unreservedBecause: null,
    limits: null,
  });
  t.match(
    open,
    { methods: null, access: 'public', approvals: [], forwardsAuthorization: false },
    'a public route forwards no credential unless it says so',
  );
  t.equal(
    compiled(withRoutes(['name: c, methods: [GET], path: /, access: public, forward_authorization: true'])).routes[0]
      ?.forwardsAuthorization,
    true,
  );
  t.end();
});
