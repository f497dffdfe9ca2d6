import t from 'tap';
import { responseOf, denial, reasons, type Reason } from '../../../src/decision/denial.js';
import { problemOf } from '../../../src/decision/http/problem-details.js';

function fieldsOf(reason: Reason): Map<string, string> {
  const { headers } = problemOf(denial(reason), 'r-1');
  const map = new Map<string, string>();
  for (let i = 0; i < headers.length; i += 2) map.set(headers[i] ?? '', headers[i + 1] ?? '');
  t.equal(map.size * 2, headers.length, `${reason}: no field twice`);
  return map;
}

t.test('bodies byte for byte', (t) => {
  const bodies: [Reason, number, string][] = [
    ['credential_missing', 401, '{"type":"about:blank","title":"Unauthorized","status":401}'],
    ['permission_missing', 403, '{"type":"about:blank","title":"Forbidden","status":403}'],
    [
      'target_malformed',
      400,
      '{"type":"urn:sallyport:bad-target","title":"The request target is malformed or ambiguous","status":400}',
    ],
    [
      'target_too_long',
      414,
      '{"type":"urn:sallyport:bad-request","title":"The request target is too long","status":414}',
    ],
    [
      'method_not_allowed',
      405,
      '{"type":"urn:sallyport:method-not-allowed","title":"The method is not allowed","status":405}',
    ],
    ['internal', 500, '{"type":"urn:sallyport:internal","title":"Internal error","status":500}'],
  ];
  for (const [reason, status, body] of bodies) t.match(problemOf(denial(reason), 'r-1'), { status, body }, reason);
  t.end();
});

t.test('every response of ours is a problem document that says so', (t) => {
  for (const reason of reasons) {
    const { status, body } = problemOf(denial(reason), 'r-1');
    const answer = responseOf(reason);
    const type = answer.type === null ? 'about:blank' : `urn:sallyport:${answer.type}`;
    t.equal(status, answer.status, reason);
    t.equal(body, JSON.stringify({ type, title: answer.title, status }), reason);
    t.match(body, /^[\x20-\x7e]+$/, `${reason}: ASCII`);
    const fields = fieldsOf(reason);
    t.equal(fields.get('Content-Type'), 'application/problem+json', reason);
    t.equal(fields.get('Cache-Control'), 'no-store', reason);
    t.equal(fields.get('X-Request-Id'), 'r-1', reason);
    t.equal(fields.get('Proxy-Status'), `sallyport; error=${answer.error}`, reason);
    t.equal(fields.get('WWW-Authenticate'), status === 401 ? 'Bearer realm="sallyport"' : undefined, reason);
    // What is kept ends after hours: a second would not change much.
    const retryAfterS = reason === 'too_many_kept' ? '60' : '1';
    t.equal(fields.get('Retry-After'), status === 503 || status === 429 ? retryAfterS : undefined, reason);
    t.equal(fields.has('Allow'), status === 405, reason);
  }
  t.end();
});

t.test('what a caller can mend of this occurrence is in `detail`', (t) => {
  const body =
    '{"type":"urn:sallyport:idempotency-key-missing","title":"This operation needs an Idempotency-Key","status":400,' +
    '"detail":"in words"}';
  t.equal(problemOf({ ...denial('idempotency_key_missing'), detail: 'in words' }, 'r-1').body, body);
  t.end();
});

t.test('every 401 is the same, and every 403', (t) => {
  for (const status of [401, 403]) {
    const same = reasons.filter((reason) => responseOf(reason).status === status);
    t.ok(same.length > 2, `${status}`);
    const answers = same.flatMap((reason) => [
      problemOf({ reason }, 'r-1'),
      problemOf({ reason, missing: ['orders:write'] }, 'r-1'),
      problemOf({ reason, error: 'dns_error' }, 'r-1'),
    ]);
    t.equal(new Set(answers.map((answer) => JSON.stringify(answer))).size, 1, `${status}`);
  }
  t.end();
});

t.test('RFC 9209: a failure known more exactly is named', (t) => {
  t.ok(
    problemOf({ reason: 'upstream_unreachable', error: 'dns_error' }, 'r-1').headers.includes(
      'sallyport; error=dns_error',
    ),
  );
  t.end();
});

t.test('RFC 9209: so is what went wrong in here', (t) => {
  t.ok(problemOf({ reason: 'internal', error: 'dns_error' }, 'r-1').headers.includes('sallyport; error=dns_error'));
  t.end();
});

t.test(
  'RFC 6455 §4.4, RFC 9110 §15.5.22: 426 names the version and what to upgrade to, and no other answer does',
  (t) => {
    for (const reason of reasons) {
      const expected = reason === 'websocket_version' ? ['13', 'websocket'] : [undefined, undefined];
      t.same([fieldsOf(reason).get('Sec-WebSocket-Version'), fieldsOf(reason).get('Upgrade')], expected, reason);
    }
    t.end();
  },
);

t.test('a denial may name its reservation and how long to wait', (t) => {
  const {
    status,
    headers: fields,
    body,
  } = problemOf({ reason: 'idempotency_in_progress', retryAfterS: 3, record: 'p.o' }, 'id');
  t.equal(status, 409);
  t.match(JSON.parse(body), { type: 'urn:sallyport:idempotency-in-progress', status: 409, record: 'p.o' });
  t.equal(fields[fields.indexOf('Retry-After') + 1], '3');
  t.end();
});

t.test('refused sessions get the bodies that frontends act on', (t) => {
  const cases = [
    {
      session: { message: 'try refresh token' },
      reason: 'session_expired',
      status: 401,
      body: '{"message":"try refresh token"}',
    },
    {
      session: { message: 'unauthorised' },
      reason: 'subject_revoked',
      status: 401,
      body: '{"message":"unauthorised"}',
    },
    {
      session: { message: 'invalid claim', claims: ['st-role', 'st-ev'] },
      reason: 'session_claim_missing',
      status: 403,
      body:
        '{"message":"invalid claim","claimValidationErrors":[{"id":"st-role","reason":{"message":"wrong value"}},' +
        '{"id":"st-ev","reason":{"message":"wrong value"}}]}',
    },
  ] as const;
  for (const { session, reason, status, body } of cases) {
    const problem = problemOf({ reason, session }, 'r-1');
    t.match(problem, { status, body }, reason);
    t.equal(problem.headers[problem.headers.indexOf('Content-Type') + 1], 'application/json', reason);
    t.ok(problem.headers.includes('sallyport; error=http_request_denied'), reason);
  }
  t.end();
});
