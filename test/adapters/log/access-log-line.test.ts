import fc from 'fast-check';
import t from 'tap';
import { createRequestMembers, levelOf } from '../../../src/adapters/log/access-log-line.js';
import type { RequestRecord } from '../../../src/ports/observability.js';

const record: RequestRecord = {
  request_id: 'r-1',
  route: 'list-orders',
  method: 'GET',
  path: '/orders',
  decision: 'forwarded',
  reason: null,
  kind: 'service',
  issuer: 'core',
  subject: 'checkout',
  key_id: 'd-1',
  status: 200,
  duration_ms: 1.25,
  upstream_ms: 1,
  record: null,
  trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
  protocol: 'HTTP/1.1',
  grpc_status: null,
  client_address: '203.0.113.7',
  user_agent: 'curl/8.5.0',
};
const same = (text: string): string => text;

const all = { clientAddress: true, userAgent: true };
const members = createRequestMembers(same, all);

function parsed(given: RequestRecord, membersOf = members): unknown {
  return JSON.parse(`{${membersOf(given).slice(1)}}`);
}

t.test('it says what JSON.stringify would say, in the order of the contract', (t) => {
  t.equal(`{${members(record).slice(1)}}`, JSON.stringify(record));
  t.same(parsed({ ...record, permissions: ['a:b'], missing_permissions: null }), {
    ...record,
    permissions: ['a:b'],
    missing_permissions: null,
  });
  t.same(parsed({ ...record, permissions: null, missing_permissions: ['"'] }), {
    ...record,
    permissions: null,
    missing_permissions: ['"'],
  });
  t.same(parsed({ ...record, missing_permissions: ['a:b'] }), { ...record, missing_permissions: ['a:b'] });
  t.same(parsed({ ...record, duration_ms: NaN, upstream_ms: Infinity }), {
    ...record,
    duration_ms: null,
    upstream_ms: null,
  });
  t.same(
    parsed(
      record,
      createRequestMembers(() => '[redacted]', all),
    ),
    { ...record, path: '[redacted]', user_agent: '[redacted]' },
  );
  t.same(parsed({ ...record, trace_id: null, client_address: null, user_agent: null }), {
    ...record,
    trace_id: null,
    client_address: null,
    user_agent: null,
  });
  t.end();
});

t.test('whatever a text holds, it stays one member on one line', (t) => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('"', '\\', '\n', '\u2028', '\u202e', '\x7f', '\x9b', '\ud800'),
  );
  fc.assert(
    fc.property(text, text, text, (method, path, subject) => {
      const given = { ...record, method, path, subject };
      const line = members(given);
      if (/[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(line)) throw new Error(line);
      if (JSON.stringify(parsed(given)) !== JSON.stringify(given)) throw new Error(line);
    }),
    { numRuns: 1_000 },
  );
  t.pass('1,000 runs');
  t.end();
});

t.test('what was kept of a line before is said of no other request', (t) => {
  const one = fc.constantFrom('a', 'b', 'none');
  const either = fc.option(one);
  const lines = fc.array(
    fc.record({
      request_id: one,
      route: one,
      method: one,
      path: one,
      decision: fc.constantFrom('forwarded', 'denied', 'replayed'),
      status: fc.constantFrom(0, 200, 401),
      reason: fc.constantFrom(null, 'token_expired', 'route_unknown'),
      kind: fc.constantFrom(null, 'service', 'session'),
      issuer: either,
      subject: either,
      key_id: either,
      duration_ms: fc.constantFrom(0, 1.5),
      upstream_ms: fc.constantFrom(null, 2),
      record: either,
      trace_id: either,
      protocol: fc.constantFrom('HTTP/1.1', 'HTTP/1.0', 'HTTP/2'),
      grpc_status: fc.constantFrom(null, 0, 7, 16),
      client_address: either,
      user_agent: either,
    } satisfies Record<
      keyof Omit<
        RequestRecord,
        | 'permissions'
        | 'missing_permissions'
        | 'client_certificate'
        | 'span_id'
        | 'attempts'
        | 'not_retried'
        | 'asked_by'
      >,
      unknown
    >),
    { minLength: 2, maxLength: 40 },
  );
  fc.assert(
    fc.property(lines, (given) => {
      const membersOf = createRequestMembers(same, all);
      for (const entry of given) {
        const logged = parsed(entry, membersOf);
        if (JSON.stringify(logged) !== JSON.stringify({ ...record, ...entry })) {
          throw new Error(JSON.stringify([entry, logged]));
        }
      }
    }),
    { numRuns: 1_000 },
  );
  t.pass('1,000 runs');
  t.end();
});

