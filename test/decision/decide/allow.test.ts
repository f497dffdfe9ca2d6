import t from 'tap';
import {
  answeredNames,
  answerHeaders,
  headerEdits,
  removesNames,
  unremovableHeader,
} from '../../../src/decision/decide/allow.js';
import { forms } from '../../../src/decision/decide/forms.js';
import { limitsOf } from '../../../src/decision/decide/limits.js';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import { cases, lookAlikes, obeyedFields } from '../../support/attacks/field-names.js';

const identity = {
  subject: 'X-Auth-Subject',
  issuer: null,
  permissions: 'X-Perms',
  tokenId: null,
  kind: null,
  clientCertificate: null,
};
const rules = createHeaderRules({
  identityNames: ['X-Auth-Subject', 'X-Perms'],
  underscoreFields: 'drop',
  http10: 'refuse',
});
const answered = answeredNames(identity, 'X-Auth-Assertion');
const lowerCase = new Set(answered.map((name) => name.toLowerCase()));

t.test('every response has each name of the config, and Authorization', (t) => {
  t.same(answered, ['X-Auth-Subject', 'X-Perms', 'X-Auth-Assertion', 'Authorization']);
  t.same(answeredNames(identity, null), ['X-Auth-Subject', 'X-Perms', 'Authorization']);
  t.same(answerHeaders(['x-perms', 'a b', 'Other', 'x'], answered), [
    ...['X-Auth-Subject', '', 'X-Perms', 'a b', 'X-Auth-Assertion', '', 'Authorization', '', 'DPoP', ''],
  ]);
  t.same(answerHeaders(['DPoP', 'p'], []), ['DPoP', 'p'], 'a proof goes on with its token alone');
  t.same(
    forms.filter((form) => removesNames(form)),
    ['envoy', 'haproxy', 'apache'],
  );
  t.end();
});

t.test('a fixed list of names leaves nothing that an upstream may believe or obey', (t) => {
  const found = (name: string): string | null => unremovableHeader(['X-Note', 'a', name, 'x'], rules, lowerCase);
  for (const name of cases('X-Auth-Subject')) t.equal(found(name), null, name);
  for (const name of lookAlikes('X-Auth-Subject').filter((other) => /^[!-~]+$/.test(other))) {
    t.equal(found(name), name, name);
  }
  for (const name of obeyedFields) t.equal(found(name), name, name);
  for (const name of [
    'Remote-User',
    'Remote-Addr',
    'X-Forwarded-User',
    'X-Remote-Any',
    'X-SSL-Client',
    'Client-Cert',
  ]) {
    t.equal(found(name), name, name);
  }
  for (const name of ['X-Real-IP', 'X-Forwarded-Port', 'Forwarded', 'True-Client-IP', 'X-Other', 'TE', 'DPoP']) {
    t.equal(found(name), null, name);
  }
  for (const name of ['X_Forwarded_For', 'a_b', 'Proxy-Authenticate', 'Proxy-Authentication-Info']) {
    t.equal(found(name), name, name);
  }
  const allowing = createHeaderRules({ identityNames: [], underscoreFields: 'allow', http10: 'refuse' });
  t.equal(unremovableHeader(['a_b', 'x'], allowing, lowerCase), null);
  t.equal(found('no name'), null, 'what is no name is refused before');
  t.equal(unremovableHeader(['X-Odd'], rules, lowerCase), null);
  t.end();
});

t.test('edits make of a request what the sidecar would forward', (t) => {
  const rawHeaders = [
    ...['X-Auth-Subject', 'spoofed', 'X_Auth_Subject', 'spoofed', 'Authorization', 'Bearer x', 'DPoP', 'p'],
    ...['Cookie', 'session=1; a=b', 'Rid', 'x', 'X-Note', 'a', 'X-Note', 'b', 'a_b', 'x', 'X-Real-IP', '1.2.3.4'],
    ...['no name', 'x', 'Remote-User', 'root', 'TE', 'trailers', 'Trailer', 'x', 'Proxy-Authorization', 'Basic x'],
  ];
  const forwarded = ['Host', 'h', 'Cookie', 'a=b', 'X-Note', 'a', 'X-Note', 'b', 'X-Auth-Subject', 's', 'X-Perms', ''];
  t.same(headerEdits(rawHeaders, forwarded, rules, answered), {
    set: ['X-Auth-Subject', 's', 'X-Perms', '', 'Cookie', 'a=b'],
    remove: [
      'X-Auth-Assertion',
      'Authorization',
      'X_Auth_Subject',
      'DPoP',
      'Rid',
      'a_b',
      'Remote-User',
      'Proxy-Authorization',
    ],
  });
  t.same(headerEdits(['X-Odd'], ['X-Odd'], rules, []), { set: [], remove: [] });
  t.end();
});

t.test('lines of cookies that go on are put together as cookies are, and others as lists', (t) => {
  const rawHeaders = ['Cookie', 'sAccessToken=x; a=1', 'cookie', 'b=2', 'X-Note', 'a', 'X-Note', 'b', 'X-Note', 'c'];
  const forwarded = ['Cookie', 'a=1', 'cookie', 'b=2', 'X-Note', 'a', 'X-Note', 'c'];
  t.same(headerEdits(rawHeaders, forwarded, rules, []), {
    set: ['Cookie', 'a=1; b=2', 'X-Note', 'a, c'],
    remove: [],
  });
  const kept = rawHeaders.slice(0, 4);
  t.same(headerEdits(kept, kept, rules, []), { set: [], remove: [] }, 'left as they came');
  t.end();
});

t.test('what a decision alone cannot see to', (t) => {
  const named = (asked: Parameters<typeof limitsOf>[0]): readonly string[] =>
    limitsOf(asked).map(({ acceptance }) => acceptance);
  t.same(named({ reservation: null, opensConnections: false }), []);
  t.same(named({ reservation: { key: 'required', singleUse: false }, opensConnections: false }), ['unreserved']);
  t.same(named({ reservation: { key: null, singleUse: true }, opensConnections: true }), [
    'reused_tokens',
    'connections',
  ]);
  t.end();
});
