/** The oracle of the upheaval finds what must not be, and knows what was told of. */
import t from 'tap';
import { readResponse } from '../support/raw-response.js';
import type { LogLine } from '../support/serve-process.js';
import { createUpheavalLedger, type ProxyLife, type Received, type UpheavalLedger } from './upheaval-ledger.js';

const write = (requestId: string, fence = 1, route = 'plain'): Received => ({
  route,
  key: '"k"',
  requestId,
  record: `record-${route}`,
  fence,
});

const livesWith = (...lines: LogLine[]): ProxyLife => ({ lines, end: null });

/** The receiver refuses a few: until it has run so often. */
function runs(ledger: UpheavalLedger, times: number, input: (turn: number) => Received): void {
  for (let turn = 0, ran = 0; ran < times; turn += 1) if (ledger.received(input(turn)).status === 201) ran += 1;
}

t.test('a write that ran twice is found, and told of where the log names its record', (t) => {
  const ledger = createUpheavalLedger();
  runs(ledger, 2, (turn) => write(`r${turn}`, turn + 1));
  t.match(ledger.breaches([]), [{ what: 'a write ran twice', told: [] }]);
  const line = { record: 'record-plain', msg: 'a write ran twice: another attempt owns its reservation' };
  t.match(ledger.breaches([livesWith(line)]), [{ what: 'a write ran twice', told: [line.msg] }]);
  t.match(ledger.breaches([livesWith({ ...line, record: 'another' })]), [{ told: [] }]);
  t.end();
});

t.test('an upstream that deduplicates runs a write once and refuses a lower fence', (t) => {
  const ledger = createUpheavalLedger();
  runs(ledger, 1, (turn) => write(`r${turn}`, 5, 'deduplicates'));
  t.match(ledger.received(write('later', 6, 'deduplicates')), { status: 201, body: /by r\d+/ });
  t.match(ledger.received(write('late', 4, 'deduplicates')), {
    status: 409,
    fields: { 'idempotency-outcome': 'not-applied' },
  });
  t.same(
    ledger.breaches([]).filter(({ what }) => what === 'a write ran twice'),
    [],
  );
  t.end();
});

t.test('whoever is told that nothing was sent is believed, unless it ran', (t) => {
  const ledger = createUpheavalLedger();
  const body = '{"type":"urn:sallyport:store-unavailable"}';
  const read = readResponse(
    Buffer.from(`HTTP/1.1 503 Service Unavailable\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
    true,
    false,
  );
  ledger.answered('plain', 'k', 'r0', read === null ? null : { ...read.response, closed: true });
  t.same(ledger.breaches([]), []);
  runs(ledger, 1, () => write('r0'));
  t.match(ledger.breaches([]), [{ what: 'a caller was told that nothing was sent, and it ran' }]);
  t.end();
});

t.test('two attempts with one fence are found', (t) => {
  const ledger = createUpheavalLedger();
  ledger.received(write('r0', 7));
  ledger.received(write('r1', 7));
  t.ok(ledger.breaches([]).some(({ what }) => what === 'two attempts had the same fence'));
  t.end();
});

t.test('a token that passed again is found; a step of a clock that was noticed is no excuse', (t) => {
  const ledger = createUpheavalLedger();
  runs(ledger, 2, (turn) => write(`r${turn}`, turn + 1, 'single'));
  const step = {
    msg: 'the clock of the store stepped, and what it keeps may end early: …',
    time: new Date(Date.now() + 1_500).toISOString(),
  };
  t.match(ledger.breaches([livesWith(step)]), [{ what: 'a single-use token passed twice', told: [] }]);
  t.end();
});

t.test('whether the process that ran a write first was gone soon after is known', (t) => {
  const ledger = createUpheavalLedger();
  runs(ledger, 2, (turn) => write(`r${turn}`, turn + 1));
  const [breach] = ledger.breaches([]);
  t.match(breach, { gone: 'without a line' });
  const ranFirst = /ran by (\S+) at/.exec(breach?.detail ?? '')?.[1];
  const life = (afterMs: number): ProxyLife => ({
    lines: [{ request_id: ranFirst }],
    end: { atMs: performance.now() + afterMs, signal: 'SIGKILL' },
  });
  t.match(ledger.breaches([life(1_000)]), [{ gone: 'SIGKILL' }]);
  t.match(ledger.breaches([life(16_000)]), [{ gone: null }]);
  t.match(ledger.breaches([{ ...life(0), end: null }]), [{ gone: null }]);
  t.end();
});
