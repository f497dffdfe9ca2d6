import t from 'tap';
import { compiled, problemsOf, withRoutes } from '../../inspection.js';

function route(name: string, path: string, who: string, methods = 'GET'): string {
  const approved = who === 'public' ? 'access: public' : `subjects: [${who}], permissions: [p]`;
  return `name: ${name}, methods: [${methods}], path: ${path}, ${approved}`;
}

const tie = 'allowed: paths that differ in more than the names of parameters, or other methods';

const ties = [
  {
    name: 'the same path',
    routes: [route('a', '/x', 's'), route('b', '/x', 's')],
    expected: `c.yaml:6:36: error: route "b" with "/x" (line 6) ties with route "a" with "/x" (line 5) for GET: nothing says which of them wins; ${tie}`,
  },
  {
    name: 'names of parameters',
    routes: [route('a', '"/x/{a}"', 's'), route('b', '[/y, "/x/{b}"]', 's', 'PUT, GET')],
    expected:
      'c.yaml:6:46: error: route "b" with "/x/{b}" (line 6) ties with route "a" with "/x/{a}" (line 5) for GET: ' +
      `nothing says which of them wins; ${tie}`,
  },
  {
    name: 'one route',
    routes: [route('a', '["/x/{a}", "/x/{b}"]', 's')],
    expected: `c.yaml:5:47: error: routes[0].path[1] is the same path as in line 5; ${tie}`,
  },
];

t.test('routes that tie are an error naming both lines', (t) => {
  for (const { name, routes, expected } of ties) t.same(problemsOf(withRoutes(routes)), [expected], name);
  const every = [
    'name: a, methods: ["*"], path: /x, subjects: [s], permissions: [p], idempotency: { mode: none, because: x }',
    route('b', '/x', 's'),
  ];
  t.match(problemsOf(withRoutes(every)), [
    /^c\.yaml:6:36: error: route "b" with "\/x" \(line 6\) ties with route "a" with "\/x" \(line 5\) for GET: /,
  ]);
  t.end();
});

t.test('a path that no request reaches is doubtful', (t) => {
  const shadowed = [route('a', '"/x/**"', 's'), route('b', '["/x/", "/x/{y}", "/x/{y}/**"]', 's')];
  t.same(problemsOf(withRoutes(shadowed)), [
    'c.yaml:5:36: warning: route "a" with "/x/**" (line 5) can never be reached: more specific paths take every request; ' +
      'allowed: a path that some request reaches',
  ]);
  t.not(compiled(withRoutes(shadowed)), null);
  t.end();
});

const fold = (places: string): string =>
  `${places}; allowed: the same approvals on both, or receiver.case_sensitive: true, ` +
  'receiver.strict_slash: true, receiver.format_suffix: false, receiver.trailing_dots: false where the receiver’s router is known to be so';

/** What is not about the endings of a path. */
const noEndings = 'format_suffix: false, trailing_dots: false, path_info: false';

t.test('folded spellings that reach a less restrictive route are an error naming both', (t) => {
  const routes = [route('admin', '/admin', 'root'), route('rest', '"/**"', 'root, guest')];
  t.same(problemsOf(withRoutes(routes)), [
    fold(
      'c.yaml:6:39: error: route "rest" with "/**" (line 6) is less restrictive than route "admin" with "/admin" (line 5): ' +
        'GET "/ADMIN" reaches it, which a router that ignores case or a trailing slash or a suffix such as .json or dots ' +
        'behind or blanks around a segment takes for the other’s',
    ),
  ]);
  t.same(
    problemsOf(withRoutes(routes, { receiver: `{ case_sensitive: true, strict_slash: true, ${noEndings} }` })),
    [],
  );
  t.match(problemsOf(withRoutes(routes, { receiver: `{ case_sensitive: true, ${noEndings} }` })), [
    /: GET "\/admin\/" reaches it, which a router that ignores a trailing slash takes for the other’s; allowed: the same approvals on both, or receiver\.strict_slash: true where/,
  ]);
  t.match(problemsOf(withRoutes(routes, { receiver: `{ strict_slash: true, ${noEndings} }` })), [
    /: GET "\/ADMIN" reaches it, which a router that ignores case takes for the other’s; allowed: .* or receiver\.case_sensitive: true where/,
  ]);
  t.end();
});

