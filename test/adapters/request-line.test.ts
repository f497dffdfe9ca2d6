import fc from 'fast-check';
import t from 'tap';
import { createRequestMembers } from '../../src/adapters/request-line.js';
import type { RequestRecord } from '../../src/ports.js';

const record: RequestRecord = {
  request_id: 'r-1', route: 'list-orders', method: 'GET', path: '/orders', decision: 'forwarded', reason: null, kind: 'service',
  issuer: 'core', subject: 'checkout', key_id: 'd-1', status: 200, duration_ms: 1.25, upstream_ms: 1, record: null,
};
const same = (text: string): string => text;

const members = createRequestMembers(same);

function parsed(given: RequestRecord, membersOf = members): unknown {
  return JSON.parse(`{${membersOf(given).slice(1)}}`);
}

t.test('it says what JSON.stringify would say, in the order of the contract', (t) => {
  t.equal(`{${members(record).slice(1)}}`, JSON.stringify(record));
  t.same(parsed({ ...record, permissions: ['a:b'] }), { ...record, permissions: ['a:b'], missing_permissions: null });
  t.same(parsed({ ...record, permissions: null, missing_permissions: ['"'] }), { ...record, permissions: null, missing_permissions: ['"'] });
  t.same(parsed({ ...record, duration_ms: NaN, upstream_ms: Infinity }), { ...record, duration_ms: null, upstream_ms: null });
  t.same(parsed(record, createRequestMembers(() => '[redacted]')), { ...record, path: '[redacted]' });
  t.end();
});

t.test('R-16: whatever a text holds, it stays one member on one line', (t) => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('"', '\\', '\n', '\u2028', '\u202e', '\x7f', '\x9b', '\ud800'));
  fc.assert(fc.property(text, text, text, (method, path, subject) => {
    const given = { ...record, method, path, subject };
    const line = members(given);
    if (/[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(line)) throw new Error(line);
    if (JSON.stringify(parsed(given)) !== JSON.stringify(given)) throw new Error(line);
  }), { numRuns: 1_000 });
  t.pass('1,000 runs');
  t.end();
});

t.test('what was kept of a line before is said of no other request', (t) => {
  const one = fc.constantFrom('a', 'b', 'none');
  const either = fc.option(one);
  const lines = fc.array(fc.record({
    request_id: one, route: one, method: one, path: one, decision: fc.constantFrom('forwarded', 'denied', 'replayed'), status: fc.constantFrom(0, 200, 401),
    reason: fc.constantFrom(null, 'token_expired', 'route_unknown'), kind: fc.constantFrom(null, 'service', 'session'), issuer: either, subject: either,
    key_id: either, duration_ms: fc.constantFrom(0, 1.5), upstream_ms: fc.constantFrom(null, 2), record: either,
  } satisfies Record<keyof Omit<RequestRecord, 'permissions' | 'missing_permissions'>, unknown>), { minLength: 2, maxLength: 40 });
  fc.assert(fc.property(lines, (given) => {
    const membersOf = createRequestMembers(same);
    for (const entry of given) {
      const said = parsed(entry, membersOf);
      if (JSON.stringify(said) !== JSON.stringify({ ...record, ...entry })) throw new Error(JSON.stringify([entry, said]));
    }
  }), { numRuns: 1_000 });
  t.pass('1,000 runs');
  t.end();
});

t.test('of more callers than are kept each has its own line', (t) => {
  const membersOf = createRequestMembers(same);
  for (let i = 0; i < 2_000; i++) {
    const entry = { ...record, route: `r-${i % 300}`, subject: `s-${i % 700}` };
    if (JSON.stringify(parsed(entry, membersOf)) !== JSON.stringify(entry)) t.fail(`line ${i}`);
  }
  t.pass('2,000 lines');
  t.end();
});
