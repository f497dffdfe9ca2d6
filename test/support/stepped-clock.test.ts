import t from 'tap';
import { startRedis } from './redis-server.js';
import { createSteppedClock } from './stepped-clock.js';

t.test('a server believes the clock that it is given, forwards and back, and what ends by it ends', async (t) => {
  const clock = createSteppedClock(t);
  const { client } = await startRedis(t, [], { env: clock.env });
  const aheadS = async (): Promise<number> =>
    Math.round((Number((await client.time())[0]) - Date.now() / 1000) / 60) * 60;
  t.equal(await aheadS(), 0);
  await client.set('k', 'v', 'PX', 600_000);
  clock.setAheadMs(-3_600_000);
  t.equal(await aheadS(), -3_600);
  t.ok((await client.pttl('k')) > 4_000_000, 'it ends when the clock says so');
  clock.setAheadMs(3_600_000);
  t.equal(await aheadS(), 3_600);
  t.equal(await client.get('k'), null);
});
