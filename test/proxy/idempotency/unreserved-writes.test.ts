/** Writes that wait for their turn before anything is reserved for them. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import type { ReservationStore } from '../../../src/ports/idempotency.js';
import { connectRaw, requestBytes, type RawResponse } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { gate } from './faulty-store.js';
import { startReservingProxy, writeOf, type ReservingProxy, type ReservingProxyOptions } from './reserving-proxy.js';

const maxConnections = 40;
/** What one caller may have of these. */
const connectionsOfOne = 35;
/** With a connection, or ready for the next one. */
const mostReserved = 50;
/**
 * What one caller may have of these. No more than 60 wait in a line here: it would be overload on a machine that is
 * slow.
 */
const mostOfOne = 43;

interface Held extends ReservingProxy {
  /** Requests that the receiver has not answered. */
  readonly held: ServerResponse[];
  readonly reserved: { now: number; most: number };
}

/** The receiver answers when told to, and reservations that are not settled are counted. */
async function holdAll(t: Scope, options: ReservingProxyOptions = {}): Promise<Held> {
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
  const proxy = await startReservingProxy(t, {
    ...options,
    watch,
    config: { upstream: { max_connections: maxConnections, connect_timeout: '20s' }, ...options.config },
  });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => held.push(res));
  });
  return { ...proxy, held, reserved };
}

function waiting({ activeConfig }: ReservingProxy): number {
  return activeConfig().upstream.counts().waiting;
}

async function answerAll({ held, isIdle }: Held): Promise<void> {
  await until('everything to be over', () => {
    for (const res of held.splice(0)) res.writeHead(201).end('made');
    return isIdle();
  });
}

/** So many writes of a caller, with keys of their own. */
function ask({ write }: ReservingProxy, count: number, subject = 'checkout'): Promise<RawResponse>[] {
  return Array.from({ length: count }, async (_, i) => write({ key: `${subject}-${i}`, claims: { sub: subject } }));
}

t.test('of a burst only those that have a connection, or the next one, are reserved; each runs once', async (t) => {
  const proxy = await holdAll(t);
  const asked = [...ask(proxy, 55), ...ask(proxy, 55, 'migration')];
  await until('as many as may be are reserved', () => proxy.reserved.now === mostReserved);
  await until('the others wait', () => proxy.held.length === maxConnections && waiting(proxy) === 110 - maxConnections);
  t.equal(proxy.store.callsOf('reserve'), mostReserved);
  await answerAll(proxy);
  t.same(
    (await Promise.all(asked)).map(({ status }) => status),
    Array(110).fill(201),
  );
  t.equal(proxy.executions().length, 110);
  t.equal(proxy.reserved.most, mostReserved);
  t.same(proxy.activeConfig().upstream.counts(), { active: 0, waiting: 0 });
});

t.test('a retry is answered without a connection, also where another caller waits for its turn', async (t) => {
  const proxy = await holdAll(t);
  const asked = ask(proxy, connectionsOfOne);
  asked.push(...ask(proxy, maxConnections - connectionsOfOne, 'migration'));
  await until('all connections are busy', () => proxy.held.length === maxConnections);
  for (const waits of [0, 5, 40]) {
    while (asked.length < maxConnections + waits) asked.push(proxy.write({ key: `more-${asked.length}` }));
    await until('they wait', () => waiting(proxy) === waits);
    const retry = { key: 'migration-0', claims: { sub: 'migration' } };
    t.equal((await proxy.write(retry)).status, 409);
    t.equal((await proxy.write({ ...retry, body: 'another' })).status, 422);
    t.equal(waiting(proxy), waits);
  }
  t.equal(proxy.store.callsOf('reserve'), mostOfOne + maxConnections - connectionsOfOne + 6);
  await answerAll(proxy);
  await Promise.all(asked);
});

t.test('one caller does not take the turns of another', async (t) => {
  const proxy = await holdAll(t);
  const asked = ask(proxy, 60);
  await until('as many as it may have are reserved', () => proxy.store.callsOf('reserve') === mostOfOne);
  await until('the others wait', () => waiting(proxy) === 60 - connectionsOfOne);
  asked.push(proxy.write({ key: 'other', claims: { sub: 'migration' } }));
  await until('another has one of the connections that are left', () => proxy.held.length === connectionsOfOne + 1);
  t.equal(proxy.store.callsOf('reserve'), mostOfOne + 1);
  await answerAll(proxy);
  await Promise.all(asked);
});

t.test('who leaves while it waits leaves nothing behind', async (t) => {
  const proxy = await holdAll(t);
  const asked = ask(proxy, 60);
  await until('the others wait', () => waiting(proxy) === 60 - connectionsOfOne);
  const caller = await connectRaw(proxy.port);
  caller.write(requestBytes(proxy.port, writeOf(proxy, { key: 'k', headers: { 'X-Request-Id': 'gone' } })));
  await until('it waits, too', () => waiting(proxy) === 61 - connectionsOfOne);
  caller.end();
  t.match(await proxy.recordOf('gone'), { reason: 'caller_gone', record: null, status: 0 });
  t.equal(waiting(proxy), 60 - connectionsOfOne);
  await answerAll(proxy);
  await Promise.all(asked);
  t.equal(proxy.executions().length, 60);
  t.equal(proxy.store.callsOf('reserve'), 60, 'nothing was asked for it');
  t.equal(proxy.store.callsOf('release'), 0);
});

t.test('who waits for longer than connecting may take is refused, and its key is free', async (t) => {
  const proxy = await holdAll(t, {
    config: { upstream: { max_connections: maxConnections, connect_timeout: '500ms' } },
  });
  const store = gate();
  proxy.store.behave('reserve', store.fault);
  const asked = Array.from({ length: 60 }, async (_, i) => proxy.write({ key: `${i}` }));
  const refused = await until('they are refused', () => {
    const records = proxy.records.filter(({ reason }) => reason === 'overloaded');
    return records.length === 60 - mostOfOne ? records : null;
  });
  for (const { record, status, upstream_ms: upstreamMs } of refused) {
    t.match({ record, status, upstreamMs }, { record: null, status: 503, upstreamMs: null });
  }
  t.equal(store.waiting(), mostOfOne);
  proxy.store.behave('reserve', null);
  store.open();
  await answerAll(proxy);
  const answers = await Promise.all(asked);
  proxy.receiver.behave((_req, res) => res.writeHead(201).end());
  const again = await proxy.write({ key: String(answers.findLastIndex(({ status }) => status === 503)) });
  t.match([again.status, again.field('Idempotent-Replayed')], [201, null]);
});

t.test('when time is up those that wait are told so, and nothing was reserved for them', async (t) => {
  const proxy = await holdAll(t);
  const asked = ask(proxy, 60);
  await until('the others wait', () => waiting(proxy) === 60 - connectionsOfOne);
  await proxy.server.drain(500);
  await Promise.allSettled(asked);
  t.equal(proxy.store.callsOf('reserve'), mostOfOne);
  const unreserved = proxy.records.filter(({ reason, record }) => reason === 'shutting_down' && record === null);
  t.equal(unreserved.length, 60 - mostOfOne);
});
