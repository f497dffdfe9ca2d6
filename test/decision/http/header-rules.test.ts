import t from 'tap';
import {
  createHeaderRules,
  mayNameIdentity,
  mayNameOperation,
  mayPass,
  mayStrip,
  type HeaderRuleSettings,
} from '../../../src/decision/http/header-rules.js';
import { believedFields, cases, lookAlikes } from '../../support/attacks/field-names.js';

const rules = (settings: Partial<HeaderRuleSettings> = {}): ReturnType<typeof createHeaderRules> =>
  createHeaderRules({ identityNames: ['X-Caller'], underscoreFields: 'drop', http10: 'refuse', ...settings });

/** Fields that a caller may not send in any spelling. */
const neverTheCallers = [
  'X-Caller',
  'X-Auth-Subject',
  'X-Auth-Issuer',
  'X-Auth-Permissions',
  'X-Auth-Token-Id',
  'X-Auth-Kind',
  'X-Auth-Assertion',
  'Idempotency-Record',
  'Idempotency-Fence',
  'Idempotency-Outcome',
  'Idempotent-Replayed',
  'Proxy-Status',
  'Forwarded',
  'X-Real-IP',
  'X-Forwarded-Uri',
  'X-Forwarded-Prefix',
  'X-Forwarded-User',
  'X-Forwarded-Port',
  'X-Forwarded-Client-Cert',
  'X-Forwarded',
  'Destination',
  ...believedFields.flatMap(({ names }) => names),
  'X-HTTP-Method-Override',
  'X-HTTP-Method',
  'X-Method-Override',
  'X-Original-Method',
  'X-Original-URL',
  'X-Original-URI',
  'X-Original-Host',
  'X-Rewrite-URL',
  'X-Envoy-Original-Path',
  'X-Envoy-External-Address',
  'X-Skipper-Proxy',
  'X-Middleware-Subrequest',
  'X-Matched-Path',
  'X-Now-Route-Matches',
  'X-Invoke-Path',
  'X-Invoke-Query',
  'Proxy',
  'Client-Cert',
  'True-Client-IP',
  'X-Client-IP',
  'CF-Connecting-IP',
  'X-Cluster-Client-IP',
  'X-Request-URI',
  'X-HTTP-Path-Override',
  'X-HTTP-Host-Override',
  'X-HTTP-DestinationURL',
  'X-Override-URL',
  'X-Script-Name',
  'X-Host',
  'X-Scheme',
  'X-Url-Scheme',
  'Front-End-Https',
  'Client-Cert-Chain',
  'X-Sendfile-Type',
  'X-Accel-Mapping',
  'X-Original',
  'X-Rewrite',
  'X-Envoy',
  'X-Skipper',
  'X-Middleware',
];

/** Fields that are read in their own spelling and are dropped in any other. */
const judged = [
  'Authorization',
  'Connection',
  'Content-Length',
  'Content-Type',
  'Expect',
  'Host',
  'Idempotency-Key',
  'traceparent',
  'tracestate',
  'Transfer-Encoding',
  'Upgrade',
  'Via',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Forwarded-Proto',
  'X-Request-Id',
];

const hopByHop = [
  'Keep-Alive',
  'Proxy-Connection',
  'Proxy-Authorization',
  'Proxy-Authenticate',
  'Proxy-Authentication-Info',
  'TE',
  'Trailer',
  'HTTP2-Settings',
];

t.test('what only we may send is reserved in every spelling', (t) => {
  const { requestKind } = rules({ underscoreFields: 'allow' });
  for (const name of neverTheCallers) {
    for (const spelling of [...cases(name), ...lookAlikes(name)]) t.equal(requestKind(spelling), 'reserved', spelling);
  }
  t.end();
});

