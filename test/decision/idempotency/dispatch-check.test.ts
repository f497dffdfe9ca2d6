import t from 'tap';
import {
  checkDispatch,
  leaseMarginMs,
  leaseMsOf,
  type DispatchMoment,
} from '../../../src/decision/idempotency/dispatch-check.js';
import type { Reason } from '../../../src/decision/denial.js';

const fine: DispatchMoment = {
  sinceReserveMs: 10,
  leaseMs: 38_000,
  upstreamMs: 32_000,
  confirmedReplicas: 1,
  neededReplicas: 1,
  nowMs: 1_000_000,
  tokenExpiresAtMs: 1_000_000,
  clockSkewMs: 5_000,
  callerGone: false,
};

const rows: readonly {
  readonly name: string;
  readonly change: Partial<DispatchMoment>;
  readonly expected: Reason | null;
}[] = [
  { name: 'all is well', change: {}, expected: null },
  { name: 'a replica too few', change: { confirmedReplicas: 0 }, expected: 'store_unavailable' },
  { name: 'nobody knows how many replicas', change: { confirmedReplicas: NaN }, expected: 'store_unavailable' },
  { name: 'more than enough', change: { confirmedReplicas: 2 }, expected: null },
  { name: 'none are needed', change: { confirmedReplicas: 0, neededReplicas: 0 }, expected: null },
  {
    name: 'the lease leaves a millisecond more than the receiver may take',
    change: { sinceReserveMs: 5_999 },
    expected: null,
  },
  {
    name: 'the lease leaves just what the receiver may take',
    change: { sinceReserveMs: 6_000 },
    expected: 'store_unavailable',
  },
  { name: 'the lease is over', change: { sinceReserveMs: 3_600_000 }, expected: 'store_unavailable' },
  { name: 'the token is in its last millisecond', change: { nowMs: 1_004_999 }, expected: null },
  { name: 'the token has expired', change: { nowMs: 1_005_000 }, expected: 'token_expired' },
  { name: 'the caller is gone', change: { callerGone: true }, expected: 'caller_gone' },
  {
    name: 'the lease is over and the caller gone',
    change: { sinceReserveMs: 60_000, callerGone: true },
    expected: 'store_unavailable',
  },
];

for (const { name, change, expected } of rows) {
  t.test(`the dispatch gate: ${name}`, (t) => {
    t.equal(checkDispatch({ ...fine, ...change })?.reason ?? null, expected);
    t.end();
  });
}

t.test('a lease covers connecting, the response, the settlement and a margin', (t) => {
  t.equal(leaseMsOf({ connectMs: 2_000, responseMs: 30_000, settleMs: 1_000 }), 33_000 + leaseMarginMs);
  t.equal(leaseMarginMs, 5_000);
  t.end();
});
