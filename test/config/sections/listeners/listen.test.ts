import t from 'tap';
import { compiled, configText, errorsOf, problemsOf } from '../../inspection.js';

const plaintext = (place: string, host: string): string =>
  `c.yaml:${place}: error: tokens would cross the network in plaintext: listen.host is ${JSON.stringify(host)}, without TLS; ` +
  'allowed: listen.tls, listen.tls_terminated_by naming who ends TLS in front, or a loopback address';

const duration = (least: string, most: string, examples: string): string =>
  `a duration from ${least} to ${most}, such as ${examples}`;

const listeners = [
  { name: 'IPv4 loopback', input: '{ host: 127.0.0.1, port: 1 }', expected: [] },
  { name: 'another IPv4 loopback', input: '{ host: 127.9.9.9, port: 1 }', expected: [] },
  { name: 'IPv6 loopback', input: '{ host: "::1", port: 1 }', expected: [] },
  { name: 'IPv6 loopback at length', input: '{ host: "0:0:0:0:0:0:0:1", port: 1 }', expected: [] },
  { name: 'IPv4 loopback in IPv6', input: '{ host: "::ffff:127.0.0.1", port: 1 }', expected: [] },
  { name: 'localhost', input: '{ host: localhost, port: 1 }', expected: [] },
  { name: 'every address', input: '{ host: 0.0.0.0, port: 1 }', expected: [plaintext('1:17', '0.0.0.0')] },
  { name: 'every IPv6 address', input: '{ host: "::", port: 1 }', expected: [plaintext('1:17', '::')] },
  { name: 'a private address', input: '{ host: 10.0.0.1, port: 1 }', expected: [plaintext('1:17', '10.0.0.1')] },
  { name: 'almost loopback', input: '{ host: 128.0.0.1, port: 1 }', expected: [plaintext('1:17', '128.0.0.1')] },
  {
    name: 'a name that begins like loopback',
    input: '{ host: 127.0.0.1.example.com, port: 1 }',
    expected: [plaintext('1:17', '127.0.0.1.example.com')],
  },
  {
    name: 'a name',
    input: '{ host: localhost.example.com, port: 1 }',
    expected: [plaintext('1:17', 'localhost.example.com')],
  },
  { name: 'TLS', input: '{ host: 0.0.0.0, port: 1, tls: { cert_file: /c, key_file: /k } }', expected: [] },
  { name: 'TLS ended in front', input: '{ host: 0.0.0.0, port: 1, tls_terminated_by: istio }', expected: [] },
  {
    name: 'null for both',
    input: '{ host: 0.0.0.0, port: 1, tls: null, tls_terminated_by: null }',
    expected: [plaintext('1:17', '0.0.0.0')],
  },
  {
    name: 'both',
    input: '{ host: 0.0.0.0, port: 1, tls: { cert_file: /c, key_file: /k }, tls_terminated_by: istio }',
    expected: ['c.yaml:1:73: error: listen.tls_terminated_by stands beside listen.tls; allowed: one of them'],
  },
  {
    name: 'half of TLS',
    input: '{ host: 0.0.0.0, port: 1, tls: { cert_file: /c } }',
    expected: [
      'c.yaml:1:35: error: listen.tls.key_file is missing; allowed: the path of a file: absolute, or from the folder of the config',
    ],
  },
  {
    name: 'health of gRPC answered to nobody',
    input: '{ host: 127.0.0.1, port: 1, grpc_health: answer }',
    expected: [
      'c.yaml:1:37: error: listen.grpc_health: answer has no use without listen.http2; allowed: listen.http2: true beside it',
    ],
  },
  {
    name: 'health of gRPC answered',
    input: '{ host: 127.0.0.1, port: 1, http2: true, grpc_health: answer }',
    expected: [],
  },
  {
    name: 'client certificates asked of nobody',
    input: '{ host: 0.0.0.0, port: 1, tls: { cert_file: /c, key_file: /k, client_auth: optional } }',
    expected: [
      'c.yaml:1:71: error: listen.tls.client_auth has no use without listen.tls.client_ca_file; allowed: listen.tls.client_ca_file beside it, or request',
    ],
  },
  {
    name: 'client certificates',
    input:
      '{ host: 0.0.0.0, port: 1, tls: { cert_file: /c, key_file: /k, client_ca_file: /a, client_auth: optional } }',
    expected: [],
  },
  {
    name: 'nothing',
    input: '{}',
    expected: [
      'c.yaml:1:1: error: listen.host is missing; allowed: an IP address or a host name',
      'c.yaml:1:1: error: listen.port is missing; allowed: a whole number from 0 to 65535',
    ],
  },
  { name: 'null', input: '', expected: ['c.yaml:1:9: error: listen is empty; allowed: a map'] },
  { name: 'a list', input: '[a]', expected: ['c.yaml:1:9: error: listen is a list; allowed: a map'] },
  { name: 'the greatest port', input: '{ host: 127.0.0.1, port: 65535 }', expected: [] },
  {
    name: 'a port beyond',
    input: '{ host: 127.0.0.1, port: 65536 }',
    expected: ['c.yaml:1:34: error: listen.port is 65536; allowed: a whole number from 0 to 65535'],
  },
  {
    name: 'a port in quotes',
    input: '{ host: 127.0.0.1, port: "80" }',
    expected: ['c.yaml:1:34: error: listen.port is "80"; allowed: a whole number from 0 to 65535'],
  },
  {
    name: 'what only looks like an address',
    input: '{ host: 127.0.0.256, port: 1 }',
    expected: [
      plaintext('1:17', '127.0.0.256'),
      'c.yaml:1:17: error: listen.host is "127.0.0.256"; allowed: an IP address or a host name',
    ],
  },
];

