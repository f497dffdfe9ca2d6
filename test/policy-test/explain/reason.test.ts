import t from 'tap';
import { reasons, type Reason } from '../../../src/decision/denial.js';
import { explain, type Explained } from '../../../src/policy-test/explain/explanation.js';
import { explainReason } from '../../../src/policy-test/explain/reason.js';
import { explanationLines } from '../../../src/policy-test/explain/format.js';
import { headOf, rule } from '../../../src/policy-test/simulate/decide.js';
import { nowMs, policy, type Row, service } from './explained-policy.js';
import { refusedRequests } from './refused-requests.js';
import { refusedServiceTokens } from './refused-service-tokens.js';
import { refusedSessions } from './refused-sessions.js';
import { refusedPrincipals } from './refused-principals.js';

const rows: readonly Row[] = [...refusedRequests, ...refusedServiceTokens, ...refusedSessions, ...refusedPrincipals];

/** These come up while a request is received, reserved or forwarded: `explain` does none of that. */
const whileServing: readonly Reason[] = [
  'http_version',
  'body_broken',
  'header_timeout',
  'header_too_large_for_http2',
  'body_timeout',
  'grpc_not_unary',
  'token_replayed',
  'certificate_mismatch',
  'client_certificate_refused',
  'asking_refused',
  'description_malformed',
  'decide_unsupported',
  'proof_malformed',
  'proof_mismatch',
  'proof_untimely',
  'proof_replayed',
  'proof_nonce',
  'idempotency_in_progress',
  'idempotency_outcome_unknown',
  'idempotency_not_replayable',
  'idempotency_key_reused',
  'too_many_pending',
  'too_many_kept',
  'rate_limited',
  'too_many_in_flight',
  'store_unavailable',
  'revocations_unknown',
  'token_inactive',
  'introspection_unavailable',
  'introspection_limited',
  'token_unavailable',
  'authorization_refused',
  'exchange_refused',
  'overloaded',
  'shutting_down',
  'upstream_unreachable',
  'upstream_failed',
  'upstream_timeout',
  'caller_gone',
  'internal',
];

async function explained({
  method = 'GET',
  path = '/orders',
  headers = [],
  token = service(),
  sdk,
}: Partial<Row>): Promise<Explained> {
  const activeConfig = policy(sdk ?? null);
  const head = headOf(
    { method, path, headers, body: null },
    token === null ? [] : ['Authorization', `Bearer ${token}`],
  );
  return { head, activeConfig, nowMs, ruling: await rule(head, 0, activeConfig, nowMs), credentialNotes: [] };
}

t.test('each reason is explained by what was found and what is accepted', async (t) => {
  for (const row of rows) {
    const name = `${row.reason}${row.name === undefined ? '' : `, ${row.name}`}: ${row.method ?? 'GET'} ${row.path ?? '/orders'}`;
    const question = await explained(row);
    t.equal(question.ruling.reason, row.reason, name);
    const step = explain(question).steps.find(({ outcome }) => outcome === 'refused');
    const [first = '', ...more] = step?.says ?? [];
    t.match(first, row.reason, name);
    for (const [index, pattern] of row.says.entries()) t.match(more[index] ?? '', pattern, name);
    t.equal(new Set(more).size, more.length, `${name}: nothing twice`);
  }
});

t.test('every reason has an explanation', async (t) => {
  t.same([...new Set([...rows.map(({ reason }) => reason), ...whileServing])].sort(), [...reasons].sort());
  const question = await explained({ token: service({ permissions: ['orders:read', 'orders:list'] }) });
  t.equal(question.ruling.reason, null);
  for (const reason of whileServing) t.match(explainReason({ reason }, question), [/^\S.{10}/], reason);
  t.match(
    explainReason({ reason: 'client_certificate_refused', endsConnection: true }, question)[0],
    /^the certificate of the connection is over, and client_auth is require$/,
  );
});

t.test('no explanation shows a token, a signature, a cookie or a handle', async (t) => {
  for (const row of rows) {
    const question = await explained(row);
    const text = explanationLines(question).join('\n');
    const token = row.token ?? service();
    for (const part of token.split('.').filter((each) => each.length > 30)) {
      t.notOk(text.includes(part), `${row.reason}: a part of the token`);
    }
    t.notMatch(text, /h-secret|r-secret|c2VjcmV0|topsecret/, row.reason);
  }
});
