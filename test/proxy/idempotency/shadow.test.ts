import t from 'tap';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import { until } from '../../support/until.js';
import { startReservingProxy } from './reserving-proxy.js';

const config = { mode: 'shadow' };

t.test('what would be refused is not reserved: it runs as often as it comes', async (t) => {
  const proxy = await startReservingProxy(t, { config });
  for (const claims of [{ permissions: [] }, { sub: 'stranger' }, { exp: 1 }]) {
    for (let i = 0; i < 2; i += 1) t.equal((await proxy.write({ key: 'k', claims })).status, 200);
  }
  t.same(proxy.store.calls, []);
  t.equal(proxy.executions().length, 6);
  for (const received of proxy.executions()) {
    t.same(
      [received.field('Idempotency-Key'), received.field('Idempotency-Record'), received.field('X-Auth-Subject')],
      [['k'], [], []],
    );
  }
  t.equal((await proxy.write({ key: null, claims: { permissions: [] } })).status, 200, 'nor is a key asked for');
});

t.test('allowed writes are reserved as enforced', async (t) => {
  const proxy = await startReservingProxy(t, { config });
  await proxy.write({ key: 'k' });
  t.equal((await proxy.write({ key: 'k' })).field('Idempotent-Replayed'), 'true');
  t.equal((await proxy.write({ key: 'k', body: 'other' })).status, 422);
  t.equal((await proxy.write({ key: null })).status, 400);
  t.equal(proxy.executions().length, 1);
});

t.test('a used token, or one without an id, passes as nobody and unreserved', async (t) => {
  const proxy = await startReservingProxy(t, { config });
  const claims = { jti: 'once' };
  const first = await proxy.write({ path: '/single', key: null, claims });
  const replay = await proxy.write({ path: '/single', key: null, claims, headers: { 'X-Request-Id': 'replay' } });
  const inChunks = await proxy.write({
    path: '/both',
    key: 'k',
    claims,
    body: '3\r\nabc\r\n0\r\n\r\n',
    headers: { 'Transfer-Encoding': 'chunked', 'X-Request-Id': 'chunks' },
  });
  const without = await proxy.write({
    path: '/single',
    key: null,
    claims: { jti: undefined },
    headers: { 'X-Request-Id': 'without' },
  });
  t.same(
    [first, replay, inChunks, without].map(({ status }) => status),
    [200, 200, 200, 200],
  );
  const [one, two, three, four] = proxy.executions();
  t.same(one?.field('X-Auth-Subject'), ['checkout']);
  for (const received of [two, three, four]) {
    t.same(received?.field('X-Auth-Subject'), []);
    t.equal(received?.field('Authorization').length, 1, 'Authorization as it came');
    t.same(received?.field('Idempotency-Record'), []);
  }
  t.same([two?.body.toString(), three?.body.toString()], ['{"item":1}', 'abc']);
  t.same(three?.field('Content-Length'), ['3']);
  for (const id of ['replay', 'chunks']) {
    t.match(await proxy.recordOf(id), {
      decision: 'shadow',
      reason: 'token_replayed',
      subject: 'checkout',
      status: 200,
      record: null,
    });
  }
  t.match(await proxy.recordOf('without'), { decision: 'shadow', reason: 'token_id_missing', subject: 'checkout' });
  await until('nothing is under way', proxy.isIdle);
});

t.test('after a fail-over an earlier token passes unreserved, and a store that is away is 503 as ever', async (t) => {
  const proxy = await startReservingProxy(t, {
    config,
    watch: (store) => ({ ...store, issuedBeforeFloorS: () => Math.floor(Date.now() / 1000) + 1_000 }),
  });
  t.equal((await proxy.write({ path: '/single', key: null, claims: { jti: 'a' } })).status, 200);
  t.same(proxy.executions()[0]?.field('X-Auth-Subject'), []);
  const away = createMemoryStore({ now: Date.now, monotonic: () => performance.now() }, { maxEntries: 0, maxBytes: 0 });
  t.teardown(away.close);
  const full = await startReservingProxy(t, { config, watch: () => away });
  t.equal((await full.write()).status, 503);
  t.equal((await full.write({ claims: { permissions: [] } })).status, 200, 'what is not reserved needs no store');
});