t.test('the callers’ listener', (t) => {
  for (const { name, input, expected } of listeners) {
    t.same(problemsOf(configText({ listen: input })), [...expected].sort(), name);
  }
  t.end();
});

const values = [
  { key: 'max_header_bytes: 1023B', expected: '"1023B"; allowed: a size from 1KiB to 1MiB, such as 64KiB, 1MiB' },
  { key: 'max_header_bytes: 1025KiB', expected: '"1025KiB"; allowed: a size from 1KiB to 1MiB, such as 64KiB, 1MiB' },
  { key: 'max_header_bytes: 1MB', expected: '"1MB"; allowed: a size from 1KiB to 1MiB, such as 64KiB, 1MiB' },
  { key: 'max_header_bytes: 16384', expected: '16384; allowed: a size from 1KiB to 1MiB, such as 64KiB, 1MiB' },
  { key: 'keep_alive_timeout: 999ms', expected: `"999ms"; allowed: ${duration('1s', '2h', '5s, 15m')}` },
  { key: 'keep_alive_timeout: 7201s', expected: `"7201s"; allowed: ${duration('1s', '2h', '5s, 15m')}` },
  { key: 'header_timeout: 601s', expected: `"601s"; allowed: ${duration('10ms', '10m', '250ms, 5s')}` },
  { key: 'header_timeout: 9ms', expected: `"9ms"; allowed: ${duration('10ms', '10m', '250ms, 5s')}` },
  { key: 'header_timeout: 1.5s', expected: `"1.5s"; allowed: ${duration('10ms', '10m', '250ms, 5s')}` },
  { key: 'header_timeout: 5 s', expected: `"5 s"; allowed: ${duration('10ms', '10m', '250ms, 5s')}` },
  { key: 'header_timeout: -5s', expected: `"-5s"; allowed: ${duration('10ms', '10m', '250ms, 5s')}` },
  { key: 'header_timeout: 1e3s', expected: `"1e3s"; allowed: ${duration('10ms', '10m', '250ms, 5s')}` },
  { key: 'header_timeout: 5S', expected: `"5S"; allowed: ${duration('10ms', '10m', '250ms, 5s')}` },
  { key: 'header_timeout: 1w', expected: `"1w"; allowed: ${duration('10ms', '10m', '250ms, 5s')}` },
  {
    key: 'header_timeout: 9999999999999s',
    expected: `"9999999999999s"; allowed: ${duration('10ms', '10m', '250ms, 5s')}`,
  },
  { key: 'max_in_flight: 0', expected: '0; allowed: a whole number from 1 to 1000000' },
  { key: 'max_in_flight: 1.5', expected: '1.5; allowed: a whole number from 1 to 1000000' },
  { key: 'max_in_flight: .inf', expected: 'Infinity; allowed: a whole number from 1 to 1000000' },
  { key: 'underscore_fields: keep', expected: '"keep"; allowed: drop, allow, refuse' },
  { key: 'http_1_0: true', expected: 'true; allowed: refuse, allow' },
  { key: 'tls_terminated_by: ""', expected: '""; allowed: a text of 1 to 100 characters without controls' },
  { key: 'max_target:', expected: 'empty; allowed: a size from 64B to 64KiB, such as 512B, 64KiB' },
];

