import t from 'tap';
import { compiled, configText, errorsOf, problemsOf, withRoutes } from '../../inspection.js';

const alone = { listen: null, upstream: null };

t.test('without the section nobody asks', (t) => {
  t.same(compiled(configText()).decide, []);
  t.end();
});

t.test('a listener alone, with every default', (t) => {
  const config = compiled(configText({ ...alone, decide: '{ port: 9000, form: nginx }' }));
  t.match(config, { servesCallers: false, routes: [{ name: 'a' }], issuers: [{ rules: { name: 'core' } }] });
  t.match(config.decide, [
    {
      form: 'nginx',
      prefix: '',
      accepts: new Set(),
      listen: {
        host: '127.0.0.1',
        port: 9000,
        trustForwarded: ['127.0.0.0/8', '::1'],
        http2: false,
        http10: 'allow',
        maxInFlight: 512,
        maxHeaderBytes: 28 * 1024,
      },
    },
  ]);
  t.end();
});

t.test('several, beside the sidecar', (t) => {
  const config = compiled(
    configText({
      decide:
        '[{ port: 9000, form: caddy, trust: [10.0.0.1] }, { host: 10.0.0.2, port: 9001, form: envoy, prefix: /p, tls_terminated_by: mesh, accept: [connections] }]',
    }),
  );
  t.equal(config.servesCallers, true);
  t.match(config.decide, [
    { form: 'caddy', listen: { trustForwarded: ['10.0.0.1'], http2: false } },
    {
      form: 'envoy',
      prefix: '/p',
      accepts: new Set(['connections']),
      listen: { http2: true, tlsTerminatedBy: 'mesh' },
    },
  ]);
  t.end();
});

t.test('listeners may have one port on several addresses', (t) => {
  const rows: readonly (readonly [string, boolean])[] = [
    ['{ host: 127.0.0.1, port: 8080, form: nginx }', true],
    ['{ host: 0.0.0.0, port: 8080, form: nginx, tls_terminated_by: mesh }', false],
    ['[{ port: 9000, form: nginx }, { host: 127.0.0.2, port: 9000, form: caddy }]', true],
    ['[{ port: 9000, form: nginx }, { host: localhost, port: 9000, form: caddy }]', false],
  ];
  for (const [decide, isFree] of rows) {
    const errors = errorsOf(configText({ decide, listen: '{ host: 127.0.0.9, port: 8080 }' })).join('\n');
    if (isFree) t.equal(errors, '', decide);
    else t.match(errors, /port is the port of another listener/, decide);
  }
  t.end();
});

t.test('what is wrong has an error', (t) => {
  const rows: readonly (readonly [string, RegExp])[] = [
    ['{ port: 9000 }', /form/],
    ['{ form: nginx }', /port/],
    ['{ port: 9000, form: squid }', /allowed: nginx, traefik, caddy, envoy, haproxy, apache/],
    ['{ host: 10.0.0.1, port: 9000, form: nginx }', /tokens would cross the network in plaintext: decide.host/],
    ['{ port: 9000, form: nginx, trust: [] }', /trust/],
    ['{ port: 9000, form: nginx, trust: [0.0.0.0/0] }', /decide.trust is everybody/],
    ['{ port: 9000, form: nginx, trust: [0.0.0.0/1, 128.0.0.0/1] }', /decide.trust is everybody/],
    ['{ port: 9000, form: nginx, prefix: /p }', /decide.prefix has no use with form: nginx/],
    ['{ port: 8080, form: nginx }', /decide.port is the port of another listener/],
    ['[{ port: 9000, form: nginx }, { port: 9000, form: caddy }]', /decide\[1\].port is the port of another listener/],
    ['{ port: 9000, form: nginx, accept: [all] }', /accept/],
    ['[]', /decide/],
    ['nginx', /a map, or a list of maps/],
  ];
  for (const [decide, expected] of rows) t.match(errorsOf(configText({ decide })).join('\n'), expected, decide);
  t.match(errorsOf(configText({ ...alone, routes: null, decide: '{ port: 9000, form: nginx }' })).join('\n'), /routes/);
  t.match(errorsOf(configText({ upstream: null, decide: '{ port: 9000, form: nginx }' })).join('\n'), /upstream/);
  t.end();
});

