import t from 'tap';
import {
  responseOf,
  denial,
  denialReasons,
  failureReasons,
  isFailure,
  reasons,
  type Reason,
} from '../../src/decision/denial.js';

/**
 * The table of answers of docs/contract.md 4, row by row: status, `type`, `error=` and whether to come again after a
 * second.
 */
const table: readonly (readonly [
  status: number,
  type: string | null,
  error: string,
  retries: boolean | number,
  reasons: readonly Reason[],
])[] = [
  [400, 'bad-target', 'http_request_error', false, ['target_malformed']],
  [
    400,
    'bad-request',
    'http_request_error',
    false,
    [
      'method_malformed',
      'http_version',
      'framing',
      'field_malformed',
      'field_repeated',
      'field_refused',
      'host_malformed',
      'connection_option',
      'upgrade_refused',
      'websocket_handshake',
      'body_not_allowed',
      'body_broken',
      'grpc_not_unary',
      'caller_gone',
    ],
  ],
  [400, 'bad-request', 'http_request_error', false, ['authorization_refused', 'description_malformed']],
  [400, 'idempotency-key-missing', 'http_request_error', false, ['idempotency_key_missing']],
  [400, 'idempotency-key-invalid', 'http_request_error', false, ['idempotency_key_malformed']],
  [
    401,
    null,
    'http_request_denied',
    false,
    [
      'credential_missing',
      'credential_malformed',
      'credential_ambiguous',
      'credential_kind_refused',
      'token_malformed',
      'algorithm_refused',
      'key_id_refused',
      'key_unknown',
      'signature_invalid',
      'token_expired',
      'token_not_yet_valid',
      'lifetime_too_long',
      'issuer_mismatch',
      'issuer_not_accepted',
      'audience_mismatch',
      'source_mismatch',
      'token_type_mismatch',
      'claim_mismatch',
      'claim_malformed',
      'session_claim_present',
      'service_claim_present',
      'session_expired',
      'session_refused',
      'anti_csrf_missing',
      'key_revoked',
      'subject_revoked',
      'token_revoked',
      'issue_time_revoked',
      'token_inactive',
      'token_id_missing',
      'token_replayed',
      'exchange_refused',
      'binding_unknown',
      'binding_missing',
      'certificate_missing',
      'certificate_mismatch',
      'proof_missing',
      'proof_malformed',
      'proof_mismatch',
      'proof_untimely',
      'proof_replayed',
      'proof_nonce',
    ],
  ],
  [
    403,
    null,
    'http_request_denied',
    false,
    [
      'route_unknown',
      'subject_not_approved',
      'permission_missing',
      'origin_refused',
      'client_certificate_refused',
      'asking_refused',
      'decide_unsupported',
      'session_claim_missing',
    ],
  ],
  [405, 'method-not-allowed', 'http_request_error', false, ['method_not_allowed']],
  [408, 'bad-request', 'http_request_error', false, ['header_timeout', 'body_timeout']],
  [409, 'idempotency-in-progress', 'http_request_denied', false, ['idempotency_in_progress']],
  [409, 'idempotency-outcome-unknown', 'http_request_denied', false, ['idempotency_outcome_unknown']],
  [409, 'idempotency-result-not-replayable', 'http_request_denied', false, ['idempotency_not_replayable']],
  [413, 'body-too-large', 'http_request_error', false, ['body_too_large']],
  [414, 'bad-request', 'http_request_error', false, ['target_too_long']],
  [415, 'bad-request', 'http_request_error', false, ['content_type_refused']],
  [417, 'bad-request', 'http_request_error', false, ['expectation_unknown']],
  [422, 'idempotency-key-reused', 'http_request_denied', false, ['idempotency_key_reused']],
  [426, 'bad-request', 'http_request_error', false, ['websocket_version']],
  [429, 'too-many-pending', 'http_request_denied', true, ['too_many_pending']],
  [429, 'too-many-kept', 'http_request_denied', 60, ['too_many_kept']],
  [429, 'rate-limited', 'http_request_denied', true, ['rate_limited']],
  [429, 'too-many-in-flight', 'http_request_denied', true, ['too_many_in_flight']],
  [431, 'bad-request', 'http_request_error', false, ['header_too_large', 'header_too_large_for_http2']],
  [500, 'internal', 'proxy_internal_error', false, ['internal']],
  [502, 'upstream-failed', 'connection_terminated', false, ['upstream_failed']],
  [503, 'upstream-unreachable', 'connection_refused', true, ['upstream_unreachable']],
  [503, 'store-unavailable', 'proxy_internal_error', true, ['store_unavailable', 'revocations_unknown']],
  [
    503,
    'keys-unavailable',
    'proxy_internal_error',
    true,
    ['keys_unavailable', 'core_unavailable', 'introspection_unavailable'],
  ],
  [503, 'token-unavailable', 'proxy_internal_error', true, ['token_unavailable']],
  [503, 'overloaded', 'proxy_internal_error', true, ['overloaded', 'introspection_limited']],
  [503, 'shutting-down', 'proxy_internal_error', true, ['shutting_down']],
  [504, 'upstream-timeout', 'http_response_timeout', false, ['upstream_timeout']],
];

t.test('how each reason is answered', (t) => {
  for (const [status, type, error, retries, named] of table) {
    for (const reason of named) {
      const { title, retryAfterS, ...answer } = responseOf(reason);
      t.same(answer, { status, type, error }, reason);
      t.equal(retryAfterS, retries === true ? 1 : retries === false ? undefined : retries, reason);
      t.equal(title.length > 0, true, reason);
      t.same(denial(reason), { reason });
    }
  }
  t.end();
});

t.test('the table names every reason once', (t) => {
  t.same(table.flatMap(([, , , , named]) => named).sort(), [...reasons].sort());
  t.end();
});

t.test('a reason is a failure where it is answered 5xx or the caller left, and else a denial', (t) => {
  for (const reason of reasons) {
    t.equal(isFailure(reason), responseOf(reason).status >= 500 || reason === 'caller_gone', reason);
    t.not(
      failureReasons.some((one) => one === reason),
      denialReasons.includes(reason),
      reason,
    );
  }
  t.end();
});