t.test('what gRPC-Gateway takes for a name is treated as that name', (t) => {
  const { requestKind, strippedKind } = rules({
    underscoreFields: 'allow',
    identityNames: ['X-Caller', 'Grpc-Metadata-Caller'],
    stripFields: ['X-Role'],
    passFields: ['Grpc-Metadata-Remote-User'],
  });
  const kinds = {
    'Grpc-Metadata-X-Auth-Subject': 'identity',
    'Grpc-Metadata-X-Caller': 'identity',
    'Grpc-Metadata-Caller': 'identity',
    'Grpc-Metadata-Authorization': 'identity',
    'Grpc-Metadata-X-Role': 'listed',
    'Grpc-Metadata-X-Forwarded-For': 'forwarded',
    'Grpc-Metadata-X-SSL-Client-DN': 'forwarded',
    'Grpc-Metadata-X-HTTP-Method-Override': 'override',
  } as const;
  for (const [name, kind] of Object.entries(kinds)) {
    for (const spelling of [...cases(name), ...lookAlikes(name)]) {
      t.equal(requestKind(spelling), 'reserved', spelling);
      t.equal(strippedKind(spelling), kind, spelling);
    }
  }
  for (const name of ['Grpc-Metadata-Tenant', 'Grpc-Metadata-', 'Grpc-Timeout', 'Grpc-Metadata-Remote-User']) {
    t.equal(requestKind(name), 'passed', name);
  }
  t.equal(rules().requestKind('Grpc-Metadata-Remote-User'), 'reserved');
  t.equal(mayPass('Grpc-Metadata-Remote-User'), true);
  t.equal(mayPass('Grpc-Metadata-Authorization'), false);
  t.end();
});

t.test('what is checked is read in its own spelling, in any case, and reserved in others', (t) => {
  const { requestKind } = rules({ underscoreFields: 'allow' });
  for (const name of judged) {
    for (const spelling of cases(name)) t.equal(requestKind(spelling), name.toLowerCase(), spelling);
    for (const spelling of lookAlikes(name)) t.equal(requestKind(spelling), 'reserved', spelling);
  }
  t.end();
});

t.test('hop-by-hop headers end here, and what looks like one is reserved', (t) => {
  const { requestKind } = rules({ underscoreFields: 'allow' });
  for (const name of hopByHop) {
    for (const spelling of cases(name)) t.equal(requestKind(spelling), 'hop-by-hop', spelling);
    for (const spelling of lookAlikes(name)) t.equal(requestKind(spelling), 'reserved', spelling);
  }
  t.end();
});

t.test('other names with an underscore follow underscore_fields', (t) => {
  for (const name of ['my_field', '_', '__proto__', 'X-Api_Key', 'a_']) {
    t.equal(rules({ underscoreFields: 'drop' }).requestKind(name), 'underscored', name);
    t.equal(rules({ underscoreFields: 'refuse' }).requestKind(name), 'refused', name);
    t.equal(rules({ underscoreFields: 'allow' }).requestKind(name), 'passed', name);
  }
  t.end();
});

t.test('all other names pass', (t) => {
  const { requestKind } = rules({ underscoreFields: 'refuse' });
  const passed = [
    'Accept',
    'Cookie',
    'X-Custom',
    'X.Foo',
    '-',
    '!',
    '1',
    'X-Auth',
    'X-Auth-Subject-2',
    'Hosts',
    'constructor',
    'If-Match',
    'Origin',
    'Overwrite',
    'Depth',
    'X-Realm',
    'Flyer',
    'X-Client-Version',
    'X-Country',
    'X-Azure-FDID',
    'CF-Ray',
    'X-Auth-Token',
    'X-User-Agent',
    'X-Vercel-Protection-Bypass',
    'Remote',
  ];
  for (const name of passed) {
    t.equal(requestKind(name), 'passed', name);
  }
  t.end();
});

