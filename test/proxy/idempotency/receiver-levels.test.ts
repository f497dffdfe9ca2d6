import t from 'tap';
import { until } from '../../support/until.js';
import { answerLost, down, gate } from './faulty-store.js';
import { answering, recordOf, startReservingProxy } from './reserving-proxy.js';

t.test("level 1: the upstream's word beats the meaning of its status", async (t) => {
  const proxy = await startReservingProxy(t);
  const cases: readonly { readonly outcome: string | string[]; readonly status: number; readonly kept: boolean }[] = [
    { outcome: 'not-applied', status: 200, kept: false },
    { outcome: ' Not-Applied ', status: 500, kept: false },
    { outcome: 'committed', status: 429, kept: true },
    { outcome: ['not-applied', 'committed'], status: 200, kept: true },
    { outcome: 'unheard-of', status: 200, kept: true },
    { outcome: 'unheard-of', status: 429, kept: false },
  ];
  for (const [index, { outcome, status, kept }] of cases.entries()) {
    proxy.receiver.behave(answering(status, { 'Idempotency-Outcome': outcome }, 'word'));
    for (const path of ['/reports', '/deduplicates']) {
      const first = await proxy.write({ path, key: `word-${index}` });
      t.equal(first.status, status);
      t.equal(first.field('Idempotency-Outcome'), null, 'it is for us');
      const retry = await proxy.write({ path, key: `word-${index}` });
      t.equal(retry.field('Idempotent-Replayed') === 'true', kept, `${String(outcome)} ${status}`);
    }
  }
});

t.test(
  "a response that names another write is nobody's: it is not shown and not kept, and the write is in doubt",
  async (t) => {
    const proxy = await startReservingProxy(t);
    for (const path of ['/reports', '/deduplicates']) {
      for (const names of ['another', ['own', 'another'], 'OWN']) {
        const write = { path, key: `${path.slice(1)}-${String(names).replace(',', '-')}` };
        proxy.receiver.behave((req, res) => {
          const own = String(req.headers['idempotency-record']);
          const values = [names].flat().map((name) => name.replace('own', own).replace('OWN', `${own}.`));
          req
            .resume()
            .on('end', () =>
              res
                .writeHead(201, { 'Idempotency-Record': values, 'Idempotency-Outcome': 'not-applied' })
                .end('of another'),
            );
        });
        const first = await proxy.write(write);
        t.match(
          { status: first.status, text: first.text },
          { status: 502, text: /urn:sallyport:upstream-failed/ },
          `${path} ${String(names)}`,
        );
        t.notMatch(first.text, 'of another');
        t.equal((await proxy.record(recordOf(first)))?.state, 'unknown');
      }
    }
  },
);

t.test(
  'a response that names its own write is shown without the name; a plain upstream is not asked for one',
  async (t) => {
    const proxy = await startReservingProxy(t);
    for (const [path, name] of [
      ['/reports', 'own'],
      ['/deduplicates', 'own'],
      ['/orders', 'another'],
    ] as const) {
      proxy.receiver.behave((req, res) => {
        const record = name === 'own' ? String(req.headers['idempotency-record']) : name;
        req.resume().on('end', () => res.writeHead(201, { 'Idempotency-Record': record }).end('made'));
      });
      for (const replayed of [null, 'true']) {
        const answer = await proxy.write({ path, key: 'k' });
        t.match({ status: answer.status, text: answer.text }, { status: 201, text: 'made' }, path);
        t.equal(answer.field('Idempotent-Replayed'), replayed);
        t.equal(answer.field('Idempotency-Record'), null, 'it is for us');
      }
    }
  },
);

t.test('level 1: not-applied in the head of a response that is cut off is a sure release', async (t) => {
  const proxy = await startReservingProxy(t);
  proxy.receiver.behave((req) => {
    req
      .resume()
      .on('end', () =>
        req.socket.end('HTTP/1.1 500 No\r\nIdempotency-Outcome: not-applied\r\nContent-Length: 9\r\n\r\nabc'),
      );
  });
  t.equal((await proxy.write({ path: '/reports', key: 'k' })).status, 502);
  proxy.receiver.behave(null);
  t.equal((await proxy.write({ path: '/reports', key: 'k' })).status, 200);
});

t.test('level 2: a write in doubt is sent again, with a higher fence', async (t) => {
  const proxy = await startReservingProxy(t);
  const write = { path: '/deduplicates', key: 'k' };
  proxy.receiver.behave((req) => req.socket.destroy());
  t.equal((await proxy.write(write)).status, 502);
  proxy.receiver.behave(null);
  const second = await proxy.write(write);
  t.equal(second.status, 200);
  t.equal((await proxy.write(write)).field('Idempotent-Replayed'), 'true');
  const [lost, won] = proxy.receiver.requests;
  t.same(won?.field('Idempotency-Record'), lost?.field('Idempotency-Record'));
  t.ok(Number(won?.field('Idempotency-Fence')[0]) > Number(lost?.field('Idempotency-Fence')[0]));
  t.equal(proxy.receiver.requests.length, 2);
});

