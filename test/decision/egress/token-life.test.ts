import t from 'tap';
import {
  backOffMs,
  beginLife,
  fullInvalidationBudget,
  judgeLife,
  noBackOff,
  planRenewal,
  backOffAfter,
  retryAfterSeconds,
  takeInvalidation,
} from '../../../src/decision/egress/token-life.js';

t.test('a token is renewed within the last third of its life and given out until shortly before its end', async (t) => {
  const s = 1_000;
  const cases = [
    { lifetime: 300 * s, random: 0, renewAfterMs: 210 * s, usableForMs: 270 * s },
    { lifetime: 300 * s, random: 1, renewAfterMs: 255 * s, usableForMs: 270 * s },
    { lifetime: 7_200 * s, random: 0.5, renewAfterMs: 5_580 * s, usableForMs: 7_170 * s },
    { lifetime: 10 * s, random: 1, renewAfterMs: 8.5 * s, usableForMs: 9 * s },
    { lifetime: 5 * s, random: 1, renewAfterMs: 4 * s, usableForMs: 4 * s },
    { lifetime: s, random: 0, renewAfterMs: 0, usableForMs: 0 },
  ];
  for (const { lifetime, random, ...expected } of cases) {
    t.same(planRenewal(lifetime, random), expected, `${String(lifetime)} ms, ${String(random)}`);
  }
});

t.test('a failing Core is left alone for longer each time, with chance, or for as long as it asks', async (t) => {
  const cases = [
    { failures: 1, random: 0, asked: null, ms: 250 },
    { failures: 1, random: 1, asked: null, ms: 500 },
    { failures: 2, random: 1, asked: null, ms: 1_000 },
    { failures: 6, random: 1, asked: null, ms: 16_000 },
    { failures: 7, random: 1, asked: null, ms: 30_000 },
    { failures: 1e9, random: 0, asked: null, ms: 15_000 },
    { failures: 1, random: 0, asked: 5_000, ms: 5_000 },
    { failures: 1, random: 0, asked: 1e9, ms: 300_000 },
    { failures: 7, random: 1, asked: 5_000, ms: 30_000 },
  ];
  for (const { failures, random, asked, ms } of cases) {
    t.equal(backOffMs(failures, random, asked), ms, `${String(failures)} ${String(random)}`);
  }
});

t.test('a token is good by the clock that never goes back and by that of the day, whichever ends first', async (t) => {
  const asked = { monotonicMs: 1_000, dayMs: 50_000 };
  const life = beginLife(300_000, asked, 0);
  t.strictSame(life, {
    renewAtMs: 211_000,
    usableUntilMs: 271_000,
    usableUntilDayMs: 320_000,
    endsAtMs: 350_000,
  });
  const cases = [
    { monotonicMs: 210_999, dayMs: 50_000, use: 'fresh' },
    { monotonicMs: 211_000, dayMs: 50_000, use: 'due' },
    { monotonicMs: 270_999, dayMs: 319_999, use: 'due' },
    { monotonicMs: 271_000, dayMs: 50_000, use: 'over' },
    { monotonicMs: 1_000, dayMs: 320_000, use: 'over' },
  ];
  for (const { monotonicMs, dayMs, use } of cases) t.equal(judgeLife(life, monotonicMs, dayMs), use);
});

t.test('failures within one rest are one; the rest is never shortened', async (t) => {
  const first = backOffAfter(noBackOff, null, 1_000, 1);
  t.strictSame(first, { failures: 1, untilMs: 1_500 });
  t.strictSame(backOffAfter(first, null, 1_100, 1), { failures: 1, untilMs: 1_600 });
  t.strictSame(backOffAfter(first, 10_000, 1_100, 0), { failures: 1, untilMs: 11_100 });
  const second = backOffAfter(first, null, 1_500, 1);
  t.strictSame(second, { failures: 2, untilMs: 2_500 });
  t.strictSame(backOffAfter({ failures: 1, untilMs: 99_000 }, null, 1_000, 1), { failures: 1, untilMs: 99_000 });
});

t.test('callers are asked to come again after whole seconds within bounds', async (t) => {
  const cases = [
    [-5, 1],
    [0, 1],
    [1_000, 1],
    [1_001, 2],
    [1e9, 300],
  ] as const;
  for (const [ms, seconds] of cases) t.equal(retryAfterSeconds(ms), seconds, String(ms));
});

t.test('five invalidations count at once, then one each ten seconds', async (t) => {
  let budget = fullInvalidationBudget;
  for (let count = 0; count < 5; count += 1) {
    const next = takeInvalidation(budget, 1_000);
    t.not(next, null);
    budget = next ?? budget;
  }
  t.equal(takeInvalidation(budget, 1_000), null);
  t.equal(takeInvalidation(budget, 10_999), null);
  t.strictSame(takeInvalidation(budget, 11_000), { left: 0, atMs: 11_000 });
  t.strictSame(takeInvalidation(budget, 1e9), { left: 4, atMs: 1e9 }, 'never more at once');
  t.equal(takeInvalidation(budget, 0), null, 'a clock that went back gives nothing');
});
