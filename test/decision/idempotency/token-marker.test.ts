import t from 'tap';
import { largestClockSkewS, markerMarginMs, markerTtlMs } from '../../../src/decision/idempotency/dispatch-check.js';

const expiresAtS = 1_800_000_300;
const lastValidMs = 1_800_000_360_000;

const cases: readonly { name: string; nowMs: number; expected: number }[] = [
  { name: 'five minutes before exp', nowMs: 1_800_000_000_000, expected: 360_000 + markerMarginMs },
  { name: 'at exp: the largest skew is still to come', nowMs: 1_800_000_300_000, expected: 60_000 + markerMarginMs },
  { name: 'a millisecond before the end of the skew', nowMs: lastValidMs - 1, expected: 1 + markerMarginMs },
  { name: 'at the end of the skew', nowMs: lastValidMs, expected: markerMarginMs },
  { name: 'long after: never less than the margin', nowMs: lastValidMs + 3_600_000, expected: markerMarginMs },
];

t.test("guard margin: a single-use token's marker outlives exp, the largest skew and a margin", (t) => {
  t.equal(markerMarginMs, 30_000);
  t.equal(largestClockSkewS, 60);
  for (const { name, nowMs, expected } of cases) t.equal(markerTtlMs(expiresAtS, nowMs), expected, name);
  t.end();
});
