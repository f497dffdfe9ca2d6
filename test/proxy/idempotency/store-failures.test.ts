import t from 'tap';
import { until } from '../../support/until.js';
import { answerLost, commandLost, down, gate, type Fault } from './faulty-store.js';
import { startReservingProxy } from './reserving-proxy.js';

t.test('a store that does not answer a reserve: 503, nothing is sent', async (t) => {
  const proxy = await startReservingProxy(t);
  const faults: readonly (readonly [string, Fault])[] = [
    ['down', down],
    ['answer-lost', answerLost],
    ['command-lost', commandLost],
  ];
  for (const [name, fault] of faults) {
    proxy.store.behave('reserve', fault);
    const refused = await proxy.write({ key: name });
    t.equal(refused.status, 503, name);
    t.equal(refused.field('Retry-After'), '1');
    t.match(JSON.parse(refused.text), { type: 'urn:sallyport:store-unavailable' });
    proxy.store.behave('reserve', null);
    await until('it to be over', proxy.isIdle);
    const retry = await proxy.write({ key: name });
    t.equal(retry.status, 200, 'a retry runs');
    t.equal(retry.field('Idempotent-Replayed'), null);
  }
  t.equal(proxy.executions().length, 3);
  t.same(
    proxy.store.calls.filter((call) => call === 'release').length,
    2,
    'what may have run is released by its attempt, what has not is not',
  );
});

t.test('a release that the store does not take is tried again until it does', async (t) => {
  const proxy = await startReservingProxy(t);
  proxy.store.behave('reserve', answerLost);
  proxy.store.behave('release', down);
  t.equal((await proxy.write({ key: 'k' })).status, 503);
  proxy.store.behave('reserve', null);
  t.equal((await proxy.write({ key: 'k' })).status, 409, 'as far as the store knows it is under way');
  await until('a second try', () => proxy.store.callsOf('release') >= 2);
  proxy.store.behave('release', null);
  await until('the release', () => proxy.results.includes('released'));
  t.equal((await proxy.write({ key: 'k' })).status, 200);
});

t.test('a store lost before the result is written: the caller gets it, the store later', async (t) => {
  const proxy = await startReservingProxy(t);
  for (const [name, fault] of [
    ['down', down],
    ['lost', commandLost],
    ['ran', answerLost],
  ] as const) {
    const before = proxy.executions().length;
    proxy.store.behave('complete', fault);
    const first = await proxy.write({ key: name });
    t.equal(first.status, 200, 'the real answer');
    if (name !== 'ran') t.equal((await proxy.write({ key: name })).status, 409, 'meanwhile it is in progress');
    const tries = proxy.store.callsOf('complete');
    await until('another try', () => proxy.store.callsOf('complete') > tries);
    proxy.store.behave('complete', null);
    const done = proxy.results.filter((result) => result === 'completed').length;
    await until(
      'the completion',
      () => proxy.results.filter((result) => result === 'completed').length > done || name === 'ran',
    );
    const retry = await proxy.write({ key: name });
    t.equal(retry.text, first.text);
    t.equal(retry.field('Idempotent-Replayed'), 'true');
    t.equal(proxy.executions().length - before, 1);
  }
});

t.test('store before replying: the caller hears nothing until its result is kept', async (t) => {
  const proxy = await startReservingProxy(t);
  const held = gate();
  proxy.store.behave('complete', held.fault);
  let answered = false;
  const answer = proxy.write({ key: 'k' }).then((response) => {
    answered = true;
    return response;
  });
  await until('the result to be written', () => held.waiting() === 1);
  // A request that came later is served meanwhile.
  await proxy.write({ path: '/plain', key: null });
  t.equal(answered, false);
  held.open();
  t.equal((await answer).status, 200);
});

t.test(
  'a record that the store lost is written anew, told and counted; one that another took is alarmed',
  async (t) => {
    const proxy = await startReservingProxy(t);
    const held = gate();
    proxy.store.behave('complete', held.fault);
    const answer = proxy.write({ key: 'lost' });
    await until('the result to be written', () => held.waiting() === 1);
    // The lease and the retention are over, as for a store that was emptied.
    proxy.clock.step(25 * 3_600_000);
    held.open();
    t.equal((await answer).status, 200);
    t.same(proxy.results, ['acquired', 'repaired']);
    t.match(proxy.logged, [
      { level: 'error', message: /lost a reservation/, fields: { record: /\./, what_to_do: /persistence/ } },
    ]);

    const second = gate();
    proxy.store.behave('complete', second.fault);
    const overtaken = proxy.write({ key: 'fenced', claims: tokenOf(proxy.clock.now()) });
    await until('the result to be written', () => second.waiting() === 1);
    proxy.clock.step(25 * 3_600_000);
    proxy.store.behave('complete', null);
    t.equal(
      (await proxy.write({ key: 'fenced', claims: tokenOf(proxy.clock.now()) })).status,
      200,
      'the store knows nothing of it',
    );
    second.open();
    t.equal((await overtaken).status, 200, 'the real answer in any case');
    t.same(proxy.results.slice(2), ['acquired', 'acquired', 'completed', 'fenced']);
    t.match(proxy.logged.at(-1), { level: 'error', message: /ran twice/ });
  },
);

t.test('a store that is full refuses, and evicts nothing', async (t) => {
  const proxy = await startReservingProxy(t, { limits: { maxEntries: 2, maxBytes: 1_000_000 } });
  t.equal((await proxy.write({ key: 'a' })).status, 200);
  t.equal((await proxy.write({ key: 'b' })).status, 200);
  t.equal((await proxy.write({ key: 'c' })).status, 503);
  t.equal((await proxy.write({ key: 'a' })).field('Idempotent-Replayed'), 'true');
  t.equal(proxy.executions().length, 2);
});

function tokenOf(nowMs: number): { readonly iat: number; readonly exp: number } {
  const nowS = Math.floor(nowMs / 1000);
  return { iat: nowS, exp: nowS + 300 };
}
