import t from 'tap';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import {
  addStripped,
  nothingStripped,
  strippedKinds,
  totalStripped,
  type StrippedKind,
} from '../../../src/decision/http/stripped-headers.js';
import { believedFields, cases, lookAlikes, obeyedFields } from '../../support/attacks/field-names.js';

const { requestKind, strippedKind } = createHeaderRules({
  identityNames: ['X-Caller'],
  underscoreFields: 'drop',
  http10: 'refuse',
  stripFields: ['X-User'],
});

/** What is dropped in any spelling, and what only in another than its own. */
const rows: readonly {
  readonly kind: StrippedKind;
  readonly always?: readonly string[];
  readonly lookAlikesOnly?: readonly string[];
}[] = [
  {
    kind: 'identity',
    always: [
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
    ],
    lookAlikesOnly: ['Authorization'],
  },
  {
    kind: 'forwarded',
    always: [
      'Forwarded',
      'X-Real-IP',
      'X-Forwarded-Port',
      'X-Forwarded-Scheme',
      'X-Forwarded-User',
      'X-Forwarded-Client-Cert',
      'X-Original-Forwarded-For',
      'X-Scheme',
      'True-Client-IP',
      'CF-Connecting-IP',
      'X-Envoy-External-Address',
      'Client-Cert',
      ...believedFields.flatMap(({ names }) => names),
    ],
    lookAlikesOnly: [
      'X-Forwarded-For',
      'X-Forwarded-Host',
      'X-Forwarded-Proto',
      'Via',
      'X-Request-Id',
      'traceparent',
      'tracestate',
    ],
  },
  {
    kind: 'override',
    always: [
      'X-HTTP-Method-Override',
      'X-Original-URL',
      'X-Original-Method',
      'X-Rewrite-URL',
      'X-Middleware-Subrequest',
      'X-Matched-Path',
      'X-Now-Route-Matches',
      'X-Invoke-Path',
      'X-Invoke-Query',
      'X-Script-Name',
      'Proxy',
      ...obeyedFields,
    ],
    lookAlikesOnly: ['Host', 'Content-Type', 'Idempotency-Key'],
  },
  { kind: 'listed', always: ['X-User', 'X_User'] },
  {
    kind: 'hop',
    lookAlikesOnly: [
      'Connection',
      'Keep-Alive',
      'TE',
      'Trailer',
      'Transfer-Encoding',
      'Content-Length',
      'Upgrade',
      'Expect',
    ],
  },
  { kind: 'underscore', always: ['my_field', '__proto__', 'x_api_key'] },
];

t.test('headers that are dropped are told apart by what they would have told the upstream', (t) => {
  for (const { kind, always = [], lookAlikesOnly = [] } of rows) {
    for (const name of [...always.flatMap(cases), ...lookAlikesOnly.flatMap(lookAlikes)]) {
      t.match(requestKind(name), /^(reserved|underscored)$/, `${name} is dropped`);
      t.equal(strippedKind(name), kind, name);
    }
  }
  t.same([...rows.map(({ kind }) => kind)].sort(), [...strippedKinds].sort());
  t.end();
});

t.test('an identity header counts as one whatever its name would mean otherwise', (t) => {
  const rules = createHeaderRules({ identityNames: ['X-Forwarded-User'], underscoreFields: 'drop', http10: 'refuse' });
  for (const name of ['X-Forwarded-User', 'x_forwarded_user']) t.equal(rules.strippedKind(name), 'identity', name);
  t.equal(rules.strippedKind('X-Forwarded-Email'), 'forwarded');
  t.end();
});

t.test('they are counted by kind', (t) => {
  t.equal(addStripped(nothingStripped, 'hop', 0), nothingStripped);
  const some = addStripped(addStripped(addStripped(nothingStripped, 'hop', 1), 'identity', 2), 'hop', 1);
  t.same(some, { hop: 2, identity: 2 });
  t.equal(totalStripped(some), 4);
  t.same(nothingStripped, {});
  t.equal(totalStripped(nothingStripped), 0);
  t.end();
});