t.test('what only the sidecar can see to is said, unless it is accepted', (t) => {
  const routes = [
    'name: write, methods: [POST], path: /w, subjects: [a], permissions: [], idempotency: required',
    'name: once, methods: [GET], path: /o, subjects: [a], permissions: [], single_use: true',
    'name: socket, methods: [GET], path: /s, subjects: [a], permissions: [], websocket: true',
    'name: call, grpc: pkg.Service/Method, subjects: [a], permissions: [], idempotency: { mode: none, because: reads }',
  ];
  const identity = '{ assertion: { key_file: /k, issuer: me, audience: orders } }';
  const saidOf = (decide: string): string =>
    problemsOf(withRoutes(routes, { store: '{ memory: {} }', identity, decide })).join('\n');
  const said = saidOf('{ port: 9000, form: nginx }');
  for (const expected of [
    /route "write" reserves writes, which decide.form cannot see to.*allowed: unreserved in decide.accept/,
    /route "once" takes a token once.*reused_tokens in/,
    /route "socket" lets connections stay open.*connections in/,
    /route "call" lets connections stay open/,
    /an assertion holds for the bytes that were judged.*decide gives none/,
  ]) {
    t.match(said, expected);
  }
  t.notMatch(said, /once it is enforced/);
  const shadowed = problemsOf(
    withRoutes([`${routes[0] ?? ''}, mode: enforce`, ...routes.slice(1)], {
      mode: 'shadow',
      store: '{ memory: {} }',
      decide: '{ port: 9000, form: nginx }',
    }),
  ).join('\n');
  t.match(shadowed, /route "write" reserves writes.*its requests are refused there;/);
  t.match(shadowed, /route "once" takes a token once.*its requests are refused there once it is enforced;/);
  const accepted = saidOf('{ port: 9000, form: nginx, accept: [unreserved, reused_tokens, connections, assertion] }');
  t.notMatch(accepted, /decide/);
  t.end();
});

t.test('requests in flight are not bounded there', (t) => {
  const routes = ['name: a, methods: [GET], path: /a, subjects: [a], permissions: [], limits: { max_in_flight: 1 }'];
  const decide = '{ port: 9000, form: nginx }';
  const said = (more: object): string => problemsOf(withRoutes(routes, { decide, ...more })).join('\n');
  t.match(said({}), /routes\[0\].limits.max_in_flight counts a request until it is decided, and decide does not see/);
  t.notMatch(said({}), /: limits.max_in_flight/);
  t.match(said({ limits: '{ max_in_flight: 3 }' }), /: limits.max_in_flight counts a request until it is decided/);
  t.notMatch(said({ decide: null }), /max_in_flight/);
  t.end();
});

t.test('without a place, listen says how requests are judged, and nothing listens there', (t) => {
  const dpop = 'dpop: { origins: ["https://a.example"] }';
  const text = (listen: string, more = {}): string =>
    configText({ ...alone, listen, store: '{ memory: {} }', decide: '{ port: 9000, form: envoy }', ...more });
  const config = compiled(text(`{ ${dpop}, underscore_fields: allow, max_in_flight: 7, max_target: 1KiB }`));
  t.match(config, { servesCallers: false, listen: { underscoreFields: 'allow', dpop: { maxAgeMs: 60_000 } } });
  t.match(config.decide, [{ listen: { port: 9000, maxInFlight: 7, dpop: null } }]);
  t.equal(compiled(text('{}')).servesCallers, false);
  const rows: readonly (readonly [string, object, RegExp])[] = [
    ['{ dpop: {} }', {}, /origins/],
    [`{ ${dpop} }`, { store: null }, /listen.dpop takes proofs that count once, and no store remembers them/],
    [
      `{ ${dpop}, tls: { cert_file: /c, key_file: /k } }`,
      {},
      /c.yaml:1.*listen.tls has no use without listen.host and/,
    ],
    ['{ trust_forwarded: [10.0.0.1], client_cert_header: true }', {}, /listen.client_cert_header has no use without/],
    [`{ ${dpop}, port: 8080 }`, {}, /listen.host is missing|host/],
    [`{ ${dpop} }`, { upstream: '{ url: "http://127.0.0.1:3000" }' }, /host/],
    [`{ ${dpop} }`, { decide: null }, /host/],
    ['{ hosts: a }', {}, /hosts/],
    ['[]', {}, /listen/],
    ['null', {}, /listen/],
  ];
  for (const [listen, more, expected] of rows) {
    t.match(errorsOf(text(listen, more)).join('\n'), expected, `${listen} ${JSON.stringify(more)}`);
  }
  t.end();
});

