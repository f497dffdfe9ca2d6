import { writeFileSync } from 'node:fs';
import t from 'tap';
import { bulk, startFakeRedis } from '../../../support/fake-redis.js';
import { startRedis, startReplica } from '../../../support/redis-server.js';
import { startRelay } from '../../../support/tcp-relay.js';
import { until } from '../../../support/until.js';
import { acquire, freshScope, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';

t.jobs = 3;

const response = { status: 200, headers: [], body: Buffer.from('done') };

t.test(
  'an address that leads to the promoted replica: what it confirmed is there, and older single-use tokens are refused',
  async (t) => {
    const primary = await startRedis(t);
    const address = await startRelay(t, primary.port);
    const replica = await startReplica(t, primary.port);
    const { store, up, failovers } = openStore(t, redisSettings(address.port, { replicas: 1 }));
    await up();
    const scope = freshScope();
    t.match(await store.reserve(scope, reserveOf('a', {}, 60_000)), { ok: true, value: { confirmedReplicas: 1 } });
    t.equal(failovers(), 0);

    const before = Math.floor(Date.now() / 1000);
    await primary.kill();
    await replica.client.call('replicaof', 'no', 'one');
    await startReplica(t, replica.port);
    address.leadTo(replica.port);
    await until('the fail-over is seen', () => failovers() > 0);
    await up();
    t.ok((store.issuedBeforeFloorS() ?? 0) >= before);
    t.equal(failovers(), 1, 'told once, by however many connections it is seen');
    t.match(await store.reserve(scope, reserveOf('b')), { value: { reserved: { kind: 'in_progress' } } });
    t.match(
      await store.reserve(
        { ...freshScope(), principal: scope.principal, token: scope.token },
        reserveOf('b', {}, 60_000),
      ),
      { value: { reserved: { kind: 'token_replayed' } } },
    );
  },
);

t.test(
  'a reservation that the fail-over lost: its completion repairs it, unless somebody was faster, and then it is fenced',
  async (t) => {
    const primary = await startRedis(t);
    const address = await startRelay(t, primary.port);
    const link = await startRelay(t, primary.port);
    const replica = await startReplica(t, link.port);
    const { store, up, failovers } = openStore(t, redisSettings(address.port));
    await up();
    link.stall();
    const [lost, taken] = [freshScope(), freshScope()];
    const lostFence = await acquire(store, lost, reserveOf('a'));
    const takenFence = await acquire(store, taken, reserveOf('a'));
    await primary.kill();
    await replica.client.call('replicaof', 'no', 'one');
    address.leadTo(replica.port);
    await until('the fail-over is seen', () => failovers() === 1);
    await up();
    t.ok((await acquire(store, taken, reserveOf('b'))) > takenFence, 'fences grow all the same');
    const completion = { attempt: 'a', fingerprint: 'f', state: 'completed' as const, response, retentionMs: 60_000 };
    t.same(await store.complete(lost, { ...completion, fence: lostFence }), { ok: true, value: 'repaired' });
    t.same(await store.complete(taken, { ...completion, fence: takenFence }), { ok: true, value: 'fenced' });
  },
);

t.test('a Sentinel is asked for the primary, and asked again when the answer may have changed', async (t) => {
  const [first, second] = [await startRedis(t), await startRedis(t)];
  let primary = first.port;
  const questions: string[][] = [];
  const sentinel = await startFakeRedis(t, (command) => {
    questions.push([...command]);
    return `*2\r\n${bulk('127.0.0.1')}${bulk(String(primary))}`;
  });
  const nobody = await startFakeRedis(t, () => '-ERR unknown command\r\n');
  const { store, up, failovers } = openStore(
    t,
    redisSettings(0, {
      topology: {
        kind: 'sentinel',
        name: 'orders',
        nodes: [
          { host: '127.0.0.1', port: nobody.port },
          { host: '127.0.0.1', port: sentinel.port },
        ],
      },
    }),
  );
  await up();
  t.same(questions[0], ['sentinel', 'get-master-addr-by-name', 'orders']);
  const scope = freshScope();
  await acquire(store, scope, reserveOf('a'));
  primary = second.port;
  await until('the other primary is used', () => failovers() === 1);
  await up();
  await acquire(store, scope, reserveOf('b'));
  t.equal(await second.client.dbsize(), 2, 'the record, and that it was seen');
});

t.test('a Sentinel that asks for a password is told ours; one that does not is not', async (t) => {
  const server = await startRedis(t, ['--requirepass', 'secret'], { client: { password: 'secret' } });
  const path = `${server.dir}/password`;
  writeFileSync(path, 'secret');
  const address = `*2\r\n${bulk('127.0.0.1')}${bulk(String(server.port))}`;
  for (const asks of [true, false]) {
    const commands: string[] = [];
    let known = !asks;
    const sentinel = await startFakeRedis(t, (command) => {
      commands.push(command[0] ?? '');
      if (command[0] === 'auth') {
        known = true;
        return '+OK\r\n';
      }
      return known ? address : '-NOAUTH Authentication required.\r\n';
    });
    const { up } = openStore(
      t,
      redisSettings(0, {
        topology: { kind: 'sentinel', name: 'orders', nodes: [{ host: '127.0.0.1', port: sentinel.port }] },
        passwordFile: path,
      }),
    );
    await up();
    t.equal(commands.includes('auth'), asks);
  }
});

t.test('Sentinels that do not know the primary, or are gone: said so, and what was found stays', async (t) => {
  const server = await startRedis(t);
  let answer: string | null = '*-1\r\n';
  const sentinel = await startFakeRedis(t, () => answer);
  const { store, problem, up } = openStore(
    t,
    redisSettings(0, {
      topology: { kind: 'sentinel', name: 'orders', nodes: [{ host: '127.0.0.1', port: sentinel.port }] },
    }),
  );
  await problem(/knows no primary named orders/);
  t.match(await store.reserve(freshScope(), reserveOf('a')), {
    ok: false,
    error: { kind: 'unreachable', mayHaveRun: false },
  });
  answer = `*2\r\n${bulk('127.0.0.1')}${bulk(String(server.port))}`;
  await up();
  answer = null;
  await acquire(store, freshScope(), reserveOf('a'));
  answer = '-ERR broken\r\n';
  await acquire(store, freshScope(), reserveOf('a'));
  t.equal(store.state().up, true);
});
