import t from 'tap';
import { startChaos } from './chaos.js';

/** Changed by hand to look elsewhere; `chaos.long.test.ts` looks at many. */
const seeds = [1, 20];

t.test('whatever callers and upstream do, nothing is left behind and nothing is a bug', async (t) => {
  for (const seed of seeds) {
    const chaos = await startChaos(t, seed);
    await chaos.run(60);
    t.same(chaos.proxy.logged, [], `seed ${String(seed)}: no bug`);
    t.ok(chaos.proxy.records.length > 0);
    t.equal(
      new Set(chaos.proxy.records.map(({ request_id }) => request_id)).size,
      chaos.proxy.records.length,
      'each recorded once',
    );
    t.ok(chaos.upstream.open() <= 5, 'no more connections than allowed');
    await chaos.serveHonest();
  }
});

t.test('a shutdown in the midst of it ends in time and leaves nothing behind', async (t) => {
  for (const [seed, graceMs] of [
    [4, 0],
    [50, 300],
  ] as const) {
    const chaos = await startChaos(t, seed);
    await chaos.runIntoDrain(40, graceMs);
    t.same(chaos.proxy.logged, [], `seed ${String(seed)}: no bug`);
    t.equal(
      new Set(chaos.proxy.records.map(({ request_id }) => request_id)).size,
      chaos.proxy.records.length,
      'each recorded once',
    );
  }
});
