import t from 'tap';
import { startRedis } from '../../../support/redis-server.js';
import { acquire, freshScope, markOf, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';

t.test('a server out of memory refuses reservations and still takes what settles them', async (t) => {
  const server = await startRedis(t);
  const { store, up, problem, log } = openStore(t, redisSettings(server.port));
  await up();
  const [completed, marked, released] = [freshScope(), freshScope(), freshScope()];
  const fences = [];
  for (const scope of [completed, marked, released]) fences.push(await acquire(store, scope, reserveOf('a')));
  const keys = await server.client.dbsize();
  await server.client.config('SET', 'maxmemory', '100000');

  const refused = freshScope();
  for (let round = 0; round < 7; round += 1) {
    const command = reserveOf('b', {}, round % 2 === 0 ? 60_000 : null);
    t.match(
      await store.reserve(refused, command),
      { ok: false, error: { kind: 'refused', reason: /^OOM/, mayHaveRun: false } },
      'with a marker and without',
    );
  }
  t.equal(await server.client.dbsize(), keys, 'neither record nor marker was written');
  await problem(/OOM/);

  const response = { status: 201, headers: ['Content-Type', 'text/plain'], body: Buffer.alloc(256 * 1024, 7) };
  const [fence = 0, markedFence = 0] = fences;
  t.same(
    await store.complete(completed, {
      attempt: 'a',
      fence,
      fingerprint: 'f',
      state: 'completed',
      response,
      retentionMs: 60_000,
    }),
    { ok: true, value: 'completed' },
  );
  t.same(await store.mark(marked, markOf('a', markedFence)), { ok: true, value: 'unknown' });
  t.same(await store.release(released, { attempt: 'a' }), { ok: true, value: 'released' });
  t.same(await store.resolve(marked, 'committed'), { ok: true, value: 'resolved' });
  t.match(await store.show(completed), { ok: true, value: { record: { state: 'completed' } } });

  await server.client.config('SET', 'maxmemory', '0');
  await acquire(store, refused, reserveOf('b', {}, 60_000));
  await up();
  t.equal(log.lines.filter((line) => line.includes('OOM')).length, 1, 'told once');
});
