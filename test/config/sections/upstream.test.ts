import t from 'tap';
import { compiled, configText, errorsOf, problemsOf, withRoutes } from '../inspection.js';

const allowed = 'allowed: http://HOST:PORT, https://HOST:PORT or unix:/PATH, without a path, user or query';

const urls = [
  { input: 'http://127.0.0.1:3000', expected: 'http://127.0.0.1:3000' },
  { input: 'http://127.0.0.1:3000/', expected: 'http://127.0.0.1:3000' },
  { input: 'http://[::1]:3000', expected: 'http://[::1]:3000' },
  { input: 'http://localhost', expected: 'http://localhost' },
  { input: 'https://app.example.com', expected: 'https://app.example.com' },
  { input: 'unix:/run/app.sock', expected: 'unix:/run/app.sock' },
  { input: `unix:/${'x'.repeat(106)}`, expected: `unix:/${'x'.repeat(106)}` },
  { input: `unix:/${'x'.repeat(107)}`, expected: null },
  { input: 'unix:run/app.sock', expected: null },
  { input: 'unix:', expected: null },
  { input: 'http://127.0.0.1:3000/api', expected: null },
  { input: 'http://127.0.0.1:3000//', expected: null },
  { input: 'http://127.0.0.1:3000?', expected: null },
  { input: 'http://127.0.0.1:3000/?x', expected: null },
  { input: 'http://127.0.0.1:3000#x', expected: null },
  { input: 'http://user@127.0.0.1:3000', expected: null },
  { input: 'http://user:pass@127.0.0.1:3000', expected: null },
  { input: 'http://@127.0.0.1:3000', expected: null },
  { input: 'http://127.0.0.1:65536', expected: null },
  { input: 'http://127.0.0.1\\\\x', expected: null },
  { input: 'http://a b', expected: null },
  { input: 'http://', expected: null },
  { input: 'http:127.0.0.1', expected: null },
  { input: 'ftp://127.0.0.1', expected: null },
  { input: '127.0.0.1:3000', expected: null },
  { input: '', expected: null },
];

t.test('the upstream is an origin or a socket', (t) => {
  for (const { input, expected } of urls) {
    const text = configText({ upstream: `{ url: "${input}" }` });
    if (expected === null) t.match(problemsOf(text), [/^c\.yaml:2:18: error: upstream\.url is /], input);
    else t.equal(compiled(text).upstream.url, expected, input);
  }
  t.ok(problemsOf(configText({ upstream: '{ url: ftp://x }' }))[0]?.endsWith(allowed));
  t.end();
});

const together = [
  { name: 'nothing', input: '{}', expected: [/^c\.yaml:2:1: error: upstream\.url is missing; allowed: http:/] },
  { name: 'plaintext on this machine', input: '{ url: "http://127.0.0.9:1" }', expected: [] },
  {
    name: 'plaintext to another machine',
    input: '{ url: "http://app:1" }',
    expected: [
      /^c\.yaml:2:18: warning: requests and identities cross the network in plaintext: upstream\.url is http on another host; allowed: https, /,
    ],
  },
  {
    name: 'https to another machine',
    input: '{ url: "https://app:1", ca_file: /ca, server_name: app.internal }',
    expected: [],
  },
  {
    name: 'settings of https without it',
    input: '{ url: "unix:/s", ca_file: /ca, server_name: app.internal }',
    expected: [
      /2:38: error: upstream\.ca_file has no use without https; /,
      /2:56: error: upstream\.server_name has no use without https; /,
    ],
  },
  { name: 'a file in the folder of the config', input: '{ url: "https://app:1", ca_file: ca.crt }', expected: [] },
  {
    name: 'a certificate in the place of its file',
    input: '{ url: "https://app:1", ca_file: "-----BEGIN CERTIFICATE-----\\nMII" }',
    expected: [
      /2:44: error: upstream\.ca_file is .*; allowed: the path of a file: absolute, or from the folder of the config$/,
    ],
  },
  {
    name: 'another Host',
    input: '{ url: "https://app:1", host: app }',
    expected: [/2:41: error: upstream\.host is "app"; allowed: upstream, preserve$/],
  },
  {
    name: 'another reuse',
    input: '{ url: "https://app:1", reuse: sometimes }',
    expected: [/2:42: error: upstream\.reuse is "sometimes"; allowed: safe, always, never$/],
  },
  {
    name: 'no connections',
    input: '{ url: "https://app:1", max_connections: 0 }',
    expected: [/error: upstream\.max_connections is 0; /],
  },
];

t.test('a WebSocket route beside upstream.http2 is refused: they go over HTTP/1.1', (t) => {
  const text = (http2: boolean, more = ''): string =>
    withRoutes(
      [
        'name: read, methods: [GET], path: /read, subjects: [a], permissions: [b]',
        `name: live, methods: [GET], path: /live, subjects: [a], permissions: [b]${more}`,
      ],
      { upstream: `{ url: "http://127.0.0.1:1", http2: ${String(http2)} }` },
    );
  t.match(problemsOf(text(true, ', websocket: true')), [
    /^c\.yaml:6:\d+: error: routes\[1\]\.websocket is true beside upstream\.http2, and WebSockets go over HTTP\/1\.1; allowed: upstream\.http2: false, or no WebSocket route$/,
  ]);
  t.equal(problemsOf(text(true, ', websocket: true')).length, 1);
  t.same(problemsOf(text(false, ', websocket: true')), []);
  t.same(problemsOf(text(true, ', websocket: false')), []);
  t.same(problemsOf(text(true)), []);
  t.end();
});

