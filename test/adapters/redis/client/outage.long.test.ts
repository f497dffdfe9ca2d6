import t from 'tap';
import { startRedis } from '../../../support/redis-server.js';
import { startRelay } from '../../../support/tcp-relay.js';
import { until } from '../../../support/until.js';
import { acquire, freshScope, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';

t.test('a connection that a network forgot is given up, and another one is made', async (t) => {
  const server = await startRedis(t);
  const relay = await startRelay(t, server.port);
  const { store, up } = openStore(t, redisSettings(relay.port, { reserveTimeoutMs: 200 }));
  await up();
  await acquire(store, freshScope(), reserveOf('a'));
  relay.forget();
  const connections = relay.accepted();
  await until('nobody waits for it', async () => !(await store.reserve(freshScope(), reserveOf('a'))).ok);
  await until('a new connection', () => relay.accepted() > connections);
  await up();
  await until('it works', async () => (await store.reserve(freshScope(), reserveOf('a'))).ok);
  t.pass();
});

t.test('a server that hangs for longer than anybody waits is used as soon as it goes on', async (t) => {
  const server = await startRedis(t);
  const { store, up, problem, log } = openStore(t, redisSettings(server.port, { reserveTimeoutMs: 200 }));
  await up();
  const floorS = store.issuedBeforeFloorS();
  server.freeze();
  t.teardown(server.thaw);
  await problem(/no answer/);
  t.match(await store.reserve(freshScope(), reserveOf('a')), { ok: false, error: { mayHaveRun: false } });
  server.thaw();
  await up();
  await acquire(store, freshScope(), reserveOf('a'));
  t.equal(store.issuedBeforeFloorS(), floorS, 'it is the same run');
  t.ok(log.lines.length < 10, log.lines.join('\n'));
});
