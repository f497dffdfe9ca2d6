import t from 'tap';
import { startChaos } from './chaos.js';

t.setTimeout(600_000);

t.test(
  'whatever thousands of callers and their upstream do, nothing is left behind and nothing is a bug',
  async (t) => {
    for (let seed = 1000; seed < 1020; seed++) {
      const chaos = await startChaos(t, seed);
      await chaos.run(250);
      t.same(chaos.proxy.logged, [], `seed ${String(seed)}: no bug`);
      t.equal(
        new Set(chaos.proxy.records.map(({ request_id }) => request_id)).size,
        chaos.proxy.records.length,
        'each recorded once',
      );
      await chaos.serveHonest();
      await chaos.proxy.server.drain(0);
    }
  },
);