t.test('the settings of the upstream are read, and what is wrong with them is told', (t) => {
  for (const { name, input, expected } of together) {
    const problems = problemsOf(configText({ upstream: input }));
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    t.match(problems, expected, name);
  }
  t.end();
});

const ours = [
  'Host',
  'content-length',
  'Transfer-Encoding',
  'Connection',
  'Idempotency-Key',
  'Cookie',
  'X-Auth-Subject',
];

const fieldLists = [
  { name: 'a field of the application', input: 'strip_fields: [X-User, SM_USER]', expected: [] },
  {
    name: 'what is read or set here',
    input: `strip_fields: [${ours.join(', ')}]`,
    expected: [
      /^c\.yaml:2:48: error: upstream\.strip_fields\[0\] is "Host", which Sallyport reads or sets, or which a body needs; allowed: another header, such as X-User$/,
      /strip_fields\[1\] is "content-length", /,
      /\[2\] is "Transfer-Encoding", /,
      /\[3\] is "Connection", /,
      /\[4\] is "Idempotency-Key", /,
      /\[5\] is "Cookie", /,
      /\[6\] is "X-Auth-Subject", /,
    ],
  },
  {
    name: 'what tells what a body is',
    input: 'strip_fields: [Content-Type, Content_Encoding]',
    expected: [/\[0\] is "Content-Type", /, /\[1\] is "Content_Encoding", /],
  },
  {
    name: 'no name',
    input: 'strip_fields: ["X User"]',
    expected: [/upstream\.strip_fields\[0\] is "X User"; allowed: the name of a header$/],
  },
  {
    name: 'what a proxy in front sets',
    input: 'pass_fields: [CF-IPCountry, Destination, X-Forwarded-Prefix]',
    expected: [],
  },
  {
    name: 'what has another request carried out',
    input: 'pass_fields: [X-HTTP-Method-Override, X-Forwarded-For, X-Custom]',
    expected: [
      /upstream\.pass_fields\[0\] is "X-HTTP-Method-Override", which is not removed, or never passed on; allowed: a header that a proxy in front sets/,
      /pass_fields\[1\] is "X-Forwarded-For", which is not/,
      /pass_fields\[2\] is "X-Custom", which is not/,
    ],
  },
  {
    name: 'both at once',
    input: 'strip_fields: [CF_IPCountry], pass_fields: [CF-IPCountry]',
    expected: [/pass_fields\[0\] is "CF-IPCountry", which upstream\.strip_fields removes; /],
  },
];

t.test('fields of callers that the upstream gets, or does not get', (t) => {
  for (const { name, input, expected } of fieldLists) {
    const problems = problemsOf(configText({ upstream: `{ url: "unix:/run/s", ${input} }` }));
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    t.match(problems, expected, name);
  }
  const { stripFields, passFields } = compiled(
    configText({ upstream: '{ url: "unix:/s", strip_fields: [X-User], pass_fields: [X-Real-IP] }' }),
  ).upstream;
  t.same({ stripFields, passFields }, { stripFields: ['X-User'], passFields: ['X-Real-IP'] });
  t.match(
    problemsOf(
      configText({
        upstream: '{ url: "unix:/s", pass_fields: [Remote-User] }',
        identity: '{ headers: { subject: Remote-User } }',
      }),
    ),
    [/upstream\.pass_fields\[0\] is "Remote-User", which is an identity header; /],
  );
  t.end();
});

t.test('a field that tells two writes apart is not removed', (t) => {
  for (const field of ['X-Tenant', 'X_Tenant']) {
    const route = `{ name: w, methods: [POST], path: /w, subjects: [s], permissions: [], idempotency: { mode: required, fields: [${field}, If-Match] } }`;
    t.same(
      errorsOf(
        configText({
          upstream: '{ url: "unix:/s", strip_fields: [X_Tenant] }',
          store: '{ memory: {} }',
          routes: `[${route}]`,
        }),
      ).map((problem) => problem.split(': error: ')[1]),
      [
        `routes[0].idempotency.fields[0] is "${field}", which upstream.strip_fields removes; allowed: a header that is passed on`,
      ],
    );
  }
  t.end();
});

t.test('the upstream’s router', (t) => {
  t.same(problemsOf(configText({ receiver: '{ case_sensitive: true, strict_slash: true }' })), []);
  t.same(problemsOf(configText({ receiver: '{ case_sensitive: "yes" }' })), [
    'c.yaml:5:29: error: receiver.case_sensitive is "yes"; allowed: true or false',
  ]);
  t.end();
});

t.test('a field that is removed otherwise counts where upstream.pass_fields lets it through', (t) => {
  const said = (field: string, passed: string): readonly string[] =>
    errorsOf(
      withRoutes(
        [
          `name: a, methods: [POST], path: /a, subjects: [s], permissions: [p], idempotency: { mode: required, fields: [${field}] }`,
        ],
        {
          store: '{ memory: {} }',
          upstream: `{ url: "http://127.0.0.1:3000", pass_fields: [${passed}] }`,
        },
      ),
    ).map((line) => line.split('idempotency.')[1] ?? line);
  t.same(said('Destination', 'Destination'), []);
  t.same(said('destination, Host', 'DESTINATION'), [], 'in any case');
  t.same(said('CF-IPCountry', 'Destination'), [
    'fields[0] is "CF-IPCountry", which is never passed on as it came; allowed: another header, such as If-Match; or CF-IPCountry in upstream.pass_fields as well',
  ]);
  t.equal(said('X-Forwarded-Host', '').length, 1, 'what is never let through has no such way');
  t.match(
    said('Destination', '"*"'),
    [/upstream\.pass_fields\[0\] is /],
    'of an upstream that is wrong nothing follows',
  );
  t.end();
});
