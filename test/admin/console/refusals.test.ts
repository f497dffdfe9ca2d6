import t from 'tap';
import { createRefusedRequests } from '../../../src/admin/console/refusals.js';
import type { RequestRecord } from '../../../src/ports/observability.js';

const record: RequestRecord = {
  request_id: 'r-1',
  route: 'orders',
  method: 'GET',
  path: '/orders',
  decision: 'denied',
  reason: 'credential_missing',
  kind: null,
  issuer: null,
  subject: null,
  key_id: null,
  status: 401,
  duration_ms: 1,
  upstream_ms: null,
  record: null,
  trace_id: null,
  protocol: 'HTTP/1.1',
  grpc_status: null,
  client_address: '192.0.2.1',
  user_agent: 'curl',
};

t.test('only what was refused is kept, the newest first', (t) => {
  const refused = createRefusedRequests();
  refused.add({ ...record, decision: 'forwarded', reason: null }, 0);
  refused.add({ ...record, decision: 'forwarded', reason: 'caller_gone' }, 0);
  refused.add({ ...record, decision: 'replayed', reason: null }, 0);
  refused.add(record, 1_000);
  refused.add({ ...record, decision: 'shadow', reason: 'permission_missing', missing_permissions: ['a'] }, 2_000);
  refused.add({ ...record, decision: 'failed', reason: 'upstream_timeout', status: 504 }, 3_000);
  t.match(refused.after(0), [
    { id: 3, decision: 'failed', reason: 'upstream_timeout', at: '1970-01-01T00:00:03.000Z' },
    { id: 2, decision: 'shadow', missing: ['a'] },
    { id: 1, decision: 'denied', missing: [] },
  ]);
  t.same(
    refused.after(2).map(({ id }) => id),
    [3],
  );
  t.equal(refused.find(2)?.reason, 'permission_missing');
  t.equal(refused.find(4), null);
  t.end();
});

t.test('a flood of one kind takes the place of no other', (t) => {
  const refused = createRefusedRequests();
  refused.add({ ...record, reason: 'permission_missing' }, 0);
  for (let count = 0; count < 10_000; count += 1) refused.add(record, count);
  const kept = refused.after(0);
  t.equal(kept.length, 26);
  t.equal(kept.at(-1)?.reason, 'permission_missing');
  t.equal(kept[0]?.id, 10_001);
  t.end();
});

t.test('what a caller chose is cut, and neither query, address nor agent is kept', (t) => {
  const refused = createRefusedRequests();
  const long = 'x'.repeat(100_000);
  refused.add(
    {
      ...record,
      path: `/${long}`,
      subject: long,
      request_id: long,
      method: long,
      client_certificate: long,
      missing_permissions: Array.from({ length: 1_000 }, () => long),
    },
    0,
  );
  const [entry] = refused.after(0);
  t.equal(entry?.is_cut, true);
  t.ok(JSON.stringify(entry).length < 8_000);
  t.notMatch(JSON.stringify(entry), /192\.0\.2\.1|curl/);
  t.end();
});