t.test('of more callers than are kept each has its own line', (t) => {
  const membersOf = createRequestMembers(same, all);
  for (let i = 0; i < 2_000; i++) {
    const entry = {
      ...record,
      route: `r-${i % 300}`,
      subject: `s-${i % 700}`,
      client_address: `10.0.0.${i % 290}`,
      user_agent: `agent-${i % 310}`,
    };
    if (JSON.stringify(parsed(entry, membersOf)) !== JSON.stringify(entry)) t.fail(`line ${i}`);
  }
  t.pass('2,000 lines');
  t.end();
});

t.test('client address and user agent are left out where the config says so', (t) => {
  const { client_address, user_agent, ...rest } = record;
  t.same(parsed(record, createRequestMembers(same, { clientAddress: false, userAgent: true })), {
    ...rest,
    user_agent,
  });
  t.same(parsed(record, createRequestMembers(same, { clientAddress: true, userAgent: false })), {
    ...rest,
    client_address,
  });
  t.same(parsed(record, createRequestMembers(same, { clientAddress: false, userAgent: false })), rest);
  t.end();
});

const agents = [
  {
    name: 'as it came',
    input: 'Mozilla/5.0 (X11; Linux x86_64) "quoted" \\',
    expected: 'Mozilla/5.0 (X11; Linux x86_64) "quoted" \\',
  },
  { name: 'empty', input: '', expected: '' },
  { name: 'as long as may be', input: 'a'.repeat(256), expected: 'a'.repeat(256) },
  { name: 'longer', input: `${'a'.repeat(256)}b`, expected: 'a'.repeat(256) },
  { name: 'very long', input: 'a'.repeat(16_000), expected: 'a'.repeat(256) },
  { name: 'bytes that are no ASCII', input: 'caf\u00e9 \u009b31m\u0085', expected: 'caf? ?31m?' },
  { name: 'tabs and controls', input: 'a\tb\u0000\u001b[2J\u007f', expected: 'a?b??[2J?' },
];

t.test('of a user agent a line has the start, in visible ASCII', (t) => {
  for (const { name, input, expected } of agents) {
    for (const time of ['once', 'again']) {
      t.same(parsed({ ...record, user_agent: input }), { ...record, user_agent: expected }, `${name}, ${time}`);
    }
  }
  t.end();
});

t.test('what looks like a secret is taken out of a user agent before it is cut', (t) => {
  const membersOf = createRequestMembers((text) => text.replace(/secret-[a-z]+!/, '[redacted]'), all);
  t.match(parsed({ ...record, user_agent: `x secret-${'a'.repeat(300)}! y` }, membersOf), {
    user_agent: 'x [redacted] y',
  });
  t.end();
});

const levels: readonly (Partial<RequestRecord> & { readonly level: string })[] = [
  { status: 200, level: 'info' },
  { status: 404, level: 'info' },
  { status: 499, level: 'info' },
  { status: 500, level: 'warn' },
  { status: 503, level: 'warn' },
  { decision: 'replayed', status: 500, level: 'warn' },
  { decision: 'shadow', reason: 'credential_missing', status: 502, level: 'warn' },
  { decision: 'shadow', reason: 'credential_missing', status: 200, level: 'info' },
  { decision: 'denied', reason: 'credential_missing', status: 401, level: 'info' },
  { decision: 'denied', reason: 'caller_gone', status: 0, level: 'info' },
  { reason: 'caller_gone', status: 200, level: 'info' },
  { decision: 'failed', reason: 'upstream_timeout', status: 504, level: 'warn' },
  { decision: 'failed', reason: 'upstream_failed', status: 200, level: 'warn' },
  { decision: 'failed', reason: 'shutting_down', status: 0, level: 'warn' },
  { decision: 'failed', reason: 'internal', status: 500, level: 'error' },
  { decision: 'failed', reason: 'internal', status: 200, level: 'error' },
];

t.test("a line is as urgent as its end: refusals are the callers' trouble, 5xx is ours or the service's", (t) => {
  for (const { level, ...changes } of levels) {
    t.equal(levelOf({ ...record, ...changes }), level, JSON.stringify(changes));
  }
  t.end();
});
