import t from 'tap';
import { startRedis, startReplica } from '../../../support/redis-server.js';
import { startSentinels } from '../../../support/redis-sentinel.js';
import { until } from '../../../support/until.js';
import { openStore, redisSettings } from '../redis-store.js';
import { countForgotten, startWriteLoad } from '../write-load.js';

t.test(
  'Sentinels promote a replica under load: the store follows, and forgets nothing that was confirmed',
  async (t) => {
    const primary = await startRedis(t);
    const replicas = [await startReplica(t, primary.port), await startReplica(t, primary.port)];
    const sentinels = await startSentinels(t, {
      name: 'orders',
      primaryPort: primary.port,
      quorum: 2,
      replicas: 2,
      count: 3,
    });
    const { store, up, down, failovers, log } = openStore(
      t,
      redisSettings(0, {
        topology: {
          kind: 'sentinel',
          name: 'orders',
          nodes: sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
        },
        replicas: 1,
        reserveTimeoutMs: 2_000,
        settleTimeoutMs: 2_000,
      }),
    );
    await up();
    t.equal(store.state().connectedReplicas, 2);
    const load = startWriteLoad(store, 1);
    await load.more(300);

    const killedAtS = Math.floor(Date.now() / 1000);
    await primary.kill();
    await down();
    await until(
      'a replica is promoted',
      async () => {
        const roles = await Promise.all(replicas.map(async ({ client }) => (await client.role())[0]));
        return roles.includes('master');
      },
      60_000,
    );
    await load.more(300);
    await up();
    t.equal(failovers(), 1);
    t.ok((store.issuedBeforeFloorS() ?? 0) >= killedAtS);

    // The old primary is made a replica of the new one; nobody asks it again.
    await primary.restart();
    await until('the old primary is a replica', async () => (await primary.client.role())[0] === 'slave', 60_000);
    await load.more(100);
    await load.stop();
    t.equal(failovers(), 1);
    t.equal(
      await countForgotten(store, load.confirmed),
      0,
      `of ${String(load.confirmed.length)} confirmed, ${String(load.failed())} were refused meanwhile`,
    );

    // A planned fail-over: the primary is there all the time, and demoted.
    await sentinels[0]?.client.call('sentinel', 'failover', 'orders');
    await until('the planned fail-over is seen', () => failovers() === 2, 60_000);
    await up();
    t.equal(await countForgotten(store, load.confirmed), 0);
    t.comment(log.lines.join('\n'));
  },
);