t.test('what is no token is malformed', (t) => {
  const { requestKind, responseKind } = rules();
  const names = [
    '',
    ' ',
    'a b',
    'a:',
    'a\n',
    'Host ',
    ' Host',
    'a(',
    'a,b',
    'a/b',
    'b\u00e9',
    'a\u0000',
    '\u212aeep-Alive',
    'a"',
    'a=b',
    'a@b',
    '[a]',
    '{a}',
    'a\\b',
    'a\u007f',
  ];
  for (const name of names) {
    t.equal(requestKind(name), 'malformed', JSON.stringify(name));
    t.equal(responseKind(name), 'dropped', JSON.stringify(name));
  }
  t.end();
});

t.test("an identity header that bears the name of another header is nobody else's", (t) => {
  t.equal(rules({ identityNames: ['Cookie'] }).requestKind('cookie'), 'reserved');
  t.equal(rules({ identityNames: ['X-Forwarded-For'] }).requestKind('X-Forwarded-For'), 'reserved');
  t.equal(rules({ identityNames: ['X-Forwarded-User'] }).requestKind('x_forwarded_user'), 'reserved');
  t.end();
});

t.test('what an upstream may not tell the caller', (t) => {
  const { responseKind } = rules();
  const dropped = [
    ...hopByHop,
    'Upgrade',
    'Transfer-Encoding',
    'X-Caller',
    'X-Auth-Subject',
    'X_Auth.Subject',
    'X-Auth-Assertion',
    'Idempotent-Replayed',
    'Idempotency_Outcome',
    'Idempotency-Outcome',
    'X-Request-Id',
    'Proxy_Status',
    'Connection_',
  ];
  for (const name of dropped.flatMap(cases)) t.equal(responseKind(name), 'dropped', name);
  for (const name of cases('Connection')) t.equal(responseKind(name), 'connection', name);
  for (const name of cases('Proxy-Status')) t.equal(responseKind(name), 'proxy-status', name);
  const passed = [
    'Set-Cookie',
    'Content-Type',
    'Content-Length',
    'Server',
    'Date',
    'my_field',
    'WWW-Authenticate',
    'Idempotency-Key',
    'traceparent',
    '__proto__',
  ];
  for (const name of passed.flatMap(cases)) t.equal(responseKind(name), 'passed', name);
  t.end();
});

t.test('the answer for a name stays the same however many names callers make up', (t) => {
  const { requestKind } = rules();
  for (let i = 0; i < 2000; i++) {
    requestKind(`X-Made-Up-${i}`);
    if (requestKind('Host') !== 'host' || requestKind('X_Caller') !== 'reserved') t.fail(`after ${i}`);
  }
  const long = `X-${'a'.repeat(100)}`;
  t.equal(requestKind(long), 'passed');
  t.equal(requestKind(long), 'passed');
  t.end();
});

t.test('which names an identity header may have', (t) => {
  const free = [
    'X-Auth-Subject',
    'X-Caller',
    'Remote-User',
    'X-Remote-User',
    'X-Webauth-User',
    'X-Auth-Request-Email',
    'X-Forwarded-User',
    'X-Consumer-Id',
    'X-Auth-Kind',
    'Cookies',
    'X-St-Role',
    'Stage',
    'Sec-WebSocket',
    'My-Rid',
  ];
  for (const name of free) t.equal(mayNameIdentity(name), true, name);
  const taken = [
    '',
    'a b',
    'X_Auth_Subject',
    'Authorization',
    'Author-ization',
    'Host',
    'TE',
    'X-Forwarded-For',
    'Idempotency-Key',
    'Content-Length',
    'Proxy-Status',
    'Remote_User',
    'Remote-Addr',
    'Client-IP',
    'X-SSL-Client-DN',
    'Destination',
  ];
  const consulted = [
    'Cookie',
    'Set-Cookie',
    'Origin',
    'Anti-CSRF',
    'Front-Token',
    'Rid',
    'St-Auth-Mode',
    'St-',
    'Sec-WebSocket-Key',
    'Sec-WebSocket-Protocol',
    'Sec-WebSocket-',
  ];
  for (const name of [...taken, ...consulted.flatMap(cases)]) t.equal(mayNameIdentity(name), false, name);
  t.end();
});

