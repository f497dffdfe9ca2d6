import t from 'tap';
import { createLogger } from '../../../src/adapters/log/logger.js';
import { createRefusalLines } from '../../../src/adapters/log/refusal-sampler.js';
import type { LogFields } from '../../../src/ports/system.js';
import type { RequestRecord } from '../../../src/ports/observability.js';
import { manualTime } from '../manual-time.js';

const record: RequestRecord = {
  request_id: 'r-1',
  route: 'none',
  method: 'GET',
  path: '/orders',
  decision: 'denied',
  reason: 'signature_invalid',
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
  client_address: '203.0.113.7',
  user_agent: null,
};
const known = {
  kind: 'service',
  issuer: 'core',
  subject: 'checkout',
  reason: 'permission_missing',
  status: 403,
} as const;

interface Setup {
  readonly admitted: (times: number, changes?: Partial<RequestRecord>) => number;
  readonly told: LogFields[];
  readonly time: ReturnType<typeof manualTime>;
  readonly lines: ReturnType<typeof createRefusalLines>;
}

function setup(perSecond: number | null): Setup {
  const time = manualTime();
  const told: LogFields[] = [];
  const lines = createRefusalLines({
    perSecond,
    timers: time.timers,
    log: { warn: (_message, fields) => told.push(fields ?? {}) },
  });
  return {
    told,
    time,
    lines,
    admitted: (times, changes = {}) =>
      Array.from({ length: times }, () => lines.admits({ ...record, ...changes })).filter(Boolean).length,
  };
}

t.test('of a flood of refusals so many have their line in a second, and the rest is told of in one', (t) => {
  const { admitted, told, time } = setup(3);
  t.equal(admitted(3), 3);
  t.equal(admitted(1), 0);
  t.equal(admitted(999), 0);
  time.advance(999);
  t.same(told, []);
  time.advance(1);
  t.same(told, [{ reason: 'signature_invalid', issuer: null, subject: null, lines: 1000 }]);
  t.equal(admitted(4), 3, 'and the next second has its own');
  time.advance(1000);
  t.equal(told.length, 2);
  time.advance(10_000);
  t.equal(admitted(3), 3);
  time.advance(10_000);
  t.equal(told.length, 2, 'nothing is told where every one had its line');
  t.end();
});

t.test('each reason and each verified caller is counted apart: none hides the refusals of another', (t) => {
  const { admitted, told, time } = setup(2);
  t.equal(admitted(50), 2);
  t.equal(admitted(2, { reason: 'token_expired' }), 2);
  t.equal(admitted(50, known), 2);
  t.equal(admitted(2, { ...known, subject: 'reporting' }), 2);
  t.equal(admitted(2, { ...known, issuer: 'partner' }), 2);
  time.advance(1000);
  t.same(told, [
    { reason: 'signature_invalid', issuer: null, subject: null, lines: 48 },
    { reason: 'permission_missing', issuer: 'core', subject: 'checkout', lines: 48 },
  ]);
  t.end();
});

t.test('what was forwarded, replayed, reserved or let pass always has its line', (t) => {
  const rows: { name: string; changes: Partial<RequestRecord>; all: boolean }[] = [
    { name: 'a refusal', changes: {}, all: false },
    {
      name: 'a failure before anything was sent',
      changes: { decision: 'failed', reason: 'overloaded', status: 503 },
      all: false,
    },
    {
      name: 'forwarded',
      changes: { ...known, decision: 'forwarded', reason: null, status: 200, upstream_ms: 1 },
      all: true,
    },
    {
      name: 'forwarded, and the caller left',
      changes: { ...known, decision: 'forwarded', reason: 'caller_gone', upstream_ms: 1 },
      all: true,
    },
    {
      name: 'sent, and the receiver failed',
      changes: { ...known, decision: 'failed', reason: 'upstream_failed', upstream_ms: 1 },
      all: true,
    },
    { name: 'replayed', changes: { ...known, decision: 'replayed', reason: null, record: 'r' }, all: true },
    {
      name: 'a reservation that was refused',
      changes: { ...known, reason: 'idempotency_in_progress', record: 'r' },
      all: true,
    },
    { name: 'shadow mode', changes: { decision: 'shadow', upstream_ms: 1 }, all: true },
    { name: 'refused in shadow mode, and not sent', changes: { decision: 'shadow' }, all: true },
  ];
  for (const { name, changes, all } of rows) t.equal(setup(2).admitted(10, changes), all ? 10 : 2, name);
  t.equal(setup(null).admitted(10_000), 10_000, 'and everything without a limit');
  t.end();
});

t.test('callers without number are told apart up to a bound, and counted together beyond it', (t) => {
  const { lines, told, time } = setup(1);
  for (let index = 0; index < 3_000; index += 1) {
    for (const _ of [1, 2]) lines.admits({ ...record, ...known, subject: `caller-${index}` });
  }
  time.advance(1000);
  t.equal(told.length, 1_001);
  t.same(told.at(-1), { reason: 'permission_missing', issuer: null, subject: null, lines: 3_999 });
  t.end();
});

t.test('a flush tells at once, and a changed limit counts from the next line', (t) => {
  const { admitted, lines, told, time } = setup(1);
  t.equal(admitted(5), 1);
  lines.flush();
  t.same(
    told.map((fields) => fields['lines']),
    [4],
  );
  time.advance(5000);
  lines.flush();
  t.equal(told.length, 1, 'and nothing twice');
  lines.setLimit(3);
  t.equal(admitted(5), 3);
  lines.setLimit(null);
  t.equal(admitted(5), 5);
  t.end();
});

t.test('the logger writes the line that tells of them, and at levels without request lines none', (t) => {
  const time = manualTime();
  const written: string[] = [];
  const destination = { write: (line: string) => void written.push(line) };
  const settings = { refusalsPerSecond: 2, clientAddress: false, userAgent: false };
  const logger = createLogger({ ...settings, level: 'info', timers: time.timers, destination });
  for (let index = 0; index < 7; index += 1) logger.request(record);
  time.advance(1000);
  t.equal(written.length, 3);
  t.match(JSON.parse(written.at(-1) ?? ''), {
    level: 'warn',
    msg: 'refusals were not logged one by one',
    reason: 'signature_invalid',
    lines: 5,
  });
  logger.use({ ...settings, level: 'warn' });
  for (let index = 0; index < 7; index += 1) logger.request(record);
  time.advance(1000);
  t.equal(written.length, 3);
  logger.use({ ...settings, level: 'info', refusalsPerSecond: 1 });
  for (let index = 0; index < 7; index += 1) logger.request(record);
  logger.flush();
  t.equal(written.length, 5);
  t.end();
});