t.test(
  'endings of a path, and HEAD, that reach a less restrictive route are an error that names the line which says otherwise',
  (t) => {
    const paths = [route('admin', '/o/admin', 'root'), route('any', '"/o/{id}"', 'root, guest')];
    const strict = 'case_sensitive: true, strict_slash: true';
    t.match(problemsOf(withRoutes(paths, { receiver: `{ ${strict}, trailing_dots: false }` })), [
      /error: route "any" .*: GET "\/o\/admin\.x" reaches it, which a router that ignores a suffix such as \.json takes .* or receiver\.format_suffix: false where/,
    ]);
    t.match(problemsOf(withRoutes(paths, { receiver: `{ ${strict}, format_suffix: false }` })), [
      /error: route "any" .*: GET "\/o\/admin\." reaches it, which a router that ignores dots behind or blanks around a segment takes .* or receiver\.trailing_dots: false where/,
    ]);
    t.same(problemsOf(withRoutes(paths, { receiver: `{ ${strict}, ${noEndings} }` })), []);
    const blanks = [route('admin', '/o/admin', 'root'), route('blank', '/o/%20admin', 'root, guest')];
    t.match(problemsOf(withRoutes(blanks, { receiver: `{ ${strict}, format_suffix: false }` })), [
      /error: route "blank" .*: GET "\/o\/%20admin" reaches it, .* or receiver\.trailing_dots: false where/,
    ]);
    t.same(problemsOf(withRoutes(blanks, { receiver: `{ ${strict}, ${noEndings} }` })), []);
    const methods = [route('secret', '/r/secret', 'root'), route('reports', '"/r/**"', 'root, guest', 'GET, HEAD')];
    t.match(problemsOf(withRoutes(methods, { receiver: `{ ${strict}, ${noEndings} }` })), [
      /error: route "reports" .*: HEAD "\/r\/secret" reaches it, which a router that answers HEAD by what it does for GET takes .* or receiver\.head_as_get: false where/,
    ]);
    t.same(problemsOf(withRoutes(methods, { receiver: `{ ${strict}, ${noEndings}, head_as_get: false }` })), []);
    t.end();
  },
);

t.test('OPTIONS for more callers than another method is warned of, with the line that says otherwise', (t) => {
  const paths = [route('report', '/report', 'root'), route('preflight', '"/**"', 'root, guest', 'OPTIONS')];
  const strict = `case_sensitive: true, strict_slash: true, head_as_get: false, ${noEndings}`;
  t.match(problemsOf(withRoutes(paths, { receiver: `{ ${strict} }` })), [
    /: warning: route "preflight" .*: OPTIONS "\/report" reaches it, which a router that answers OPTIONS by what it does for GET takes .* or receiver\.options_as_get: false where/,
  ]);
  t.same(problemsOf(withRoutes(paths, { receiver: `{ ${strict}, options_as_get: false }` })), []);
  t.end();
});

t.test('OPTIONS of a route for every method is warned of, too', (t) => {
  const any =
    'name: any, methods: ["*"], path: "/**", access: public, idempotency: { mode: none, because: "it keeps none" }';
  const strict = `case_sensitive: true, strict_slash: true, head_as_get: false, ${noEndings}`;
  t.match(problemsOf(withRoutes([route('report', '/report', 'root'), any], { receiver: `{ ${strict} }` })), [
    /: warning: route "any" .*: OPTIONS "\/report" reaches it, which a router that answers OPTIONS by what it does for GET takes .* or receiver\.options_as_get: false where/,
  ]);
  t.end();
});

t.test('formats of one name for more callers are warned of, with what helps', (t) => {
  const paths = [route('report', '/report.csv', 'root'), route('page', '/report.json', 'root, guest')];
  t.same(problemsOf(withRoutes(paths)), [
    'c.yaml:6:39: warning: route "page" with "/report.json" (line 6) is less restrictive than route "report" with "/report.csv" (line 5): ' +
      'GET "/report.json" reaches it, which a router that does the same for every format of a name takes for the other’s; ' +
      'allowed: the same approvals on both, or receiver.format_suffix: false where the receiver’s router is known to be so',
  ]);
  t.same(problemsOf(withRoutes(paths, { receiver: '{ format_suffix: false }' })), []);
  t.end();
});

t.test('what an opt-out lets through and is another’s to the upstream is warned of, with what helps', (t) => {
  const strict = `{ case_sensitive: true, strict_slash: true, ${noEndings} }`;
  const told = (guarded: string, optOut: string): readonly string[] => {
    const paths = [route('admin', guarded, 'root'), `${route('page', '"/{page}"', 'root, guest')}, ${optOut}`];
    return problemsOf(withRoutes(paths, { receiver: strict }));
  };
  t.same(told('/admin', 'path_parameters: allow'), [
    'c.yaml:7:39: warning: route "page" with "/{page}" (line 7) is less restrictive than route "admin" with "/admin" (line 6): ' +
      'GET "/admin;x" reaches it, which a router that leaves out what follows a semicolon takes for the other’s; ' +
      'allowed: the same approvals on both, or path_parameters: refuse on the first',
  ]);
  t.match(told('/caf%C3%A9/users', 'encoded_slashes: allow'), [
    /: GET "\/caf%C3%A9%2Fusers" reaches it, which a router that decodes slashes before it routes takes for the other’s; allowed: the same approvals on both, or encoded_slashes: refuse on the first$/,
  ]);
  t.same(told('/admin', 'encoded_slashes: allow'), []);
  t.same(told('/admin/users', 'path_parameters: allow'), []);
  t.end();
});

