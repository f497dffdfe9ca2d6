import t from 'tap';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import { upstreamHeaders, type Forwarding } from '../../../src/decision/http/forwarded-headers.js';
import { readHeaders, type RequestHeaders } from '../../../src/decision/http/request-headers.js';

const rules = createHeaderRules({ identityNames: ['X-Auth-Subject'], underscoreFields: 'drop', http10: 'allow' });
const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

function fieldsOf(...rawHeaders: readonly string[]): RequestHeaders {
  const fields = readHeaders(
    { method: 'GET', target: '/', httpVersion: '1.1', rawHeaders: ['Host', 'orders.example.com:8443', ...rawHeaders] },
    rules,
  );
  if (!fields.ok) throw new Error(fields.error.reason);
  return fields.value;
}

function forward(fields: RequestHeaders, more: Partial<Forwarding> = {}): string[] {
  return upstreamHeaders({
    headers: fields,
    httpVersion: '1.1',
    remoteAddress: '203.0.113.9',
    trusted: false,
    encrypted: false,
    host: '127.0.0.1:3000',
    requestId: 'r-1',
    traceparent: trace,
    forwardsAuthorization: false,
    takesTrailers: false,
    identity: [],
    ...more,
  });
}

function valueOf(fields: readonly string[], name: string): string | undefined {
  const at = fields.findIndex((text, i) => i % 2 === 0 && text === name);
  t.equal(
    fields.filter((text, i) => i % 2 === 0 && text.toLowerCase() === name.toLowerCase()).length,
    at === -1 ? 0 : 1,
    `${name} at most once`,
  );
  return at === -1 ? undefined : fields[at + 1];
}

t.test('the whole header section, identity last', (t) => {
  const fields = fieldsOf(
    'Accept',
    '*/*',
    'Authorization',
    'Bearer a.b.c',
    'Content-Type',
    'text/plain',
    'Content-Length',
    '3',
    'Idempotency-Key',
    'k',
    'tracestate',
    'a=b',
    'traceparent',
    trace,
  );
  t.same(forward(fields, { forwardsAuthorization: true, identity: ['X-Auth-Subject', 'checkout'] }), [
    'Host',
    '127.0.0.1:3000',
    'Accept',
    '*/*',
    'Content-Type',
    'text/plain',
    'Idempotency-Key',
    'k',
    'Content-Length',
    '3',
    'Authorization',
    'Bearer a.b.c',
    'X-Forwarded-For',
    '203.0.113.9',
    'X-Forwarded-Proto',
    'http',
    'X-Forwarded-Host',
    'orders.example.com:8443',
    'Via',
    '1.1 sallyport',
    'X-Request-Id',
    'r-1',
    'traceparent',
    trace,
    'tracestate',
    'a=b',
    'X-Auth-Subject',
    'checkout',
  ]);
  t.end();
});

t.test("Host is the upstream's, or the caller's where it is preserved", (t) => {
  t.equal(valueOf(forward(fieldsOf()), 'Host'), '127.0.0.1:3000');
  t.equal(valueOf(forward(fieldsOf(), { host: null }), 'Host'), 'orders.example.com:8443');
  t.end();
});

t.test('Authorization goes on only where the route says so', (t) => {
  const fields = fieldsOf('Authorization', 'Bearer a.b.c');
  t.equal(valueOf(forward(fields), 'Authorization'), undefined);
  t.equal(valueOf(forward(fields, { forwardsAuthorization: true }), 'Authorization'), 'Bearer a.b.c');
  t.equal(valueOf(forward(fieldsOf(), { forwardsAuthorization: true }), 'Authorization'), undefined);
  t.end();
});

t.test('the length goes on, and Transfer-Encoding is left to the connection', (t) => {
  const rows = [
    { fields: fieldsOf(), length: undefined },
    { fields: fieldsOf('Content-Length', '0'), length: '0' },
    { fields: fieldsOf('Content-Length', '42'), length: '42' },
    { fields: fieldsOf('Transfer-Encoding', 'chunked'), length: undefined },
  ];
  for (const { fields, length } of rows) {
    const sent = forward(fields);
    t.equal(valueOf(sent, 'Content-Length'), length);
    t.equal(valueOf(sent, 'Transfer-Encoding'), undefined);
  }
  t.end();
});

