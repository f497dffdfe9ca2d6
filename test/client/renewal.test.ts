import t from 'tap';
import { backOffMs, planRenewal } from '../../src/client/token/cache.js';

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
