import t from 'tap';
import { compiled, problemsOf as allProblemsOf, withRoutes } from '../../inspection.js';

const http1 = /warning: routes\[0\]\.grpc has an upstream that is asked in HTTP\/1\.1; allowed: upstream\.http2: true$/;

/** Without the one that has a test of its own. */
const problemsOf = (text: string): readonly string[] => allProblemsOf(text).filter((problem) => !http1.test(problem));

const who = 'subjects: [s], permissions: [p]';
const reserving = 'idempotency: { mode: none, because: reads }';
const named = 'allowed: a service with its package, such as shop.v1.Orders, or a method: shop.v1.Orders/List';

const cases: readonly { readonly name: string; readonly input: string; readonly expected: readonly string[] }[] = [
  { name: 'a method', input: `name: a, grpc: shop.v1.Orders/List, ${who}, ${reserving}`, expected: [] },
  { name: 'a service', input: `name: a, grpc: shop.v1.Orders, ${who}, ${reserving}`, expected: [] },
  { name: 'several', input: `name: a, grpc: [shop.v1.Orders, shop.v1.Stock/Get], ${who}, ${reserving}`, expected: [] },
  {
    name: 'a path',
    input: `name: a, grpc: /shop.v1.Orders/List, ${who}, ${reserving}`,
    expected: [`c.yaml:5:20: error: routes[0].grpc begins with /; ${named}`],
  },
  {
    name: 'a pattern',
    input: `name: a, grpc: [shop.v1.Orders/*], ${who}, ${reserving}`,
    expected: [
      `c.yaml:5:21: error: routes[0].grpc[0] has an asterisk: a service alone is all of its methods; ${named}`,
    ],
  },
  {
    name: 'neither methods nor grpc',
    input: `name: a, ${who}, ${reserving}`,
    expected: [
      'c.yaml:5:3: error: routes[0].methods is missing; allowed: a list of methods, at least one; of gRPC routes grpc',
      'c.yaml:5:3: error: routes[0].path is missing; allowed: one or a list of paths; of gRPC routes grpc',
    ],
  },
  {
    name: 'both',
    input: `name: a, grpc: A, methods: [POST], path: /a, ${who}, ${reserving}`,
    expected: [
      'c.yaml:5:23: error: routes[0].methods stands beside routes[0].grpc; allowed: one of them',
      'c.yaml:5:40: error: routes[0].path stands beside routes[0].grpc; allowed: one of them',
    ],
  },
  {
    name: 'no word on repeated calls',
    input: `name: a, grpc: A, ${who}`,
    expected: [
      'c.yaml:5:3: error: routes[0].idempotency is missing: a route for gRPC calls has to say what a repeated request does; ' +
        'allowed: required, optional or none',
    ],
  },
  ...[
    'websocket: true',
    'origins: ["https://a"]',
    'body: allow',
    'encoded_slashes: allow',
    'path_parameters: allow',
  ].map((key) => {
    const [word = ''] = key.split(':');
    return {
      name: word,
      input: `name: a, grpc: A, ${key}, ${who}, ${reserving}`,
      expected: [
        `c.yaml:5:23: error: routes[0].${word} has no use with routes[0].grpc: ${
          word === 'body'
            ? 'every call has a body'
            : word === 'encoded_slashes'
              ? 'names of methods have no slash'
              : word === 'path_parameters'
                ? 'names of methods have no semicolon'
                : 'no call opens a WebSocket'
        }; allowed: no ${word}`,
      ],
    };
  }),
];

for (const { name, input, expected } of cases) {
  t.test(`gRPC routes: ${name}`, (t) => {
    t.same(problemsOf(withRoutes([input])), expected);
    t.end();
  });
}

t.test('a reserving gRPC route is held to the same, and calls are writes', (t) => {
  t.match(problemsOf(withRoutes([`name: a, grpc: A, ${who}, idempotency: none`])), [/warning: route "a" writes with/]);
  t.match(
    problemsOf(withRoutes([`name: a, grpc: A, ${who}, idempotency: { mode: required, release_on: [401, 429, 504] }`])),
    [/error: .* needs a place to keep/, /release_on\[1\] is 429, which .* after it acted/, /release_on\[2\] is 504/],
    'RESOURCE_EXHAUSTED may be what a server says that acted',
  );
  t.end();
});

