import type { ServerResponse } from 'node:http';
import t from 'tap';
import { connectRaw, requestBytes } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { gate } from './faulty-store.js';
import { startReservingProxy, writeOf } from './reserving-proxy.js';

const unauthorized = '{"type":"about:blank","title":"Unauthorized","status":401}';

t.test('a single-use token passes once, for any request; its replay is a 401 like any other', async (t) => {
  const proxy = await startReservingProxy(t);
  const claims = { jti: 'once' };
  t.equal((await proxy.write({ path: '/single', key: null, claims })).status, 200);
  for (const input of [
    { path: '/single', key: null },
    { path: '/single', key: null, body: 'other' },
    { path: '/both', key: 'k' },
  ]) {
    const replay = await proxy.write({ ...input, claims });
    t.equal(replay.status, 401);
    t.equal(replay.text, unauthorized);
    t.equal(replay.field('WWW-Authenticate'), 'Bearer realm="sallyport"');
  }
  t.equal(proxy.executions().length, 1);
  const stranger = await proxy.write({ path: '/single', key: null, claims: { jti: 'once', sub: 'migration' } });
  t.equal(stranger.status, 200, "another subject's jti is another token");
  t.equal(proxy.counted.denials.filter((reason) => reason === 'token_replayed').length, 3);
});

t.test('where only the token is reserved, the upstream gets a record and a fence to keep with its write', async (t) => {
  const proxy = await startReservingProxy(t);
  const before = Date.now();
  await proxy.write({
    path: '/single',
    key: null,
    claims: { jti: 'one' },
    headers: { 'Idempotency-Record': 'forged', 'Idempotency-Fence': '1' },
  });
  await proxy.write({ path: '/single', key: null, claims: { jti: 'two' } });
  await proxy.write({ path: '/single', key: null, claims: { jti: 'one', sub: 'migration' } });
  const told = proxy.executions();
  const records = told.map((execution) => execution.field('Idempotency-Record'));
  for (const record of records) t.match(record, [/^[\w-]{43}\.[\w-]{43}$/]);
  t.equal(new Set(records.flat()).size, 3, 'no two tokens have the same one');
  for (const execution of told) {
    t.ok(Number(execution.field('Idempotency-Fence')[0]) >= before, 'the time of the store');
  }
  await until('their records', () => proxy.records.length === 3);
  t.same(
    proxy.records.map(({ record }) => [record]),
    records,
    'the log has the same name',
  );
});

t.test(
  'where only the token is reserved and the store forgets it, the upstream still sees the same record, with a higher fence',
  async (t) => {
    const claims = { jti: 'forgotten' };
    const first = await startReservingProxy(t);
    await first.write({ path: '/single', key: null, claims });
    const second = await startReservingProxy(t);
    second.clock.step(1_000);
    await second.write({ path: '/single', key: null, claims });
    const [a, b] = [first.executions()[0], second.executions()[0]];
    t.same(b?.field('Idempotency-Record'), a?.field('Idempotency-Record'));
    t.ok(Number(b?.field('Idempotency-Fence')[0]) > Number(a?.field('Idempotency-Fence')[0]));
  },
);

t.test(
  'a token that was used once passes again on routes that are not single-use, before and after, until it expires',
  async (t) => {
    const proxy = await startReservingProxy(t);
    const claims = { jti: 'elsewhere', exp: Math.floor(Date.now() / 1000) + 60 };
    const used = async (path: string): Promise<number> =>
      (await proxy.write({ path, ...(path === '/orders' ? {} : { key: null }), claims })).status;
    t.equal(await used('/plain'), 200, 'before: that is no use of it');
    t.equal(await used('/single'), 200);
    for (const path of ['/plain', '/orders', '/plain', '/orders']) t.equal(await used(path), 200, `after, ${path}`);
    t.equal(await used('/single'), 401);
    proxy.clock.step(70_000);
    t.equal(await used('/plain'), 401, 'expired');
  },
);

t.test('a token without jti is 401 where it has to pass once', async (t) => {
  const proxy = await startReservingProxy(t);
  for (const path of ['/single', '/both']) {
    const answer = await proxy.write({ path, key: null, claims: { jti: undefined } });
    t.equal(answer.status, 401, 'before anything is said of a key');
    t.equal(answer.text, unauthorized);
  }
  t.same(proxy.store.calls, []);
  t.same(proxy.counted.denials, ['token_id_missing', 'token_id_missing']);
});

t.test('with a key: the same token again is 401, a new one gets the stored result', async (t) => {
  const proxy = await startReservingProxy(t);
  await proxy.write({ path: '/both', key: 'k', claims: { jti: 'a' } });
  t.equal((await proxy.write({ path: '/both', key: 'k', claims: { jti: 'a' } })).text, unauthorized);
  t.equal((await proxy.write({ path: '/both', key: 'k', claims: { jti: 'b' } })).field('Idempotent-Replayed'), 'true');
  t.equal((await proxy.write({ path: '/both', key: 'k', claims: { jti: 'b' } })).status, 401, 'which is used by that');
  t.equal(
    (await proxy.write({ path: '/both', key: 'k', body: 'other', claims: { jti: 'a' } })).status,
    401,
    'before anything is said of the key',
  );
  t.equal(proxy.executions().length, 1);
});