t.test('level 2: a takeover that was not dispatched, or not applied, leaves the first attempt in doubt', async (t) => {
  const proxy = await startReservingProxy(t, {
    config: { upstream: { connect_timeout: '1s', response_timeout: '30s' } },
  });
  const write = { path: '/deduplicates', key: 'k' };
  proxy.receiver.behave((req) => req.socket.destroy());
  const first = await proxy.write(write);
  const state = async (): Promise<string | undefined> => (await proxy.record(recordOf(first)))?.state;
  t.equal(await state(), 'unknown');

  const held = gate();
  proxy.store.behave('reserve', held.fault);
  const slept = proxy.write(write);
  await until('the store to be asked', () => held.waiting() === 1);
  proxy.clock.step(120_000);
  held.open();
  t.equal((await slept).status, 503);
  t.equal(await state(), 'unknown');

  proxy.store.behave('reserve', null);
  proxy.receiver.behave(answering(429, {}, 'not now'));
  t.equal((await proxy.write(write)).status, 429);
  t.equal(await state(), 'unknown');
  t.equal((await proxy.write({ ...write, body: 'other' })).status, 422, 'so the key is not free for another request');

  proxy.receiver.behave(answering(200, { 'Idempotency-Outcome': 'not-applied' }, 'never was'));
  t.equal((await proxy.write(write)).status, 200);
  t.equal(await state(), 'unknown', 'this attempt did nothing; of the first one that says nothing');

  proxy.receiver.behave(null);
  t.equal((await proxy.write(write)).status, 200);
  t.equal(await state(), 'completed');
});

t.test(
  'level 2: an attempt that was overtaken is not the result of the write: the next one has a higher fence and runs',
  async (t) => {
    const proxy = await startReservingProxy(t);
    const write = { path: '/deduplicates', key: 'k' };
    let lowest = Number.MAX_SAFE_INTEGER;
    proxy.receiver.behave((req, res) => {
      const fence = Number(req.headers['idempotency-fence']);
      const isOvertaken = fence <= lowest;
      lowest = Math.min(lowest, fence);
      req
        .resume()
        .on('end', () =>
          res
            .writeHead(isOvertaken ? 409 : 201, { 'Idempotency-Outcome': isOvertaken ? 'not-applied' : 'committed' })
            .end('word'),
        );
    });
    t.equal((await proxy.write(write)).status, 409, 'a later attempt was here, says the upstream');
    const run = await proxy.write(write);
    t.same([run.status, run.field('Idempotent-Replayed')], [201, null], 'within the same millisecond, too');
    t.same([(await proxy.write(write)).status, proxy.executions().length], [201, 2]);
  },
);

t.test('level 2: a takeover whose response is lost does not free the key: the write is in doubt again', async (t) => {
  const proxy = await startReservingProxy(t);
  const write = { path: '/deduplicates', key: 'k' };
  proxy.receiver.behave((req) => req.socket.destroy());
  const first = await proxy.write(write);
  proxy.store.behave('reserve', answerLost);
  t.equal((await proxy.write(write)).status, 503);
  proxy.store.behave('reserve', null);
  await until('the release', async () => (await proxy.record(recordOf(first)))?.state === 'unknown');
  proxy.receiver.behave(null);
  t.equal((await proxy.write({ ...write, body: 'other' })).status, 422);
  t.equal((await proxy.write(write)).status, 200);
});

t.test('level 2: a result that comes after a takeover is fenced, and no alarm: the upstream ran it once', async (t) => {
  const proxy = await startReservingProxy(t, {
    config: { upstream: { connect_timeout: '1s', response_timeout: '1s' } },
  });
  const write = { path: '/deduplicates', key: 'k' };
  const held = gate();
  proxy.store.behave('complete', held.fault);
  const first = proxy.write(write);
  await until('the result to be written', () => held.waiting() === 1);
  proxy.store.behave('complete', null);
  proxy.clock.step(120_000);
  t.equal((await proxy.write(write)).status, 200, 'the lease is over: it is taken over');
  held.open();
  t.equal((await first).status, 200);
  t.same(proxy.results, ['acquired', 'acquired', 'completed', 'fenced']);
  t.same(
    proxy.logged.map(({ level, message }) => [level, /runs it once/.test(message)]),
    [['warn', true]],
  );
});

t.test('on other levels a lease that is over is in doubt, for good', async (t) => {
  const proxy = await startReservingProxy(t);
  for (const path of ['/orders', '/reports']) {
    proxy.store.behaveAll(null);
    proxy.store.behave('reserve', answerLost);
    proxy.store.behave('release', down);
    t.equal((await proxy.write({ path, key: 'k' })).status, 503);
    proxy.store.behave('reserve', null);
    proxy.clock.step(120_000);
    t.match(JSON.parse((await proxy.write({ path, key: 'k' })).text), {
      type: 'urn:sallyport:idempotency-outcome-unknown',
    });
  }
  t.same(proxy.receiver.requests, []);
});
