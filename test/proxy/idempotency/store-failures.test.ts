import t from 'tap';
import { until } from '../../support/until.js';
import { answerLost, commandLost, down, gate, type Fault } from './faulty-store.js';
import { startScene } from './scene.js';

t.test('a store that does not answer a reserve: 503, nothing is sent', async (t) => {
  const scene = await startScene(t);
  const faults: readonly (readonly [string, Fault])[] = [
    ['down', down],
    ['answer-lost', answerLost],
    ['command-lost', commandLost],
  ];
  for (const [name, fault] of faults) {
    scene.store.behave('reserve', fault);
    const refused = await scene.write({ key: name });
    t.equal(refused.status, 503, name);
    t.equal(refused.field('Retry-After'), '1');
    t.match(JSON.parse(refused.text), { type: 'urn:sallyport:store-unavailable' });
    scene.store.behave('reserve', null);
    await until('it to be over', scene.isIdle);
    const retry = await scene.write({ key: name });
    t.equal(retry.status, 200, 'a retry runs');
    t.equal(retry.field('Idempotent-Replayed'), null);
  }
  t.equal(scene.executions().length, 3);
  t.same(
    scene.store.calls.filter((call) => call === 'release').length,
    2,
    'what may have run is released by its attempt, what has not is not',
  );
});

t.test('a release that the store does not take is tried again until it does', async (t) => {
  const scene = await startScene(t);
  scene.store.behave('reserve', answerLost);
  scene.store.behave('release', down);
  t.equal((await scene.write({ key: 'k' })).status, 503);
  scene.store.behave('reserve', null);
  t.equal((await scene.write({ key: 'k' })).status, 409, 'as far as the store knows it is under way');
  await until('a second try', () => scene.store.callsOf('release') >= 2);
  scene.store.behave('release', null);
  await until('the release', () => scene.results.includes('released'));
  t.equal((await scene.write({ key: 'k' })).status, 200);
});

t.test('a store lost before the result is written: the caller gets it, the store later', async (t) => {
  const scene = await startScene(t);
  for (const [name, fault] of [
    ['down', down],
    ['lost', commandLost],
    ['ran', answerLost],
  ] as const) {
    const before = scene.executions().length;
    scene.store.behave('complete', fault);
    const first = await scene.write({ key: name });
    t.equal(first.status, 200, 'the real answer');
    if (name !== 'ran') t.equal((await scene.write({ key: name })).status, 409, 'meanwhile it is in progress');
    const tries = scene.store.callsOf('complete');
    await until('another try', () => scene.store.callsOf('complete') > tries);
    scene.store.behave('complete', null);
    const done = scene.results.filter((result) => result === 'completed').length;
    await until(
      'the completion',
      () => scene.results.filter((result) => result === 'completed').length > done || name === 'ran',
    );
    const retry = await scene.write({ key: name });
    t.equal(retry.text, first.text);
    t.equal(retry.field('Idempotent-Replayed'), 'true');
    t.equal(scene.executions().length - before, 1);
  }
});

t.test('store before replying: the caller hears nothing until its result is kept', async (t) => {
  const scene = await startScene(t);
  const held = gate();
  scene.store.behave('complete', held.fault);
  let answered = false;
  const answer = scene.write({ key: 'k' }).then((response) => {
    answered = true;
    return response;
  });
  await until('the result to be written', () => held.waiting() === 1);
  // A request that came later is served meanwhile.
  await scene.write({ path: '/plain', key: null });
  t.equal(answered, false);
  held.open();
  t.equal((await answer).status, 200);
});

t.test(
  'a record that the store lost is written anew, told and counted; one that another took is alarmed',
  async (t) => {
    const scene = await startScene(t);
    const held = gate();
    scene.store.behave('complete', held.fault);
    const answer = scene.write({ key: 'lost' });
    await until('the result to be written', () => held.waiting() === 1);
    // The lease and the retention are over, as for a store that was emptied.
    scene.clock.step(25 * 3_600_000);
    held.open();
    t.equal((await answer).status, 200);
    t.same(scene.results, ['acquired', 'repaired']);
    t.match(scene.logged, [
      { level: 'error', message: /lost a reservation/, fields: { record: /\./, what_to_do: /persistence/ } },
    ]);

    const second = gate();
    scene.store.behave('complete', second.fault);
    const overtaken = scene.write({ key: 'fenced', claims: tokenOf(scene.clock.now()) });
    await until('the result to be written', () => second.waiting() === 1);
    scene.clock.step(25 * 3_600_000);
    scene.store.behave('complete', null);
    t.equal(
      (await scene.write({ key: 'fenced', claims: tokenOf(scene.clock.now()) })).status,
      200,
      'the store knows nothing of it',
    );
    second.open();
    t.equal((await overtaken).status, 200, 'the real answer in any case');
    t.same(scene.results.slice(2), ['acquired', 'acquired', 'completed', 'fenced']);
    t.match(scene.logged.at(-1), { level: 'error', message: /ran twice/ });
  },
);

t.test('a store that is full refuses, and evicts nothing', async (t) => {
  const scene = await startScene(t, { limits: { maxEntries: 2, maxBytes: 1_000_000 } });
  t.equal((await scene.write({ key: 'a' })).status, 200);
  t.equal((await scene.write({ key: 'b' })).status, 200);
  t.equal((await scene.write({ key: 'c' })).status, 503);
  t.equal((await scene.write({ key: 'a' })).field('Idempotent-Replayed'), 'true');
  t.equal(scene.executions().length, 2);
});

function tokenOf(nowMs: number): { readonly iat: number; readonly exp: number } {
  const nowS = Math.floor(nowMs / 1000);
  return { iat: nowS, exp: nowS + 300 };
}