t.test('certificates and origins that one route asks for alone are an error that names them', (t) => {
  const certificates = [
    `${route('pay', '/payouts', 'checkout')}, client_certificates: ["CN=checkout"]`,
    route('any', '"/{page}"', 'checkout'),
  ];
  t.match(
    problemsOf(
      withRoutes(certificates, {
        listen: '{ host: 127.0.0.1, port: 8080, client_cert_header: true, trust_forwarded: [127.0.0.1] }',
      }),
    ),
    [
      /error: route "any" .*: GET "\/PAYOUTS" reaches it, .*; allowed: the same approvals and client_certificates on both, or /,
    ],
  );
  const live = `${route('live', '/live', 'root')}, websocket: true, origins: ["https://a.example"]`;
  const pages = route('page', '"/{page}"', 'root');
  t.match(problemsOf(withRoutes([live, `${pages}, websocket: true`])), [
    /error: route "page" .*: GET "\/LIVE" reaches it, .*; allowed: the same approvals and origins on both, or /,
  ]);
  t.same(problemsOf(withRoutes([live, pages])), []);
  const users = 'accept: [session], session: { claims: {} }, websocket: true';
  const own = `name: live, methods: [GET], path: /live, ${users}`;
  const partners = `name: page, methods: [GET], path: "/{page}", ${users}, origins: ["https://a.example"]`;
  const sessions = '{ core_url: "http://127.0.0.1:3567", api_domain: "https://api.example.com" }';
  t.match(problemsOf(withRoutes([own, partners], { sessions, issuers: null })), [
    /error: route "page" .*: GET "\/LIVE" reaches it, .*; allowed: the same approvals and origins on both, or /,
  ]);
  t.end();
});

t.test('what follows a script’s name and reaches a less restrictive route is an error that names the line', (t) => {
  const paths = [route('admin', '/admin.php', 'root'), route('page', '"/{page}/{id}"', 'root, guest')];
  const told =
    'c.yaml:6:39: error: route "page" with "/{page}/{id}" (line 6) is less restrictive than route "admin" with "/admin.php" (line 5): ' +
    'GET "/admin.php/x" reaches it, which a router that ignores what follows a script’s name takes for the other’s; ' +
    'allowed: the same approvals on both, or receiver.path_info: false where the receiver’s router is known to be so';
  t.same(problemsOf(withRoutes(paths)), [told], 'by default');
  t.same(problemsOf(withRoutes(paths, { receiver: '{ path_info: false }' })), []);
  const head = [route('admin', '/admin.php', 'root'), route('page', '"/{page}/{id}"', 'guest', 'HEAD')];
  t.match(problemsOf(withRoutes(head)), [
    /: HEAD "\/admin\.php\/x" reaches it, which a router that answers HEAD by what it does for GET and ignores what follows a script’s name takes .* or receiver\.path_info: false where/,
  ]);
  const others = [route('admin', '/admin', 'root'), route('page', '"/{page}/{id}"', 'guest')];
  t.match(problemsOf(withRoutes(others)), [
    /: warning: route "page" .*: GET "\/index\.php\/admin" reaches it, which a router that has a script route what follows its name takes .* or receiver\.path_info: false where/,
  ]);
  t.same(problemsOf(withRoutes(others, { receiver: '{ path_info: false }' })), []);
  t.end();
});

