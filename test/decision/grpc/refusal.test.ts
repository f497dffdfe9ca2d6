import t from 'tap';
import { responseOf, denial, reasons, type Denial, type Reason } from '../../../src/decision/denial.js';
import { encodeGrpcMessage, grpcCodeOf, grpcRefusalOf } from '../../../src/decision/grpc/refusal.js';
import { grpcNumberOf, type GrpcCode } from '../../../src/decision/grpc/status.js';

function fieldsOf(refused: Denial): Map<string, string> {
  const { headers } = grpcRefusalOf(refused, 'r-1');
  const map = new Map<string, string>();
  for (let i = 0; i < headers.length; i += 2) map.set(headers[i] ?? '', headers[i + 1] ?? '');
  t.equal(map.size * 2, headers.length, `${refused.reason}: no field twice`);
  return map;
}

/** Reasons that are not 401 or 403, by their code. */
const codes: Readonly<Partial<Record<GrpcCode, readonly Reason[]>>> = {
  CANCELLED: ['caller_gone'],
  UNKNOWN: ['upstream_failed'],
  INVALID_ARGUMENT: ['idempotency_key_missing', 'idempotency_key_malformed'],
  DEADLINE_EXCEEDED: ['header_timeout', 'body_timeout', 'upstream_timeout'],
  RESOURCE_EXHAUSTED: [
    'target_too_long',
    'header_too_large',
    'header_too_large_for_http2',
    'body_too_large',
    'too_many_pending',
    'too_many_kept',
    'rate_limited',
    'too_many_in_flight',
  ],
  FAILED_PRECONDITION: ['idempotency_key_reused'],
  ABORTED: ['idempotency_in_progress', 'idempotency_outcome_unknown', 'idempotency_not_replayable'],
  UNIMPLEMENTED: ['method_not_allowed', 'grpc_not_unary'],
  INTERNAL: [
    'target_malformed',
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
    'websocket_version',
    'body_not_allowed',
    'body_broken',
    'content_type_refused',
    'expectation_unknown',
    'authorization_refused',
    'description_malformed',
    'internal',
  ],
  UNAVAILABLE: [
    'store_unavailable',
    'revocations_unknown',
    'keys_unavailable',
    'core_unavailable',
    'introspection_unavailable',
    'introspection_limited',
    'token_unavailable',
    'overloaded',
    'shutting_down',
    'upstream_unreachable',
  ],
};

t.test('each reason has its code: the whole list', (t) => {
  const expected = new Map<Reason, GrpcCode>();
  for (const [code, named] of Object.entries(codes)) for (const one of named) expected.set(one, code as GrpcCode);
  for (const reason of reasons) {
    const { status } = responseOf(reason);
    if (status === 401) expected.set(reason, 'UNAUTHENTICATED');
    if (status === 403) expected.set(reason, 'PERMISSION_DENIED');
  }
  t.same([...expected.keys()].sort(), [...reasons].sort(), 'the table names every reason');
  for (const reason of reasons) t.equal(grpcCodeOf(reason), expected.get(reason), reason);
  t.end();
});

t.test('a refusal is one head: a 200 without a body that says how the call ended', (t) => {
  for (const reason of reasons) {
    const { status, body } = grpcRefusalOf(denial(reason), 'r-1');
    const headers = fieldsOf(denial(reason));
    const answer = responseOf(reason);
    t.equal(status, 200, reason);
    t.equal(body, '', reason);
    t.equal(headers.get('content-type'), 'application/grpc', reason);
    t.equal(headers.get('grpc-status'), String(grpcNumberOf(grpcCodeOf(reason))), reason);
    t.equal(headers.get('grpc-message'), answer.title, reason);
    t.equal(headers.get('x-request-id'), 'r-1', reason);
    t.equal(headers.get('proxy-status'), `sallyport; error=${answer.error}`, reason);
    t.equal(headers.get('www-authenticate'), answer.status === 401 ? 'Bearer realm="sallyport"' : undefined, reason);
    const { retryAfterS } = answer;
    t.equal(headers.get('retry-after'), retryAfterS === undefined ? undefined : String(retryAfterS), reason);
    t.equal(
      headers.get('grpc-retry-pushback-ms'),
      retryAfterS === undefined ? undefined : `${retryAfterS}000`,
      `${reason}: gRFC A6`,
    );
    t.equal(headers.has('grpc-status-details-bin'), answer.type !== null, reason);
    for (const name of headers.keys()) t.match(name, /^[a-z-]+$/, 'RFC 9113 §8.2.1: names in lower case');
  }
  t.end();
});

t.test('every UNAUTHENTICATED is the same, and every PERMISSION_DENIED', (t) => {
  for (const status of [401, 403]) {
    const same = reasons.filter((reason) => responseOf(reason).status === status);
    const refusals = same.flatMap((reason) => [
      grpcRefusalOf({ reason }, 'r-1'),
      grpcRefusalOf({ reason, missing: ['orders:write'] }, 'r-1'),
      grpcRefusalOf({ reason, error: 'dns_error' }, 'r-1'),
      grpcRefusalOf({ reason, session: { message: 'unauthorised' } }, 'r-1'),
    ]);
    t.equal(new Set(refusals.map((refusal) => JSON.stringify(refusal))).size, 1, `${status}`);
  }
  t.end();
});

t.test('what nobody knows to have acted is never the code that clients repeat by themselves', (t) => {
  for (const reason of ['upstream_failed', 'upstream_timeout'] as const) {
    t.not(grpcCodeOf(reason), 'UNAVAILABLE', reason);
    t.notOk(fieldsOf(denial(reason)).has('grpc-retry-pushback-ms'), reason);
  }
  t.end();
});

t.test('a denial may say how long to wait, which limit was met and what failed', (t) => {
  const headers = fieldsOf({
    reason: 'rate_limited',
    retryAfterS: 7,
    rateLimit: { policy: '"caller";q=5;w=1', state: '"caller";r=0;t=7' },
  });
  t.equal(headers.get('retry-after'), '7');
  t.equal(headers.get('grpc-retry-pushback-ms'), '7000');
  t.equal(headers.get('ratelimit-policy'), '"caller";q=5;w=1');
  t.equal(headers.get('ratelimit'), '"caller";r=0;t=7');
  const failed = fieldsOf({ reason: 'upstream_unreachable', error: 'dns_error' });
  t.equal(failed.get('proxy-status'), 'sallyport; error=dns_error');
  t.end();
});

t.test('grpc-message: what is no visible ASCII is percent-encoded', (t) => {
  const rows = [
    ['Forbidden', 'Forbidden'],
    ['50% of ~', '50%25 of ~'],
    ['a\r\nb\x7f', 'a%0D%0Ab%7F'],
    ['é€', '%C3%A9%E2%82%AC'],
    ['', ''],
  ] as const;
  for (const [text, encoded] of rows) {
    t.equal(encodeGrpcMessage(text), encoded);
    t.equal(decodeURIComponent(encoded), text, 'and reads back');
  }
  t.end();
});
