/** Writes that wait for their turn before anything is reserved for them. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import type { ReservationStore } from '../../../src/ports/idempotency.js';
import { connectRaw, requestBytes, type RawResponse } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { gate } from './faulty-store.js';
import { startScene, writeOf, type Scene, type SceneOptions } from './scene.js';

const maxConnections = 40;
/** What one caller may have of these. */
const connectionsOfOne = 35;
/** With a connection, or ready for the next one. */
const mostReserved = 60;
/**
 * What one caller may have of these. No more than 60 wait anywhere here: it would be overload on a machine that is
 * slow.
 */
const mostOfOne = 52;

interface Held extends Scene {
  /** Requests that the receiver has not answered. */
  readonly held: ServerResponse[];
  readonly reserved: { now: number; most: number };
}

/** The receiver answers when told to, and reservations that are not settled are counted. */
async function holdAll(t: Scope, options: SceneOptions = {}): Promise<Held> {
  const reserved = { now: 0, most: 0 };
  const end = <R>(answer: R): R => {
    reserved.now -= 1;
    return answer;
  };
  const watch = (inner: ReservationStore): ReservationStore => ({
    ...inner,
    reserve: async (scope, command) => {
      reserved.now += 1;
      reserved.most = Math.max(reserved.most, reserved.now);
      const answer = await inner.reserve(scope, command);
      if (!answer.ok || answer.value.reserved.kind !== 'acquired') reserved.now -= 1;
      return answer;
    },
    complete: async (scope, command) => end(await inner.complete(scope, command)),
    release: async (scope, command) => end(await inner.release(scope, command)),
  });
  const scene = await startScene(t, {
    ...options,
    watch,
    config: { upstream: { max_connections: maxConnections, connect_timeout: '20s' }, ...options.config },
  });
  const held: ServerResponse[] = [];
  scene.receiver.behave((req, res) => {
    req.resume().on('end', () => held.push(res));
  });
  return { ...scene, held, reserved };
}

function waiting({ inForce }: Scene): number {
  return inForce().upstream.counts().waiting;
}

async function answerAll({ held, isIdle }: Held): Promise<void> {
  await until('everything to be over', () => {
    for (const res of held.splice(0)) res.writeHead(201).end('made');
    return isIdle();
  });
}

/** So many writes of a caller, with keys of their own. */
function ask({ write }: Scene, count: number, subject = 'checkout'): Promise<RawResponse>[] {
  return Array.from({ length: count }, async (_, i) => write({ key: `${subject}-${i}`, claims: { sub: subject } }));
}

t.test('of a burst only those that have a connection, or the next one, are reserved; each runs once', async (t) => {
  const scene = await holdAll(t);
  const asked = [...ask(scene, 55), ...ask(scene, 55, 'migration')];
  await until('as many as may be are reserved', () => scene.reserved.now === mostReserved);
  await until('the others wait', () => scene.held.length === maxConnections && waiting(scene) === 110 - maxConnections);
  t.equal(scene.store.callsOf('reserve'), mostReserved);
  await answerAll(scene);
  t.same(
    (await Promise.all(asked)).map(({ status }) => status),
    Array(110).fill(201),
  );
  t.equal(scene.executions().length, 110);
  t.equal(scene.reserved.most, mostReserved);
  t.same(scene.inForce().upstream.counts(), { active: 0, waiting: 0 });
});

t.test('a retry is answered without a connection, also where another caller waits for its turn', async (t) => {
  const scene = await holdAll(t);
  const asked = ask(scene, connectionsOfOne);
  asked.push(...ask(scene, maxConnections - connectionsOfOne, 'migration'));
  await until('all connections are busy', () => scene.held.length === maxConnections);
  for (const waits of [0, 5, 40]) {
    while (asked.length < maxConnections + waits) asked.push(scene.write({ key: `more-${asked.length}` }));
    await until('they wait', () => waiting(scene) === waits);
    const retry = { key: 'migration-0', claims: { sub: 'migration' } };
    t.equal((await scene.write(retry)).status, 409);
    t.equal((await scene.write({ ...retry, body: 'another' })).status, 422);
    t.equal(waiting(scene), waits);
  }
  t.equal(scene.store.callsOf('reserve'), mostOfOne + maxConnections - connectionsOfOne + 6);
  await answerAll(scene);
  await Promise.all(asked);
});

t.test('one caller does not take the turns of another', async (t) => {
  const scene = await holdAll(t);
  const asked = ask(scene, 60);
  await until('as many as it may have are reserved', () => scene.store.callsOf('reserve') === mostOfOne);
  await until('the others wait', () => waiting(scene) === 60 - connectionsOfOne);
  asked.push(scene.write({ key: 'other', claims: { sub: 'migration' } }));
  await until('another has one of the connections that are left', () => scene.held.length === connectionsOfOne + 1);
  t.equal(scene.store.callsOf('reserve'), mostOfOne + 1);
  await answerAll(scene);
  await Promise.all(asked);
});

t.test('who leaves while it waits leaves nothing behind', async (t) => {
  const scene = await holdAll(t);
  const asked = ask(scene, 60);
  await until('the others wait', () => waiting(scene) === 60 - connectionsOfOne);
  const caller = await connectRaw(scene.port);
  caller.write(requestBytes(scene.port, writeOf(scene, { key: 'k', headers: { 'X-Request-Id': 'gone' } })));
  await until('it waits, too', () => waiting(scene) === 61 - connectionsOfOne);
  caller.end();
  t.match(await scene.recordOf('gone'), { reason: 'caller_gone', record: null, status: 0 });
  t.equal(waiting(scene), 60 - connectionsOfOne);
  await answerAll(scene);
  await Promise.all(asked);
  t.equal(scene.executions().length, 60);
  t.equal(scene.store.callsOf('reserve'), 60, 'nothing was asked for it');
  t.equal(scene.store.callsOf('release'), 0);
});

t.test('who waits for longer than connecting may take is refused, and its key is free', async (t) => {
  const scene = await holdAll(t, {
    config: { upstream: { max_connections: maxConnections, connect_timeout: '500ms' } },
  });
  const store = gate();
  scene.store.behave('reserve', store.fault);
  const asked = Array.from({ length: 60 }, async (_, i) => scene.write({ key: `${i}` }));
  const refused = await until('they are refused', () => {
    const records = scene.records.filter(({ reason }) => reason === 'overloaded');
    return records.length === 60 - mostOfOne ? records : null;
  });
  for (const { record, status, upstream_ms: upstreamMs } of refused) {
    t.match({ record, status, upstreamMs }, { record: null, status: 503, upstreamMs: null });
  }
  t.equal(store.waiting(), mostOfOne);
  scene.store.behave('reserve', null);
  store.open();
  await answerAll(scene);
  const answers = await Promise.all(asked);
  scene.receiver.behave((_req, res) => res.writeHead(201).end());
  const again = await scene.write({ key: String(answers.findLastIndex(({ status }) => status === 503)) });
  t.match([again.status, again.field('Idempotent-Replayed')], [201, null]);
});

t.test('when time is up those that wait are told so, and nothing was reserved for them', async (t) => {
  const scene = await holdAll(t);
  const asked = ask(scene, 60);
  await until('the others wait', () => waiting(scene) === 60 - connectionsOfOne);
  await scene.server.drain(500);
  await Promise.allSettled(asked);
  t.equal(scene.store.callsOf('reserve'), mostOfOne);
  const unreserved = scene.records.filter(({ reason, record }) => reason === 'shutting_down' && record === null);
  t.equal(unreserved.length, 60 - mostOfOne);
});
