import t from 'tap';
import { freePort } from '../../../support/listening.js';
import { startRedis } from '../../../support/redis-server.js';
import { startRelay } from '../../../support/tcp-relay.js';
import { until } from '../../../support/until.js';
import { acquire, freshScope, markOf, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';

// Most of the time is waited for.
t.jobs = 3;

const notSent = { ok: false, error: { kind: 'unreachable', mayHaveRun: false } };

t.test('down at the start, the store is unavailable at once and in use as soon as it is there', async (t) => {
  const port = await freePort();
  const { store, log, up } = openStore(t, redisSettings(port));
  t.match(await store.reserve(freshScope(), reserveOf('a')), notSent);
  await until('the reason is known', () => store.state().problem?.includes('ECONNREFUSED'));
  t.match(await store.reserve(freshScope(), reserveOf('a')), notSent);
  t.equal(store.verdict(), null);
  await startRedis(t, [], { port });
  await up();
  await acquire(store, freshScope(), reserveOf('a'));
  t.same(store.verdict(), { fit: true, problem: null });
  t.equal(store.state().failovers, 0, 'the first sight of a server is no fail-over');
  t.match(log.lines, [/^error .*ECONNREFUSED/, /^info the store is in use/]);
});

t.test(
  'a killed server: refused while it is away; back with another run id, it is used, and older single-use tokens are refused',
  async (t) => {
    const server = await startRedis(t);
    const { store, log, up, down, failovers } = openStore(t, redisSettings(server.port));
    await up();
    const scope = freshScope();
    const fence = await acquire(store, scope, reserveOf('a'));
    await server.kill();
    await down();
    t.match(await store.reserve(freshScope(), reserveOf('b')), notSent);
    t.match(await store.mark(scope, markOf('a', fence)), notSent);
    const before = Math.floor(Date.now() / 1000);
    await server.restart();
    await up();
    t.match(await store.reserve(scope, reserveOf('b')), { value: { reserved: { kind: 'in_progress' } } });
    t.ok((store.issuedBeforeFloorS() ?? 0) >= before);
    t.equal(failovers(), 1);
    t.equal(store.state().failovers, 1);
    t.match(log.lines.join('\n'), /warn the store failed over or restarted/);
  },
);

t.test('a connection cut before the script arrives: nothing ran, and nothing is sent again', async (t) => {
  const server = await startRedis(t);
  const relay = await startRelay(t, server.port);
  const { store, up } = openStore(t, redisSettings(relay.port));
  await up();
  await acquire(store, freshScope(), reserveOf('warm'));
  await server.client.config('RESETSTAT');
  const scope = freshScope();
  relay.cutAt('evalsha', 'before');
  t.match(await store.reserve(scope, reserveOf('a')), { ok: false, error: { kind: 'unreachable', mayHaveRun: true } });
  await up();
  t.same(await store.show(scope), { ok: true, value: null });
  t.match(
    await server.client.info('commandstats'),
    /cmdstat_evalsha:calls=[12],/,
    'only the look at the record, and its text',
  );
});

t.test(
  'a connection cut after the script ran: nothing is sent again; the attempt can be released by its id',
  async (t) => {
    const server = await startRedis(t);
    const relay = await startRelay(t, server.port);
    const { store, up } = openStore(t, redisSettings(relay.port));
    await up();
    await acquire(store, freshScope(), reserveOf('warm'));
    const scope = freshScope();
    relay.cutAt('evalsha', 'after');
    t.match(await store.reserve(scope, reserveOf('a')), {
      ok: false,
      error: { kind: 'unreachable', mayHaveRun: true },
    });
    await up();
    t.match(await store.reserve(scope, reserveOf('b')), { value: { reserved: { kind: 'in_progress' } } });
    t.same(await store.release(scope, { attempt: 'a' }), { ok: true, value: 'released' });
    await acquire(store, scope, reserveOf('b'));
  },
);

t.test(
  'a server that hangs: each call ends by its deadline, then fails fast; one trial heals it; what ran late can be released',
  async (t) => {
    const server = await startRedis(t);
    const { store, up, down } = openStore(
      t,
      redisSettings(server.port, { reserveTimeoutMs: 100, settleTimeoutMs: 100 }),
    );
    await up();
    server.freeze();
    t.teardown(server.thaw);
    const scopes = Array.from({ length: 5 }, freshScope);
    for (const scope of scopes) {
      t.match(await store.reserve(scope, reserveOf('late')), {
        ok: false,
        error: { kind: 'timeout', mayHaveRun: true },
      });
    }
    await down();
    t.match(await store.reserve(freshScope(), reserveOf('fast')), {
      ok: false,
      error: { kind: 'timeout', mayHaveRun: false },
    });
    t.match(await store.mark(freshScope(), markOf('fast', 1)), {
      ok: false,
      error: { kind: 'timeout', mayHaveRun: false },
    });
    server.thaw();
    await until('a trial went through', async () => (await store.reserve(freshScope(), reserveOf('trial'))).ok);
    await up();
    for (const scope of scopes) {
      await until('released', async () => (await store.release(scope, { attempt: 'late' })).ok);
      await until('free again', async () => {
        const again = await store.reserve(scope, reserveOf('next'));
        return again.ok && again.value.reserved.kind === 'acquired';
      });
    }
  },
);

t.test('guard withdrawal: a reserve that arrives after its release takes neither key nor token', async (t) => {
  const server = await startRedis(t);
  const { store, up } = openStore(t, redisSettings(server.port));
  await up();
  const scope = freshScope();
  t.same(await store.release(scope, { attempt: 'late' }), { ok: true, value: 'released' });
  t.match(await store.reserve(scope, reserveOf('late', {}, 60_000)), { value: { reserved: { kind: 'unsupported' } } });
  t.same(await store.show(scope), { ok: true, value: null });
  await acquire(store, scope, reserveOf('next', {}, 60_000));
});