const earlier = [
  'X-Forwarded-For',
  '1.1.1.1, unknown',
  'X-Forwarded-For',
  '"[::2]:80"',
  'X-Forwarded-Proto',
  'https',
  'X-Forwarded-Host',
  'shop.example',
  'Via',
  '2 edge',
];
const address = '203.0.113.9';

const hops = [
  {
    name: 'what an untrusted caller says of earlier hops is replaced',
    input: earlier,
    expected: { for: address, proto: 'http', host: 'orders.example.com:8443', via: '1.1 sallyport' },
  },
  {
    name: "a trusted caller's lists are kept and extended",
    input: earlier,
    more: { trusted: true },
    expected: {
      for: `1.1.1.1, unknown, "[::2]:80", ${address}`,
      proto: 'https',
      host: 'shop.example',
      via: '2 edge, 1.1 sallyport',
    },
  },
  {
    name: 'a trusted caller that says nothing',
    input: [],
    more: { trusted: true, encrypted: true },
    expected: { for: address, proto: 'https', host: 'orders.example.com:8443', via: '1.1 sallyport' },
  },
  {
    name: "a trusted caller's junk is replaced",
    input: ['X-Forwarded-For', '\u00e9', 'X-Forwarded-Proto', 'gopher', 'X-Forwarded-Host', 'a@b', 'Via', '\u00e9'],
    more: { trusted: true },
    expected: { for: address, proto: 'http', host: 'orders.example.com:8443', via: '1.1 sallyport' },
  },
  {
    name: 'junk behind what is sound',
    input: [
      'X-Forwarded-For',
      '1.1.1.1\u00e9',
      'X-Forwarded-Proto',
      'https, gopher',
      'X-Forwarded-Host',
      'a.example, a@b',
      'Via',
      '2 edge\u00e9',
    ],
    more: { trusted: true },
    expected: { for: address, proto: 'http', host: 'orders.example.com:8443', via: '1.1 sallyport' },
  },
  {
    name: 'and before it',
    input: [
      'X-Forwarded-For',
      '\u00e91.1.1.1',
      'X-Forwarded-Proto',
      'gopher, https',
      'X-Forwarded-Host',
      'a@b, a.example',
      'Via',
      '\u00e92 edge',
    ],
    more: { trusted: true },
    expected: { for: address, proto: 'http', host: 'orders.example.com:8443', via: '1.1 sallyport' },
  },
  {
    name: 'empty fields too',
    input: ['X-Forwarded-For', '', 'X-Forwarded-Proto', '', 'X-Forwarded-Host', '', 'Via', ''],
    more: { trusted: true, encrypted: true },
    expected: { for: address, proto: 'https', host: 'orders.example.com:8443', via: '1.1 sallyport' },
  },
  {
    name: 'lists of protocols and hosts',
    input: ['X-Forwarded-Proto', 'https , http', 'X-Forwarded-Host', 'a.example', 'X-Forwarded-Host', 'b.example:80'],
    more: { trusted: true },
    expected: { for: address, proto: 'https , http', host: 'a.example, b.example:80', via: '1.1 sallyport' },
  },
  {
    name: 'https where TLS ends here or before us',
    input: [],
    more: { encrypted: true },
    expected: { for: address, proto: 'https', host: 'orders.example.com:8443', via: '1.1 sallyport' },
  },
  {
    name: 'addresses are written plainly',
    input: [],
    more: { remoteAddress: '::ffff:10.0.0.1' },
    expected: { for: '10.0.0.1', proto: 'http', host: 'orders.example.com:8443', via: '1.1 sallyport' },
  },
  {
    name: 'no address',
    input: [],
    more: { remoteAddress: '', host: null },
    expected: { for: 'unknown', proto: 'http', host: 'orders.example.com:8443', via: '1.1 sallyport' },
  },
  {
    name: 'RFC 9110 §7.6.3: Via tells the version received',
    input: [],
    more: { httpVersion: '1.0' },
    expected: { for: address, proto: 'http', host: 'orders.example.com:8443', via: '1.0 sallyport' },
  },
];

t.test('X-Forwarded-* and Via are ours', (t) => {
  for (const { name, input, more, expected } of hops) {
    const fields = forward(fieldsOf(...input), more);
    t.equal(valueOf(fields, 'X-Forwarded-For'), expected.for, name);
    t.equal(valueOf(fields, 'X-Forwarded-Proto'), expected.proto, name);
    t.equal(valueOf(fields, 'X-Forwarded-Host'), expected.host, name);
    t.equal(valueOf(fields, 'Via'), expected.via, name);
  }
  t.end();
});