t.test('what gRPC routes compile to', (t) => {
  const { routes } = compiled(
    withRoutes([
      `name: list, grpc: shop.v1.Orders/List, ${who}, ${reserving}`,
      `name: rest, grpc: [shop.v1.Orders, A/B], ${who}, ${reserving}`,
      `name: http, methods: [GET], path: /a, ${who}`,
    ]),
  );
  t.match(routes[0], {
    isGrpc: true,
    methods: new Set(['POST']),
    paths: [{ text: '/shop.v1.Orders/List' }],
    reservation: null,
  });
  t.match(routes[1], { isGrpc: true, paths: [{ text: '/shop.v1.Orders/{method}' }, { text: '/A/B' }] });
  t.match(routes[2], { isGrpc: false });
  t.end();
});

t.test('which codes free a key unless the route says so', (t) => {
  const store = '\nstore: { memory: {} }\n';
  const releaseOn = (place: string): unknown =>
    compiled(`${withRoutes([`name: a, ${place}, ${who}, idempotency: required`])}${store}`).routes[0]?.reservation
      ?.releaseOn;
  t.same(releaseOn('grpc: A/B'), new Set([401, 403]));
  t.same(releaseOn('methods: [POST], path: /a'), new Set([401, 403, 408, 421, 425, 429]));
  t.end();
});

t.test('ties are found between the two ways to write a route, and named at their place', (t) => {
  const routes = [
    `name: a, grpc: [A/B, A/C], ${who}, ${reserving}`,
    `name: b, methods: [POST], path: /A/C, ${who}, ${reserving}`,
  ];
  t.match(problemsOf(withRoutes(routes)), [/c\.yaml:6:\d+: error: route "b" with "\/A\/C" .* ties with route "a"/]);
  t.match(problemsOf(withRoutes([`name: a, grpc: [A, A/B, A], ${who}, ${reserving}`])), [
    /c\.yaml:5:29: error: routes\[0\]\.grpc\[2\] is the same path as in line 5/,
  ]);
  t.end();
});

t.test('a method is more specific than its service, and lax spellings of it are looked up', (t) => {
  const routes = [
    `name: cancel, grpc: shop.Orders/Cancel, subjects: [admin], permissions: [p], ${reserving}`,
    `name: rest, grpc: shop.Orders, ${who}, ${reserving}`,
  ];
  t.match(problemsOf(withRoutes(routes)), [/receiver\.case_sensitive: true/]);
  t.end();
});

t.test('a gRPC route asks for an upstream of HTTP/2', (t) => {
  const text = withRoutes([`name: a, grpc: A/B, ${who}, ${reserving}`]);
  t.match(allProblemsOf(text), [http1]);
  t.same(allProblemsOf(text.replace(/(upstream:.*?\{? ?)(url:)/s, '$1http2: true, $2')), []);
  t.same(allProblemsOf(withRoutes([`name: a, methods: [GET], path: /a, ${who}`])), []);
  t.end();
});

t.test('the health service has a route, or is answered here, and not both', (t) => {
  const health = `name: a, grpc: [A, grpc.health.v1.Health/Check], ${who}, ${reserving}`;
  const answering = (routes: readonly string[]): string =>
    withRoutes(routes).replace(/listen: \{/, 'listen: { http2: true, grpc_health: answer,');
  t.same(problemsOf(withRoutes([health])), []);
  t.match(problemsOf(answering([health])), [
    /error: routes\[0\]\.grpc names grpc\.health\.v1\.Health, which is answered here: listen\.grpc_health is answer; /,
  ]);
  t.equal(compiled(answering([`name: a, grpc: A, ${who}, ${reserving}`])).listen.answersGrpcHealth, true);
  t.equal(compiled(withRoutes([health])).listen.answersGrpcHealth, false);
  t.end();
});
