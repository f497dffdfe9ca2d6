import t from 'tap';
import { compiled, configText, problemsOf } from '../inspection.js';

const taken = [
  'Authorization',
  'Host',
  'Connection',
  'Keep-Alive',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Content-Length',
  'Content-Type',
  'Expect',
  'Idempotency-Key',
  'X-Forwarded-For',
  'X-Forwarded-Port',
  'Forwarded',
  'Via',
  'X-Request-Id',
  'Traceparent',
  'X-Original-URL',
  'X-HTTP-Method-Override',
  'Proxy-Authorization',
  'xForwardedFor',
  // Their callers' copies would be gone before sessions, origins and handshakes are judged.
  'Cookie',
  'Set-Cookie',
  'Origin',
  'Anti-CSRF',
  'Front-Token',
  'rid',
  'St-Auth-Mode',
  'Sec-WebSocket-Key',
  'SEC-WebSocket-Protocol',
];

t.test('an identity header has no other meaning', (t) => {
  for (const name of taken) {
    t.same(
      problemsOf(configText({ identity: `{ headers: { subject: ${name} } }` })),
      [
        `c.yaml:5:33: error: identity.headers.subject is "${name}", which has another meaning; allowed: a name of its own, such as X-Auth-Subject`,
      ],
      name,
    );
  }
  for (const name of ['X-User', 'Remote-User', 'X-Forwarded-User', 'X-Webauth-User', 'X-Auth-Subject']) {
    t.same(problemsOf(configText({ identity: `{ headers: { subject: ${name} } }` })), [], name);
  }
  t.end();
});

const names = [
  { name: 'no name', input: '""' },
  { name: 'a space', input: '"X Y"' },
  { name: 'a colon', input: '"X:"' },
  { name: 'a newline', input: '"X\\n"' },
  { name: 'an underscore', input: 'X_User' },
  { name: 'a digit in front', input: '1X' },
  { name: 'a letter beyond ASCII', input: 'X-Ü' },
  { name: 'too long', input: 'X'.repeat(65) },
  { name: 'a number', input: '5' },
  { name: 'a list', input: '[X]' },
];

t.test('names of identity headers', (t) => {
  for (const { name, input } of names) {
    t.match(
      problemsOf(configText({ identity: `{ headers: { kind: ${input} } }` })),
      [
        /^c\.yaml:5:30: error: identity\.headers\.kind is .*; allowed: a header name of at most 64 letters, digits and `-`, or null to leave it out$/,
      ],
      name,
    );
  }
  t.same(problemsOf(configText({ identity: `{ headers: { kind: ${'X'.repeat(64)} } }` })), []);
  t.end();
});

t.test('identity headers that an upstream may take for one another', (t) => {
  t.same(problemsOf(configText({ identity: '{ headers: { subject: X-Auth, issuer: x-auth } }' })), [
    'c.yaml:5:49: error: identity.headers.issuer is "x-auth", too much like identity.headers.subject; allowed: another name',
  ]);
  t.same(problemsOf(configText({ identity: '{ headers: { kind: XAuth-Subject } }' })), [
    'c.yaml:5:30: error: identity.headers.kind is "XAuth-Subject", too much like identity.headers.subject; allowed: another name',
  ]);
  t.end();
});

t.test('identity, compiled', (t) => {
  t.same(compiled(configText()).identity, {
    subject: 'X-Auth-Subject',
    issuer: 'X-Auth-Issuer',
    permissions: 'X-Auth-Permissions',
    tokenId: 'X-Auth-Token-Id',
    kind: 'X-Auth-Kind',
    clientCertificate: null,
  });
  t.same(
    compiled(
      configText({
        identity: '{ headers: { subject: X-User, issuer: null, permissions: null, token_id: null, kind: null } }',
      }),
    ).identity,
    { subject: 'X-User', issuer: null, permissions: null, tokenId: null, kind: null, clientCertificate: null },
  );
  t.end();
});