t.test('durations, sizes, numbers and words have their kind and range', (t) => {
  for (const { key, expected } of values) {
    const [problem, ...others] = problemsOf(configText({ listen: `{ host: 127.0.0.1, port: 1, ${key} }` }));
    t.same(others, [], key);
    t.match(problem, ` error: listen.${key.split(':')[0] ?? ''} is ${expected}`, key);
  }
  t.end();
});

const units = [
  { key: 'keep_alive_timeout: 620s', expected: { keepAliveTimeoutMs: 620_000 } },
  { key: 'header_timeout: 10ms', expected: { headerTimeoutMs: 10 } },
  { key: 'header_timeout: 600s', expected: { headerTimeoutMs: 600_000 } },
  { key: 'header_timeout: 10m', expected: { headerTimeoutMs: 600_000 } },
  { key: 'body_idle_timeout: 1h', expected: { bodyIdleTimeoutMs: 3_600_000, bodyMinRate: 500 } },
  { key: 'body_min_rate: 0', expected: { bodyMinRate: 0 } },
  { key: 'max_header_bytes: 1MiB', expected: { maxHeaderBytes: 1_048_576 } },
  { key: 'max_header_bytes: 8KiB', expected: { maxHeaderBytes: 8_192 } },
  { key: 'max_target: 64B', expected: { maxTargetBytes: 64 } },
];

t.test('durations and sizes are read with their units', (t) => {
  for (const { key, expected } of units) {
    t.match(compiled(configText({ listen: `{ host: 127.0.0.1, port: 1, ${key} }` })).listen, expected, key);
  }
  t.end();
});

const blocks = ['10.0.0.1', '10.0.0.0/8', '10.0.0.1/32', '::1', 'fd00::/8', '::/128'];
const noBlocks = [
  '10.0.0.0/33',
  '::/129',
  '10.0.0.0/',
  '10.0.0.0/08',
  '10.0.0.0/-1',
  'example.com',
  '10.0.0',
  'fe80::1%eth0',
  '10.0.0.1/24/8',
  '',
];

t.test('trusted addresses', (t) => {
  const problems = (block: string): readonly string[] =>
    problemsOf(configText({ listen: `{ host: 127.0.0.1, port: 1, trust_forwarded: ["${block}"] }` }));
  for (const block of blocks) t.same(problems(block), [], block);
  for (const block of noBlocks) {
    t.match(
      problems(block),
      [/trust_forwarded\[0\] is ".*"; allowed: an IP address or a CIDR block, such as 10\.0\.0\.0\/8$/],
      block,
    );
  }
  t.end();
});

t.test('certificates in a header are not believed of everybody', (t) => {
  const told = (trusted: string, more = ''): readonly string[] =>
    errorsOf(
      configText({
        listen: `{ host: 127.0.0.1, port: 1, client_cert_header: true, trust_forwarded: [${trusted}]${more} }`,
      }),
    );
  for (const everybody of ['0.0.0.0/0', '"::/0"', '0.0.0.0/1, 128.0.0.0/1', '10.0.0.0/8, "2000::/4", "3000::/4"']) {
    t.match(
      told(everybody),
      [/listen\.client_cert_header believes everybody: listen\.trust_forwarded is every address, and whoever connects/],
      everybody,
    );
  }
  t.same(told('10.0.0.0/8, 128.0.0.0/1'), []);
  const asked = 'cert_file: /c.crt, key_file: /c.key, client_ca_file: /ca.crt';
  t.same(told('0.0.0.0/0', `, tls: { ${asked} }`), [], 'of whoever has a certificate of the proxy’s authority');
  t.equal(told('0.0.0.0/0', `, tls: { ${asked}, client_auth: optional }`).length, 1, 'anybody comes without one');
  t.equal(told('0.0.0.0/0', ', tls: { cert_file: /c.crt, key_file: /c.key }').length, 1, 'nobody is asked for one');
  t.end();
});