t.test('what is refused before it is reserved uses up nothing', async (t) => {
  const proxy = await startReservingProxy(t);
  const claims = { jti: 'spared' };
  t.equal((await proxy.write({ path: '/both', key: null, claims })).status, 400);
  t.equal((await proxy.write({ path: '/both', key: 'a b', claims })).status, 400);
  t.equal((await proxy.write({ path: '/both', claims: { ...claims, permissions: [] } })).status, 403);
  t.equal((await proxy.write({ path: '/both', claims, body: Buffer.alloc(1024 * 1024 + 1) })).status, 413);
  t.equal((await proxy.write({ path: '/both', claims })).status, 200);
});

t.test('of a hundred requests with one token one passes', async (t) => {
  const proxy = await startReservingProxy(t);
  const answers = await Promise.all(
    Array.from({ length: 100 }, async () => proxy.write({ path: '/single', key: null, claims: { jti: 'raced' } })),
  );
  t.equal(answers.filter(({ status }) => status === 200).length, 1);
  t.equal(answers.filter(({ status }) => status === 401).length, 99);
  t.equal(proxy.executions().length, 1);
});

t.test('a marker outlives the skew within which the token is accepted', async (t) => {
  const proxy = await startReservingProxy(t);
  const claims = { jti: 'skewed', exp: Math.floor(Date.now() / 1000) + 60 };
  t.equal((await proxy.write({ path: '/single', key: null, claims })).status, 200);
  proxy.clock.step(62_000);
  const late = await proxy.write({ path: '/single', key: null, claims });
  t.equal(late.status, 401);
  await until('its record', () => proxy.counted.denials.length === 1);
  t.same(proxy.counted.denials, ['token_replayed'], 'it is still accepted by its time, and refused for its use');
});

t.test('after a fail-over single-use tokens issued before it are refused; others are not', async (t) => {
  const proxy = await startReservingProxy(t);
  const nowS = Math.floor(Date.now() / 1000);
  proxy.store.floorS = nowS - 10;
  // The skew of the issuer's clock is 5 s.
  const cases = [
    [nowS - 11, 401],
    [nowS - 6, 401],
    [nowS - 5, 200],
    [undefined, 401],
  ] as const;
  for (const [iat, status] of cases) {
    t.equal(
      (await proxy.write({ path: '/single', key: null, claims: { jti: `at-${iat ?? 'never'}`, iat } })).status,
      status,
      String(iat),
    );
  }
  t.equal(
    (await proxy.write({ claims: { iat: nowS - 100 } })).status,
    200,
    'a route that is not single-use minds no floor',
  );
  t.same(proxy.counted.denials, ['issue_time_revoked', 'issue_time_revoked', 'issue_time_revoked']);
});

t.test('a fail-over while the store is asked refuses the token, and frees the key', async (t) => {
  const proxy = await startReservingProxy(t);
  const iat = Math.floor(Date.now() / 1000) - 20;
  for (const [index, input] of [
    { path: '/single', key: null },
    { path: '/both', key: 'k' },
  ].entries()) {
    const held = gate();
    proxy.store.floorS = null;
    proxy.store.behave('reserve', held.fault);
    const answer = proxy.write({ ...input, claims: { jti: `during-${index}`, iat } });
    await until('the store to be asked', () => held.waiting() === 1);
    proxy.store.floorS = iat + 10;
    held.open();
    t.equal((await answer).status, 401, input.path);
  }
  t.same(proxy.counted.denials, ['issue_time_revoked', 'issue_time_revoked']);
  t.same(proxy.executions(), []);
  t.equal(proxy.store.callsOf('release'), 1);
  proxy.store.behave('reserve', null);
  t.equal((await proxy.write({ path: '/both', key: 'k', claims: { jti: 'new' } })).status, 200, 'a new token runs it');
});

t.test('where only the token is reserved a response streams as it comes, and goes on without its caller', async (t) => {
  const proxy = await startReservingProxy(t);
  const answers: ServerResponse[] = [];
  proxy.receiver.behave((req, res) => {
    req.resume();
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.write('data: 1\n\n');
    answers.push(res);
  });
  const connection = await connectRaw(proxy.port);
  connection.write(
    requestBytes(proxy.port, writeOf(proxy, { path: '/single', key: null, claims: { jti: 'streamed' } })),
  );
  await until('the first event', () => connection.pending().includes('data: 1'));
  connection.end();
  await until('its record', () => proxy.records.length === 1);
  t.equal(proxy.server.counts().inFlight, 1);
  answers[0]?.write('data: 2\n\n');
  t.equal(answers[0]?.destroyed, false);
  answers[0]?.end();
  await until('it to be over', proxy.isIdle);
  t.equal(proxy.executions()[0]?.aborted, false);
});