t.test('folded spellings that reach another operation are warned of, for one key would run twice', (t) => {
  const reserving = (name: string, path: string, idempotency: string): string =>
    `name: ${name}, methods: [POST], path: ${path}, subjects: [s], permissions: [p], idempotency: ${idempotency}`;
  const rows = [
    {
      name: 'operations of their own',
      routes: [reserving('a', '/o/x', 'required'), reserving('b', '"/o/{id}"', 'required')],
      told: true,
    },
    {
      name: 'one required, one optional',
      routes: [reserving('a', '/o/x', 'optional'), reserving('b', '"/o/{id}"', 'required')],
      told: true,
    },
    {
      name: 'the same operation',
      routes: ['a', 'b'].map((name, at) =>
        reserving(name, ['/o/x', '"/o/{id}"'][at] ?? '', '{ mode: required, operation: o }'),
      ),
      told: false,
    },
    {
      name: 'paths that do not fold',
      routes: [reserving('a', '/o/x', 'required'), reserving('b', '/p', 'required')],
      told: false,
    },
    {
      name: 'none is kept',
      routes: [reserving('a', '/o/x', 'none'), reserving('b', '"/o/{id}"', 'required')],
      told: false,
    },
  ];
  const strict = `{ case_sensitive: true, strict_slash: true, ${noEndings} }`;
  for (const { name, routes, told } of rows) {
    const expected = told
      ? [
          'c.yaml:7:37: warning: route "b" with "/o/{id}" (line 7) keeps idempotency keys apart from route "a" with "/o/x" (line 6): ' +
            'POST "/o/X" reaches it, which a router that ignores case or a trailing slash or a suffix such as .json or dots behind or blanks around a segment takes ' +
            'for the other’s; allowed: the same idempotency.operation on both, or receiver.case_sensitive: true, receiver.strict_slash: true, ' +
            'receiver.format_suffix: false, receiver.trailing_dots: false where the receiver’s router is known to be so',
        ]
      : [];
    const keptApart = (text: string): readonly string[] =>
      problemsOf(text).filter((line) => line.includes('keeps idempotency keys apart'));
    const store = '{ redis: { url: "redis://127.0.0.1" } }';
    t.same(keptApart(withRoutes(routes, { store })), expected, name);
    t.same(keptApart(withRoutes(routes, { store, receiver: strict })), [], `${name}, strict`);
  }
  t.end();
});

t.test('spellings are shown as requests have them, and not where a placeholder stands', (t) => {
  t.match(problemsOf(withRoutes([route('a', '/caf%C3%A9', 'root'), route('b', '"/{x}"', 's')])), [
    /GET "\/CAF%C3%89" reaches it/,
  ]);
  const lines = problemsOf(withRoutes([route('a', '"/${env:X}"', 'root'), route('b', '"/{x}"', 's')]), {
    env: { X: 'hidden' },
  });
  t.match(lines, [
    /less restrictive than route "a" with what \/\$\{env:X\} stands for \(line 5\): a GET spelt otherwise reaches it/,
  ]);
  t.notMatch(lines.join('\n'), /hidden/i);
  t.end();
});

t.test('a public route within protected ones is no fold', (t) => {
  t.same(
    problemsOf(withRoutes([route('health', '/healthz', 'public'), route('rest', '"/**"', 's')])).filter((line) =>
      line.includes('error'),
    ),
    [],
  );
  t.end();
});

t.test('nothing is told of folds while the upstream cannot be read', (t) => {
  const routes = [route('admin', '/admin', 'root'), route('rest', '"/**"', 'guest')];
  t.match(problemsOf(withRoutes(routes, { receiver: '{ case_sensitive: maybe }' })), [
    /error: receiver\.case_sensitive is "maybe"; /,
  ]);
  t.end();
});

t.test('nothing is told of folds while a route cannot be read', (t) => {
  t.match(
    problemsOf(withRoutes([route('admin', '/admin', 'root'), route('rest', '"/**"', 'guest'), 'name: x'])).join('\n'),
    /^((?!less restrictive).)*$/s,
  );
  t.end();
});

t.test('5,000 routes compile', (t) => {
  const routes = Array.from({ length: 5_000 }, (_, number) =>
    route(`r${number}`, `"/service${number % 50}/r${number}/{id}"`, `caller${number}`),
  );
  const config = compiled(withRoutes(routes));
  t.equal(config.table.routes.length, 5_000);
  t.end();
});

t.test('too many overlapping paths are an error and no guess', (t) => {
  const routes = Array.from({ length: 1_500 }, (_, number) => [
    route(`a${number}`, `"/a${number}/{x}"`, `a${number}`),
    route(`b${number}`, `"/{y}/b${number}"`, `b${number}`),
  ]).flat();
  t.match(problemsOf(withRoutes(routes, { receiver: `{ case_sensitive: true, ${noEndings} }` })), [
    /^c\.yaml:5:1: error: too many paths overlap to check what a lax router would mix up; allowed: receiver\.strict_slash: true, where /,
  ]);
  t.end();
});

t.test('advice that was not all looked for is a warning that says so', (t) => {
  const routes = Array.from(
    { length: 300 },
    (_, number) => `${route(`g${number}`, `"/{x}/g${number}"`, `u${number}`)}, encoded_slashes: allow`,
  );
  const known = `{ case_sensitive: true, strict_slash: true, ${noEndings} }`;
  t.match(problemsOf(withRoutes(routes, { receiver: known })), [
    /^c\.yaml:\d+:\d+: warning: not all was looked at: .* a router that decodes slashes .*; allowed: encoded_slashes: refuse on more routes, or fewer/,
  ]);
  t.end();
});
