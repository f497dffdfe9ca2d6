import t from 'tap';
import { startRedis, startReplica } from '../../support/redis-server.js';
import { startRelay } from '../../support/tcp-relay.js';
import { acquire, freshScope, reserveOf } from '../store-world.js';
import { openStore, redisSettings } from './redis-world.js';

t.jobs = 3;

const unconfirmed = { ok: true, value: { reserved: { kind: 'acquired' }, confirmedReplicas: 0 } };
const confirmed = { ok: true, value: { reserved: { kind: 'acquired' }, confirmedReplicas: 1 } };

/** A primary and a replica that are connected by a link which can be stalled. */
async function pair(t: Parameters<typeof startRedis>[0]) {
  const primary = await startRedis(t);
  const link = await startRelay(t, primary.port);
  const replica = await startReplica(t, link.port);
  return { primary, link, replica };
}

t.test('guard replica count: a reservation is confirmed by the replica that holds it', async (t) => {
  const { primary, replica } = await pair(t);
  const { store, up } = openStore(t, redisSettings(primary.port, { replicas: 1 }));
  await up();
  const scope = freshScope();
  t.match(await store.reserve(scope, reserveOf('a')), confirmed);
  t.equal(await replica.client.exists(`sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`), 1);
});

t.test('guard replica count: a black-holed link is told within the deadline, and holds up nobody else', async (t) => {
  const { primary, link } = await pair(t);
  const { store, up } = openStore(t, redisSettings(primary.port, { replicas: 1, reserveTimeoutMs: 1_000 }));
  await up();
  const scope = freshScope();
  const fence = await acquire(store, scope, reserveOf('a'));
  link.stall();
  const order: string[] = [];
  const waiting = store.reserve(freshScope(), reserveOf('b')).then((answer) => {
    order.push('reserve');
    return answer;
  });
  t.same(await store.mark(scope, { attempt: 'a', fence }), { ok: true, value: 'unknown' });
  order.push('mark');
  t.match(await waiting, unconfirmed);
  t.same(order, ['mark', 'reserve']);
  link.resume();
});

t.test('a replica that hangs confirms nothing; awake again, it does', async (t) => {
  const { primary, replica } = await pair(t);
  const { store, up } = openStore(t, redisSettings(primary.port, { replicas: 1, reserveTimeoutMs: 500 }));
  await up();
  await acquire(store, freshScope(), reserveOf('a'));
  replica.freeze();
  t.teardown(replica.thaw);
  t.match(await store.reserve(freshScope(), reserveOf('a')), unconfirmed);
  replica.thaw();
  const patient = openStore(t, redisSettings(primary.port, { replicas: 1 }));
  await patient.up();
  t.match(await patient.store.reserve(freshScope(), reserveOf('a')), confirmed);
});

t.test('many wait for replicas side by side, and beyond that nothing is sent that could not be answered in time', async (t) => {
  const { primary, link } = await pair(t);
  const { store, up } = openStore(t, redisSettings(primary.port, { replicas: 1, reserveTimeoutMs: 2_000 }));
  await up();
  await Promise.all(Array.from({ length: 16 }, () => acquire(store, freshScope(), reserveOf('warm'))));
  link.stall();
  const scopes = Array.from({ length: 40 }, freshScope);
  const answers = await Promise.all(scopes.map((scope) => store.reserve(scope, reserveOf('a'))));
  link.resume();
  const sent = answers.filter((answer) => answer.ok);
  t.ok(sent.length > 8 && sent.length <= 32, `${String(sent.length)} waited side by side`);
  for (const answer of sent) t.match(answer, unconfirmed);
  for (const [index, answer] of answers.entries()) {
    if (answer.ok) continue;
    t.match(answer, { error: { kind: 'timeout', mayHaveRun: false } });
    t.same(await store.show(scopes[index] ?? freshScope()), { ok: true, value: null });
  }
});

t.test('a resent reservation waits for the first one\'s write, whichever connection it takes', async (t) => {
  const { primary, link } = await pair(t);
  const { store, up } = openStore(t, redisSettings(primary.port, { replicas: 1, reserveTimeoutMs: 1_000 }));
  await up();
  await Promise.all(Array.from({ length: 4 }, () => acquire(store, freshScope(), reserveOf('warm'))));
  link.stall();
  const scope = freshScope();
  t.match(await store.reserve(scope, reserveOf('a')), unconfirmed);
  // The first connection is busy now, so that the resent one takes another, which wrote something confirmed before.
  const busy = store.reserve(freshScope(), reserveOf('b'));
  t.match(await store.reserve(scope, reserveOf('a')), unconfirmed);
  await busy;
  link.resume();
});
