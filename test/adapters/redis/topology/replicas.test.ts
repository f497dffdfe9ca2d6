import t from 'tap';
import type { ReservationStore } from '../../../../src/ports/idempotency.js';
import { startRedis, startReplica } from '../../../support/redis-server.js';
import { startRelay } from '../../../support/tcp-relay.js';
import { until } from '../../../support/until.js';
import { freshScope, markOf, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';

// Most of the time is waited for.
t.jobs = 5;

/** Long enough for an answer on a slow machine, and short enough to be waited for in vain. */
const deadlineMs = 2_000;
const confirmed = { ok: true, value: { reserved: { kind: 'acquired' }, confirmedReplicas: 1 } };

type Reservation = Awaited<ReturnType<ReservationStore['reserve']>>;

/**
 * Whether it was said within the deadline that no replica has it; or that there was no answer, where the machine was
 * too slow even for that.
 */
function isUnconfirmed(answer: Reservation): boolean {
  return answer.ok
    ? answer.value.reserved.kind === 'acquired' && answer.value.confirmedReplicas === 0
    : answer.error.kind === 'timeout';
}

/** Writes side by side until all are confirmed: as many connections are open then as that takes. */
async function warmUp(store: ReservationStore, count: number): Promise<void> {
  await until('all are confirmed', async () => {
    const answers = await Promise.all(
      Array.from({ length: count }, () => store.reserve(freshScope(), reserveOf('warm'))),
    );
    return answers.every((answer) => answer.ok && answer.value.confirmedReplicas === 1);
  });
}

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
  const { store, up } = openStore(t, redisSettings(primary.port, { replicas: 1, reserveTimeoutMs: deadlineMs }));
  await up();
  const scope = freshScope();
  await warmUp(store, 1);
  const fence = await until('a fence', async () => {
    const answer = await store.reserve(scope, reserveOf('a'));
    return answer.ok && answer.value.reserved.kind === 'acquired' ? answer.value.reserved.fence : 0;
  });
  link.stall();
  const order: string[] = [];
  const waiting = store.reserve(freshScope(), reserveOf('b')).then((answer) => {
    order.push('reserve');
    return answer;
  });
  t.same(await store.mark(scope, markOf('a', fence)), { ok: true, value: 'unknown' });
  order.push('mark');
  t.ok(isUnconfirmed(await waiting));
  t.same(order, ['mark', 'reserve']);
  link.resume();
});

t.test('a replica that hangs confirms nothing; awake again, it does', async (t) => {
  const { primary, replica } = await pair(t);
  const { store, up } = openStore(t, redisSettings(primary.port, { replicas: 1, reserveTimeoutMs: deadlineMs }));
  await up();
  await warmUp(store, 1);
  replica.freeze();
  t.teardown(replica.thaw);
  t.ok(isUnconfirmed(await store.reserve(freshScope(), reserveOf('a'))));
  replica.thaw();
  await warmUp(store, 1);
});

t.test(
  'many wait for replicas side by side, and beyond that nothing is sent that could not be answered in time',
  async (t) => {
    const { primary, link } = await pair(t);
    const { store, up } = openStore(t, redisSettings(primary.port, { replicas: 1, reserveTimeoutMs: deadlineMs }));
    const patient = openStore(t, redisSettings(primary.port));
    await Promise.all([up(), patient.up()]);
    await warmUp(store, 16);
    await warmUp(store, 16);
    link.stall();
    const scopes = Array.from({ length: 40 }, freshScope);
    const answers = await Promise.all(scopes.map((scope) => store.reserve(scope, reserveOf('a'))));
    link.resume();
    t.ok(answers.every(isUnconfirmed));
    const sent = answers.filter((answer) => answer.ok || answer.error.mayHaveRun);
    t.ok(sent.length > 4 && sent.length <= 16, `${String(sent.length)} waited side by side`);
    const shown = await Promise.all(scopes.map((scope) => patient.store.show(scope)));
    for (const [index, answer] of answers.entries()) {
      if (!answer.ok && !answer.error.mayHaveRun) {
        t.same(shown[index], { ok: true, value: null }, 'what was not sent did not run');
      }
    }
  },
);

t.test("a resent reservation waits for the first one's write, whichever connection it takes", async (t) => {
  const { primary, link } = await pair(t);
  const { store, up } = openStore(t, redisSettings(primary.port, { replicas: 1, reserveTimeoutMs: deadlineMs }));
  await up();
  await warmUp(store, 4);
  link.stall();
  const scope = freshScope();
  t.ok(isUnconfirmed(await store.reserve(scope, reserveOf('a'))));
  // The first connection is busy now, so that the resent one takes another, which wrote something confirmed before.
  const busy = store.reserve(freshScope(), reserveOf('b'));
  t.ok(isUnconfirmed(await store.reserve(scope, reserveOf('a'))));
  await busy;
  link.resume();
});