t.test('a trusted address that is mapped into IPv6 is refused, for it would never count', (t) => {
  for (const block of [
    '::ffff:10.0.0.1',
    '::FFFF:10.0.0.1',
    '::ffff:10.0.0.0/104',
    '::ffff:a00:1',
    '0:0:0:0:0:ffff:a00:1',
  ]) {
    t.match(
      problemsOf(configText({ listen: `{ host: 127.0.0.1, port: 1, trust_forwarded: ["${block}"] }` })),
      [
        /trust_forwarded\[0\] is ".*", an IPv4 address mapped into IPv6; allowed: the IPv4 address or block itself, such as 10\.0\.0\.0\/8$/,
      ],
      block,
    );
  }
  t.end();
});

const ports = [
  {
    name: 'the operators’ port is the callers’',
    changes: { admin: '{ port: 8080 }' },
    expected: /5:16: error: admin\.port is also listen\.port, on the same address; /,
  },
  {
    name: 'the default is the callers’',
    changes: { listen: '{ host: 127.0.0.1, port: 9901 }' },
    expected: /error: admin\.port is also listen\.port/,
  },
  {
    name: 'localhost is loopback',
    changes: { admin: '{ host: localhost, port: 8080 }' },
    expected: /error: admin\.port is also listen\.port/,
  },
  {
    name: 'every address has it',
    changes: { probes: '{ port: 8080 }' },
    expected: /error: probes\.port is also listen\.port/,
  },
  {
    name: 'every address has it in IPv6',
    changes: { probes: '{ host: "::", port: 9901 }' },
    expected: /error: probes\.port is also admin\.port/,
  },
  {
    name: 'the workload’s port is the callers’',
    changes: {
      egress:
        '{ listen: { port: 8080 }, targets: [{ name: a, prefix: /a, url: "http://127.0.0.1:1", allow: [{ methods: [GET], path: /b }] }] }',
    },
    expected: /error: egress\.listen\.port is also listen\.port, on the same address; /,
  },
  {
    name: 'the workload’s default is the operators’',
    changes: {
      admin: '{ port: 8181 }',
      egress:
        '{ targets: [{ name: a, prefix: /a, url: "http://127.0.0.1:1", allow: [{ methods: [GET], path: /b }] }] }',
    },
    expected: /error: egress\.listen\.port is also admin\.port/,
  },
  {
    name: 'the workload is served on a socket',
    changes: {
      admin: '{ port: 8181 }',
      egress:
        '{ listen: { unix: /run/a }, targets: [{ name: a, prefix: /a, url: "http://127.0.0.1:1", allow: [{ methods: [GET], path: /b }] }] }',
    },
    expected: null,
  },
  {
    name: 'the workload is served on another address',
    changes: {
      admin: '{ port: 8181 }',
      egress:
        '{ listen: { host: 127.0.0.2 }, targets: [{ name: a, prefix: /a, url: "http://127.0.0.1:1", allow: [{ methods: [GET], path: /b }] }] }',
    },
    expected: null,
  },
  {
    name: 'a proxy asks on the workload’s port',
    changes: {
      decide: '{ port: 8181, form: nginx }',
      egress:
        '{ targets: [{ name: a, prefix: /a, url: "http://127.0.0.1:1", allow: [{ methods: [GET], path: /b }] }] }',
    },
    expected: /error: decide\.port is the port of another listener; /,
  },
  {
    name: 'a proxy asks on the workload’s port of another address',
    changes: {
      decide: '{ port: 8181, form: nginx }',
      egress:
        '{ listen: { host: 127.0.0.2 }, targets: [{ name: a, prefix: /a, url: "http://127.0.0.1:1", allow: [{ methods: [GET], path: /b }] }] }',
    },
    expected: null,
  },
  { name: 'another address', changes: { admin: '{ host: 127.0.0.2, port: 8080 }' }, expected: null },
  {
    name: 'any free port',
    changes: { listen: '{ host: 127.0.0.1, port: 0 }', admin: '{ port: 0 }', probes: '{ port: 0 }' },
    expected: null,
  },
  {
    name: 'upstream is the proxy',
    changes: { upstream: '{ url: "http://127.0.0.1:8080" }' },
    expected: /2:18: error: upstream\.url is where Sallyport itself listens; /,
  },
  {
    name: 'upstream is the proxy by name',
    changes: { upstream: '{ url: "http://localhost:8080" }' },
    expected: /error: upstream\.url is where/,
  },
  {
    name: 'upstream is the proxy on every address',
    changes: { listen: '{ host: 0.0.0.0, port: 80, tls_terminated_by: x }', upstream: '{ url: "http://127.0.0.1" }' },
    expected: /error: upstream\.url is where/,
  },
  {
    name: 'upstream is another machine with this port',
    changes: { listen: '{ host: 0.0.0.0, port: 443, tls_terminated_by: x }', upstream: '{ url: "https://app" }' },
    expected: null,
  },
  { name: 'upstream has another port', changes: { upstream: '{ url: "http://127.0.0.1:8081" }' }, expected: null },
];

