import t from 'tap';
import {
  settle,
  statedOutcome,
  type SettlementRules,
  type UpstreamOutcome,
} from '../../../src/decision/idempotency/settlement.js';

const plain: SettlementRules = { releaseOn: new Set([429]), trustsOutcome: false, takenOver: false, isGrpc: false };
const trusting: SettlementRules = { ...plain, trustsOutcome: true };
const takenOver: SettlementRules = { ...trusting, takenOver: true };

const whole = (status: number, outcome: string | null = null): UpstreamOutcome => ({
  kind: 'whole',
  response: { status, headers: ['A', 'b'], body: new Uint8Array([1]) },
  outcome,
});
const grpc: SettlementRules = { ...plain, isGrpc: true };
const ended = (trailers: readonly string[], outcome: string | null = null, status = 200): UpstreamOutcome => ({
  kind: 'whole',
  response: { status, headers: [], body: new Uint8Array([1]), trailers },
  outcome,
});
const cut = (status: number, outcome: string | null = null): UpstreamOutcome => ({ kind: 'cut_off', status, outcome });

const rows: readonly {
  readonly name: string;
  readonly outcome: UpstreamOutcome;
  readonly rules: SettlementRules;
  readonly expected: string;
}[] = [
  { name: 'nothing was sent', outcome: { kind: 'not_dispatched' }, rules: plain, expected: 'release' },
  { name: 'something was sent, no status came', outcome: { kind: 'no_status' }, rules: plain, expected: 'mark' },
  { name: 'a whole 201', outcome: whole(201), rules: plain, expected: 'completed' },
  { name: 'a whole 500: it may have acted', outcome: whole(500), rules: plain, expected: 'completed' },
  { name: 'a status that means not applied', outcome: whole(429), rules: plain, expected: 'release' },
  { name: 'the same, cut off', outcome: cut(429), rules: plain, expected: 'release' },
  { name: 'a 200 cut off', outcome: cut(200), rules: plain, expected: 'tombstone' },
  {
    name: 'the word of a receiver that is not trusted',
    outcome: whole(200, 'not-applied'),
    rules: plain,
    expected: 'completed',
  },
  { name: 'nor its other word', outcome: whole(429, 'committed'), rules: plain, expected: 'release' },
  {
    name: 'level 1: not applied, whatever the status',
    outcome: whole(200, 'not-applied'),
    rules: trusting,
    expected: 'release',
  },
  { name: 'level 1: the same, cut off', outcome: cut(200, 'not-applied'), rules: trusting, expected: 'release' },
  {
    name: 'level 1: committed, whatever the status',
    outcome: whole(429, 'committed'),
    rules: trusting,
    expected: 'completed',
  },
  { name: 'level 1: the same, cut off', outcome: cut(429, 'committed'), rules: trusting, expected: 'tombstone' },
  { name: 'level 1: another word says nothing', outcome: whole(429, 'maybe'), rules: trusting, expected: 'release' },
  {
    name: 'level 2: a takeover that sent nothing',
    outcome: { kind: 'not_dispatched' },
    rules: takenOver,
    expected: 'mark',
  },
  {
    name: 'level 2: a takeover whose status means not applied',
    outcome: whole(429),
    rules: takenOver,
    expected: 'mark',
  },
  {
    name: 'level 2: a takeover of which the receiver says so itself',
    outcome: whole(429, 'not-applied'),
    rules: takenOver,
    expected: 'mark',
  },
  { name: 'level 2: the same, cut off', outcome: cut(429, 'not-applied'), rules: takenOver, expected: 'mark' },
  { name: 'gRPC: OK', outcome: ended(['grpc-status', '0']), rules: grpc, expected: 'completed' },
  {
    name: 'gRPC: a code that means not applied, as its status does',
    outcome: ended(['grpc-status', '8']),
    rules: grpc,
    expected: 'release',
  },
  { name: 'gRPC: any other code', outcome: ended(['grpc-status', '14']), rules: grpc, expected: 'completed' },
  { name: 'gRPC: no code at all', outcome: whole(200), rules: grpc, expected: 'mark' },
  { name: 'gRPC: trailers without a code', outcome: ended(['x', 'y']), rules: grpc, expected: 'mark' },
  {
    name: 'gRPC: no code, and the word of a receiver that is trusted',
    outcome: ended([], 'not-applied'),
    rules: { ...trusting, isGrpc: true },
    expected: 'mark',
  },
  { name: 'gRPC: a status of HTTP', outcome: ended([], null, 429), rules: grpc, expected: 'release' },
  {
    name: 'a code where the call was none of gRPC',
    outcome: ended(['grpc-status', '8']),
    rules: plain,
    expected: 'completed',
  },
  { name: 'level 2: a takeover that was answered', outcome: whole(200), rules: takenOver, expected: 'completed' },
];

for (const { name, outcome, rules, expected } of rows) {
  t.test(`settlement: ${name}`, (t) => {
    const settlement = settle(outcome, rules);
    t.equal(settlement.kind === 'complete' ? settlement.state : settlement.kind, expected);
    t.end();
  });
}

t.test("a kept response is the upstream's; a tombstone has its status and nothing else", (t) => {
  t.match(settle(whole(201), plain), { response: { status: 201, headers: ['A', 'b'], body: new Uint8Array([1]) } });
  t.same(settle(cut(201), plain), {
    kind: 'complete',
    state: 'tombstone',
    response: { status: 201, headers: [], body: new Uint8Array() },
  });
  t.end();
});

t.test('what an upstream says of the outcome', (t) => {
  const outcomes: readonly (readonly [readonly string[], string | null])[] = [
    [[], null],
    [['idempotency-outcome', ' Committed '], 'committed'],
    [['Idempotency-Outcome', 'not-applied'], 'not-applied'],
    [['Idempotency-Outcome', 'not-applied', 'Idempotency-Outcome', 'committed'], 'committed'],
    [['X', 'committed'], null],
    [['X', 'Idempotency-Outcome', 'committed', 'X'], null],
    [['Idempotency-Outcome'], null],
    [['Idempotency-Outcome', 'odd', 'Idempotency-Outcome', 'not-applied'], 'odd'],
  ];
  for (const [headers, expected] of outcomes) t.equal(statedOutcome(headers), expected);
  t.end();
});
