import t from 'tap';
import { startWorld, type World } from '../support/world.js';
import type { Scope } from '../support/scope.js';
import { startAttackedService } from './load-process.js';
import { attacks, beHonest, containerHeap, percentile, routes, withstand } from './strangers.js';

t.setTimeout(600_000);

async function start(t: Scope): Promise<World> {
  const { url } = await startAttackedService(t, 20, 1);
  return startWorld(t, { env: containerHeap, config: { upstream: { url }, routes, store: { memory: {} } } });
}

for (const attack of attacks) {
  t.test(`${attack.name}: the process lives, and an honest caller is served`, async (t) => {
    const world = await start(t);
    const restUntil = performance.now() + 500;
    const rest = await beHonest(world, () => performance.now() >= restUntil);
    const { took, failed, peakMiB } = await withstand(world, [attack], 4_000);
    t.ok(world.process.isRunning(), world.process.output().slice(-500));
    t.comment(
      `${attack.name}: honest p99 ${percentile(took, 0.99).toFixed(0)} ms of ${String(took.length)} requests, ` +
        `${percentile(rest.took, 0.99).toFixed(0)} ms at rest; at most ${String(peakMiB)} MiB`,
    );
    t.same(failed, [], 'no request of the honest caller failed');
    t.not(took.length, 0);
    if (attack.name.includes('WebSockets')) {
      t.not(await world.metric('sallyport_websocket_closes_total'), 0, 'they were opened');
    }
  });
}