t.test('what the operator has removed goes in every spelling, and needs no other field to be given up', (t) => {
  const { requestKind, strippedKind } = rules({
    stripFields: ['X-User', 'st_auth_mode', 'SM.X'],
    underscoreFields: 'allow',
  });
  for (const name of ['X-User', 'X_User', ...cases('X-User'), ...lookAlikes('X-User'), 'SM-X', 'StAuthMode']) {
    t.equal(requestKind(name), 'reserved', name);
    t.equal(strippedKind(name), 'listed', name);
  }
  for (const name of ['X-Users', 'X-User-2', 'St-Auth-Mode']) t.equal(requestKind(name), 'passed', name);
  t.equal(rules().requestKind('X-User'), 'passed');
  t.equal(rules({ identityNames: ['X-User'], stripFields: ['X-User'] }).strippedKind('X_User'), 'identity');
  t.end();
});

t.test('what Sallyport reads or sets, and what a body needs, cannot be removed', (t) => {
  const needed = [
    ...judged,
    ...hopByHop,
    'Cookie',
    'Set-Cookie',
    'Origin',
    'Rid',
    'St-Access-Token',
    'Sec-WebSocket-Key',
    'X-Auth-Subject',
    'Idempotency-Record',
    'Content-Encoding',
    'Content-Range',
  ];
  for (const name of needed.flatMap(cases)) t.equal(mayStrip(name), false, name);
  for (const name of [...judged, ...hopByHop, 'Cookie'].map((name) => name.replaceAll('-', '_'))) {
    t.equal(mayStrip(name), false, name);
  }
  for (const name of ['X-User', 'Accept', 'Referer', 'Remote-User', 'Client-IP', 'SM_USER']) {
    t.equal(mayStrip(name), true, name);
  }
  t.end();
});

t.test('a header that is to go on does so in its own spelling only, and never where it is an identity header', (t) => {
  const { requestKind } = rules({
    passFields: ['CF-IPCountry', 'Destination', 'Remote-User'],
    identityNames: ['Remote-User'],
    underscoreFields: 'allow',
  });
  for (const name of [...cases('CF-IPCountry'), ...cases('Destination')]) t.equal(requestKind(name), 'passed', name);
  for (const name of ['CF_IPCountry', 'CFIPCountry', 'Destination_', ...cases('Remote-User'), 'CF-Connecting-IP']) {
    t.equal(requestKind(name), 'reserved', name);
  }
  t.end();
});

t.test('only what a proxy in front sets, and a second path, may go on', (t) => {
  const may = [
    'CF-IPCountry',
    'X-Real-IP',
    'X-Forwarded-Prefix',
    'Remote-User',
    'X-SSL-Client-DN',
    'Destination',
    'Tailscale-User-Login',
  ];
  for (const name of may.flatMap(cases)) t.equal(mayPass(name), true, name);
  const mayNot = [
    ...judged,
    ...hopByHop,
    'X-Auth-Subject',
    'Idempotency-Record',
    'Proxy-Status',
    'X-HTTP-Method-Override',
    'X-Original-URL',
    'X-Rewrite-URL',
    'Script-Name',
    'Proxy',
    'X-Custom',
    'my_field',
    'Remote_User',
    'X_Forwarded_For',
    'Content_Length',
    '',
    'a b',
  ];
  for (const name of mayNot) t.equal(mayPass(name), false, name);
  t.end();
});

t.test('what names an operation is a header that goes on as the caller sent it', (t) => {
  for (const name of ['X-Order-Id', 'Operation', 'Cookie', 'User-Agent']) t.equal(mayNameOperation(name), true, name);
  const mayNot = [
    'Host',
    'via',
    'X-Request-Id',
    'Traceparent',
    'Idempotency-Key',
    'TE',
    'X-Forwarded-For',
    'Forwarded',
  ];
  for (const name of [...mayNot, 'X-Auth-Subject', 'X_Order_Id', 'a b']) t.equal(mayNameOperation(name), false, name);
  t.end();
});
