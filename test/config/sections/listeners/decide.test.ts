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

t.test('what is wrong has an error', (t) => {
  const rows: readonly (readonly [string, RegExp])[] = [
    ['{ port: 9000 }', /form/],
    ['{ form: nginx }', /port/],
    ['{ port: 9000, form: squid }', /allowed: nginx, traefik, caddy, envoy, haproxy, apache/],
    ['{ host: 10.0.0.1, port: 9000, form: nginx }', /tokens would cross the network in plaintext: decide.host/],
    ['{ port: 9000, form: nginx, trust: [] }', /trust/],
    ['{ port: 9000, form: nginx, trust: [0.0.0.0/0] }', /decide.trust is everybody/],
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
  const accepted = saidOf('{ port: 9000, form: nginx, accept: [unreserved, reused_tokens, connections, assertion] }');
  t.notMatch(accepted, /decide/);
  t.end();
});
