/** docs/guarantees.md "Promises": a replication link that is a black hole, with the replica gate and without it. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import { startReplica } from '../support/redis-server.js';
import { startRelay } from '../support/tcp-relay.js';
import { until } from '../support/until.js';
import { beginWrite, problemOrStatus, shareRedis, singlePasses, write } from './shared-redis.js';

t.setTimeout(120_000);

t.test('with the gate: nothing is dispatched that the replica does not have, and the key is free again', async (t) => {
  const shared = await shareRedis(t, { store: { replicas: 1, reserve_timeout: '1s', settle_timeout: '1s' } });
  const link = await startRelay(t, shared.redis.port);
  await startReplica(t, link.port);
  const proxy = await shared.startProxy();
  await until('a confirmed write', async () => (await write(proxy)).status === 200);
  const before = shared.receiver.requests.length;
  link.stall();
  t.equal(problemOrStatus(await write(proxy, { key: 'k' })), 'store-unavailable');
  t.equal(shared.receiver.requests.length, before);
  link.resume();
  await until('a retry to run', async () => (await write(proxy, { key: 'k' })).status === 200);
  t.equal(shared.receiver.requests.filter((received) => received.field('Idempotency-Key')[0] === 'k').length, 1);
});

t.test('without the gate a fail-over forgets: the write runs twice, and that is counted and alarmed', async (t) => {
  const shared = await shareRedis(t);
  const address = await shared.startRelay();
  const link = await startRelay(t, shared.redis.port);
  const replica = await startReplica(t, link.port);
  const [first, second] = [await shared.startProxy(address), await shared.startProxy(address)];
  const answers: ServerResponse[] = [];
  shared.receiver.behave((req, res) => {
    req.resume().on('end', () => answers.push(res));
  });
  link.stall();
  const taken = await beginWrite(t, first, { key: 'taken' });
  const lost = await beginWrite(t, first, { key: 'lost' });
  await until('the receiver to have both', () => answers.length >= 2);
  await shared.redis.kill();
  await replica.client.call('replicaof', 'no', 'one');
  address.leadTo(replica.port);
  shared.receiver.behave(null);
  await until('the retry of one to be run', async () => (await write(second, { key: 'taken' })).status === 200);
  for (const answer of answers) answer.end('late');
  t.equal((await taken.readResponse())?.text, 'late', 'the real answer in any case');
  t.equal((await lost.readResponse())?.text, 'late');
  const count = async (result: string): Promise<number> =>
    first.metric(`sallyport_reservations_total{result="${result}"}`);
  await until('both to be counted', async () => (await count('fenced')) === 1 && (await count('repaired')) === 1);
  t.equal((await write(second, { key: 'lost' })).text, 'late', 'the other is as if nothing had been');
  const isAlarmed = (text: RegExp): boolean =>
    first
      .logs()
      .some(({ level, msg, what_to_do: toDo }) => level === 'error' && text.test(String(msg)) && toDo !== undefined);
  await until('the alarms', () => isAlarmed(/a write ran twice/) && isAlarmed(/had lost a reservation/));
});

t.test('after a fail-over single-use tokens issued before it are refused', async (t) => {
  const shared = await shareRedis(t);
  const address = await shared.startRelay();
  const replica = await startReplica(t, shared.redis.port);
  const proxy = await shared.startProxy(address);
  await singlePasses(proxy);
  t.equal((await write(proxy, { path: '/single', claims: { jti: 'before' } })).status, 200);
  await shared.redis.kill();
  await replica.client.call('replicaof', 'no', 'one');
  address.leadTo(replica.port);
  const iat = Math.floor(Date.now() / 1000) - 60;
  await until(
    'the fail-over to be seen',
    async () => (await write(proxy, { path: '/single', claims: { iat } })).status === 401,
  );
  await until('other writes to go on', async () => (await write(proxy)).status === 200);
});
