import fc from 'fast-check';
import t from 'tap';
import { requestMembers } from '../../src/adapters/request-line.js';
import type { RequestRecord } from '../../src/ports.js';

const record: RequestRecord = {
  request_id: 'r-1', route: 'list-orders', method: 'GET', path: '/orders', decision: 'forwarded', reason: null, kind: 'service',
  issuer: 'core', subject: 'checkout', key_id: 'd-1', status: 200, duration_ms: 1.25, upstream_ms: 1, record: null,
};
const same = (text: string): string => text;

function parsed(given: RequestRecord, clean = same): unknown {
  return JSON.parse(`{${requestMembers(given, clean).slice(1)}}`);
}

t.test('it says what JSON.stringify would say, in the order of the contract', (t) => {
  t.equal(`{${requestMembers(record, same).slice(1)}}`, JSON.stringify(record));
  t.same(parsed({ ...record, permissions: ['a:b'] }), { ...record, permissions: ['a:b'], missing_permissions: null });
  t.same(parsed({ ...record, permissions: null, missing_permissions: ['"'] }), { ...record, permissions: null, missing_permissions: ['"'] });
  t.same(parsed({ ...record, duration_ms: NaN, upstream_ms: Infinity }), { ...record, duration_ms: null, upstream_ms: null });
  t.same(parsed(record, () => '[redacted]'), { ...record, path: '[redacted]' });
  t.end();
});

t.test('R-16: whatever a text holds, it stays one member on one line', (t) => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('"', '\\', '\n', '\u2028', '\u202e', '\x7f', '\x9b', '\ud800'));
  fc.assert(fc.property(text, text, text, (method, path, subject) => {
    const given = { ...record, method, path, subject };
    const line = requestMembers(given, same);
    if (/[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(line)) throw new Error(line);
    if (JSON.stringify(parsed(given)) !== JSON.stringify(given)) throw new Error(line);
  }), { numRuns: 1_000 });
  t.pass('1,000 runs');
  t.end();
});