t.test('credentials that nobody can show or prove to it are said', (t) => {
  const route = 'methods: [GET], path: /w, subjects: [a], permissions: []';
  const routes = [`name: shown, ${route}, client_certificates: [spiffe://a/b]`];
  const trusting = '{ host: 127.0.0.1, port: 8080, trust_forwarded: [127.0.0.1], client_cert_header: true }';
  const decide = '{ port: 9000, form: nginx }';
  const beside = problemsOf(withRoutes(routes, { listen: trusting, decide })).join('\n');
  t.match(
    beside,
    /warning: route "shown" asks for certificates of callers, which nobody shows to decide: its requests/,
  );
  t.notMatch(problemsOf(withRoutes(routes, { listen: trusting })).join('\n'), /nobody shows/);
  t.match(
    errorsOf(withRoutes(routes, { ...alone, decide })).join('\n'),
    /client_certificates asks for certificates of callers, which nobody shows to decide: its requests would all be/,
  );

  const issuers = (binding: string): string =>
    `{ core: { issuer: "https://api.example.com", audience: orders, source: microservice, token_type: service, binding: ${binding} } }`;
  const bound = (binding: string, more = {}): string =>
    problemsOf(configText({ ...alone, decide, issuers: issuers(binding), store: '{ memory: {} }', ...more })).join(
      '\n',
    );
  const proving = { listen: '{ dpop: { origins: ["https://a.example"] } }' };
  t.match(bound('require'), /issuers.core.binding is require, and nothing can be proved to decide: every token/);
  t.notMatch(bound('require', proving), /nothing can be proved/);
  t.notMatch(bound('accept'), /nothing can be proved/);
  t.end();
});

t.test('cookies of sessions go on where the proxy cannot be told to remove them, which is said', (t) => {
  const route = 'name: w, methods: [GET], path: /w, accept: [session], session: { claims: {}';
  const said = (form: string, session = ''): string =>
    problemsOf(
      withRoutes([`${route}${session} }`], {
        ...alone,
        sessions: '{ core: "http://127.0.0.1:3567" }',
        decide: `{ port: 9000, form: ${form} }`,
      }),
    ).join('\n');
  t.match(said('nginx'), /route "w" accepts sessions, whose cookies nginx cannot be told to remove: the upstream gets/);
  t.notMatch(said('nginx', ', forward_tokens: true'), /whose cookies/);
  t.notMatch(said('haproxy'), /whose cookies/);
  t.end();
});

t.test('a front that hands on no renewed session has a warning, once for each listener', (t) => {
  const route = (name: string): string =>
    `name: ${name}, methods: [GET], path: /${name}, accept: [session], session: { claims: {}, forward_tokens: true }`;
  const said = (decide: string, routes = [route('v'), route('w')]): readonly string[] =>
    problemsOf(withRoutes(routes, { ...alone, sessions: '{ core: "http://127.0.0.1:3567" }', decide })).filter(
      (problem) => problem.includes('renewed session'),
    );
  for (const [form, front] of [
    ['nginx', 'nginx'],
    ['traefik', 'traefik'],
    ['caddy', 'caddy'],
    ['haproxy', 'haproxy'],
    ['apache', 'apache'],
    ['envoy, prefix: /decide', 'the HTTP service of envoy'],
  ] as const) {
    const [warning = '', ...more] = said(`{ port: 9000, form: ${form} }`);
    t.match(warning, `: warning: routes accept sessions, and ${front} does not pass on`);
    t.same(more, []);
  }
  t.same(said('{ port: 9000, form: envoy }'), [], 'its gRPC does');
  t.equal(said('[{ port: 9000, form: nginx }, { port: 9001, form: envoy }, { port: 9002, form: caddy }]').length, 2);
  t.same(
    said('{ port: 9000, form: nginx }', ['name: s, methods: [GET], path: /s, subjects: [a], permissions: []']),
    [],
  );
  t.end();
});
