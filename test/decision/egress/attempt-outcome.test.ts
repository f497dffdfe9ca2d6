import t from 'tap';
import { needsProblem, nonceIn, outcomeOf, problemTypeIn } from '../../../src/decision/egress/attempt-outcome.js';

const nowMs = Date.parse('2026-01-01T00:00:00Z');

t.test('a head says whether a Sallyport answered, and how long to wait', (t) => {
  const plain = { kind: 'response', status: 503, isSallyports: false, problemType: null, retryAfterMs: null };
  const rows: readonly { readonly fields: readonly string[]; readonly expected: object }[] = [
    { fields: [], expected: {} },
    { fields: ['Proxy-Status', 'sallyport; error=connection_refused'], expected: { isSallyports: true } },
    { fields: ['proxy-status', 'edge; error=x, "sallyport"'], expected: { isSallyports: true } },
    { fields: ['Proxy-Status', 'edge; details="sallyport"'], expected: {} },
    { fields: ['Proxy-Status', '"sallyport'], expected: {} },
    { fields: ['Retry-After', '7'], expected: { retryAfterMs: 7_000 } },
    { fields: ['Retry-After', '7', 'Retry-After', '1'], expected: { retryAfterMs: 7_000 } },
    { fields: ['retry-after', '999999999'], expected: { retryAfterMs: 86_400_000 } },
    { fields: ['Retry-After', 'Thu, 01 Jan 2026 00:00:05 GMT'], expected: { retryAfterMs: 5_000 } },
    { fields: ['Retry-After', 'Wed, 31 Dec 2025 00:00:05 GMT'], expected: { retryAfterMs: 0 } },
    { fields: ['Retry-After', 'Fri, 01 Jan 2027 00:00:05 GMT'], expected: { retryAfterMs: 86_400_000 } },
    { fields: ['Retry-After', 'Thu, 99 Jan 2026 00:00:05 GMT'], expected: {} },
    { fields: ['Retry-After', 'soon'], expected: {} },
    { fields: ['Retry-After', '-1'], expected: {} },
  ];
  for (const { fields, expected } of rows) {
    t.same(outcomeOf(503, fields, nowMs), { ...plain, ...expected }, fields.join(' '));
  }
  t.end();
});

t.test("only a problem document of a Sallyport's 409 decides by its body", (t) => {
  const own = ['Proxy-Status', 'sallyport'];
  const problem = ['Content-Type', 'application/problem+json'];
  const asks = (status: number, fields: readonly string[]): boolean =>
    needsProblem(outcomeOf(status, fields, nowMs), fields);
  t.ok(asks(409, [...own, ...problem]));
  t.ok(asks(409, [...own, 'content-type', 'Application/Problem+JSON; charset=utf-8']));
  t.notOk(asks(409, problem));
  t.notOk(asks(409, own));
  t.notOk(asks(409, [...own, 'Content-Type', 'application/problem+jsonx']));
  t.notOk(asks(503, [...own, ...problem]));
  t.end();
});

t.test('its type is read, whatever the body is', (t) => {
  t.equal(problemTypeIn(Buffer.from('{"type":"urn:x"}')), 'urn:x');
  for (const body of ['', '{', 'null', '1', '{}', '{"type":1}', '[]']) {
    t.equal(problemTypeIn(Buffer.from(body)), null, body);
  }
  t.end();
});

t.test('a nonce for the next proof is read where it is one: of a 401 as a part of what it says', (t) => {
  const rows: readonly { readonly headers: readonly string[]; readonly nonce: string | null }[] = [
    { headers: [], nonce: null },
    { headers: ['X-Nonce-Id', 'other', 'DPoP-Nonce', 'abc.-~!'], nonce: 'abc.-~!' },
    { headers: ['dpop-nonce', 'a'.repeat(256)], nonce: 'a'.repeat(256) },
    { headers: ['dpop-nonce', 'a'.repeat(257)], nonce: null },
    { headers: ['dpop-nonce', ''], nonce: null },
    { headers: ['dpop-nonce', 'a b'], nonce: null },
    { headers: ['dpop-nonce', 'a"b'], nonce: null },
    { headers: ['dpop-nonce', 'a\\b'], nonce: null },
  ];
  for (const { headers, nonce } of rows) {
    t.equal(nonceIn(headers), nonce, headers.join(' '));
    const told = outcomeOf(401, headers, nowMs);
    t.same('nonce' in told ? told.nonce : null, nonce, headers.join(' '));
    t.notOk('nonce' in outcomeOf(403, headers, nowMs));
  }
  t.end();
});
