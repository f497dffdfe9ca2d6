import t from 'tap';
import { coalesce, createTurns, waitUntil } from '../../src/lib/promises.js';
import { until } from '../support/until.js';

t.test('what holds at once, or after a while, holds', async (t) => {
  t.equal(await waitUntil(() => true, 0), true);
  let looks = 0;
  t.equal(await waitUntil(() => ++looks > 2, 60_000), true);
});

t.test('what does not hold in time does not', async (t) => {
  let looks = 0;
  t.equal(await waitUntil(() => ++looks < 0, 30), false);
  t.ok(looks > 1, 'it looked more than once');
});

t.test('calls while it runs share one run after it', async (t) => {
  const ends: (() => void)[] = [];
  let runs = 0;
  let atOnce = 0;
  let most = 0;
  const call = coalesce(async () => {
    runs += 1;
    atOnce += 1;
    most = Math.max(most, atOnce);
    await new Promise<void>((resolve) => ends.push(resolve));
    atOnce -= 1;
  });
  const first = call();
  await until('the first run', () => runs === 1);
  const later = [call(), call(), call()];
  t.equal(runs, 1);
  ends.shift()?.();
  await first;
  await until('the second run', () => runs === 2);
  ends.shift()?.();
  await Promise.all(later);
  t.equal(runs, 2);
  t.equal(most, 1);
});

t.test('a run that fails stops no later one', async (t) => {
  let runs = 0;
  const call = coalesce(async () => {
    runs += 1;
    if (runs === 1) throw new Error('first');
  });
  await t.rejects(call(), { message: 'first' });
  await call();
  t.equal(runs, 2);
});

t.test('a call between the end of a run and the start of the next shares the next', async (t) => {
  let atOnce = 0;
  let most = 0;
  const call = coalesce(async () => {
    atOnce += 1;
    most = Math.max(most, atOnce);
    await new Promise((resolve) => setImmediate(resolve));
    atOnce -= 1;
  });
  const first = call();
  const second = call();
  await Promise.all([first.then(call), second, first.then(() => Promise.resolve()).then(call)]);
  t.equal(most, 1);
});

t.test('a run is shared with what it came to, and rests by how long it took', async (t) => {
  const took: number[] = [];
  let runs = 0;
  const call = coalesce(
    async () => {
      runs += 1;
      await new Promise((resolve) => setImmediate(resolve));
      return runs;
    },
    (tookMs) => {
      took.push(tookMs);
      return 1;
    },
  );
  const first = call();
  await until('the first run', () => runs === 1);
  t.same(await Promise.all([first, call(), call()]), [1, 2, 2]);
  t.equal(await call(), 3);
  t.ok(took.length >= 2 && took.every((ms) => ms >= 0), took.join(' '));
});

t.test('turns are one in each turn of the event loop', async (t) => {
  const turn = createTurns();
  let loops = 0;
  let isOver = false;
  const count = (): void => {
    loops += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  const at = await Promise.all(Array.from({ length: 5 }, async () => turn().then(() => loops)));
  isOver = true;
  t.equal(new Set(at).size, 5, at.join(' '));
});