t.test('no two listeners share a port', (t) => {
  for (const { name, changes, expected } of ports) {
    const problems = problemsOf(configText(changes));
    if (expected === null) t.same(problems, [], name);
    else t.match(problems, [expected], name);
  }
  t.end();
});

t.test('the operators’ listener on another than a loopback address is doubtful', (t) => {
  t.same(problemsOf(configText({ admin: '{ host: 0.0.0.0 }' })), [
    'c.yaml:5:16: warning: the operators’ listener can be reached from other machines: admin.host is "0.0.0.0"; allowed: a loopback address',
  ]);
  t.same(
    problemsOf(configText({ probes: '{ host: 0.0.0.0, app: { live: /healthz, ready-2: "/ready?full=1" } }' })),
    [],
  );
  t.end();
});

const probesOfReceiver = [
  {
    name: 'no path',
    app: '{ live: healthz }',
    expected: /probes\.app\.live is "healthz"; allowed: a path such as \/healthz/,
  },
  { name: 'a URL', app: '{ live: "http://elsewhere.example/" }', expected: /allowed: a path such as/ },
  { name: 'another host by two slashes', app: '{ live: "//elsewhere.example/" }', expected: /allowed: a path such as/ },
  { name: 'two readings', app: '{ live: /a/../b }', expected: /allowed: a path such as/ },
  { name: 'a line end', app: '{ live: "/a\\r\\nx: y" }', expected: /allowed: a path such as/ },
  { name: 'too long', app: `{ live: /${'a'.repeat(1_024)} }`, expected: /allowed: a path such as/ },
  {
    name: 'a name that is no segment',
    app: '{ "a/b": / }',
    expected: /allowed: a map of names, of 1 to 63 lower-case letters, digits and inner dashes, to paths/,
  },
  { name: 'an upper-case name', app: '{ Live: / }', expected: /1 to 63 lower-case/ },
];

t.test('probes of the upstream have a plain name and an unambiguous path', (t) => {
  for (const { name, app, expected } of probesOfReceiver) {
    t.match(problemsOf(configText({ probes: `{ app: ${app} }` })), [expected], name);
  }
  t.same(problemsOf(configText({ probes: `{ app: { live: /${'a'.repeat(1_023)} } }` })), []);
  t.end();
});

t.test('a request target fits into the header section', (t) => {
  t.same(
    problemsOf(configText({ listen: '{ host: 127.0.0.1, port: 1, max_target: 8KiB, max_header_bytes: 8KiB }' })),
    [],
  );
  t.match(
    problemsOf(configText({ listen: '{ host: 127.0.0.1, port: 1, max_target: 8KiB, max_header_bytes: 7KiB }' })),
    [/1:49: error: listen\.max_target is more than listen\.max_header_bytes, which counts the target too; /],
  );
  t.end();
});
