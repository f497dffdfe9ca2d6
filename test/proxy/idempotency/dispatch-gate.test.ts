import type { ServerResponse } from 'node:http';
import t from 'tap';
import { accept } from '../../../src/lib/result.js';
import type { Revocations } from '../../../src/decision/route/policy.js';
import type { ReserveReply } from '../../../src/ports/idempotency.js';
import { revocations } from '../../decision/samples.js';
import type { RawResponse } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { gate, type Fault } from './faulty-store.js';
import { startReservingProxy, type ReservingProxy, type WriteInput } from './reserving-proxy.js';

/** Of the lease of 37 s plus 1 s to settle, the receiver may take 32 s. */
const timings = { upstream: { connect_timeout: '1s', response_timeout: '30s' } };

/** Sends a write and does something while the store is asked. */
async function meanwhile(proxy: ReservingProxy, input: WriteInput, change: () => void): Promise<RawResponse> {
  const held = gate();
  proxy.store.behave('reserve', held.fault);
  const answer = proxy.write(input);
  await until('the store to be asked', () => held.waiting() === 1);
  change();
  held.open();
  const response = await answer;
  proxy.store.behave('reserve', null);
  return response;
}

async function isFree(proxy: ReservingProxy, key: string): Promise<boolean> {
  return (await proxy.write({ key })).field('Idempotent-Replayed') === null;
}

t.test('a process that slept through its lease dispatches nothing', async (t) => {
  const proxy = await startReservingProxy(t, { config: timings });
  const sleeps: readonly { readonly ms: number; readonly how: 'step' | 'stepWall'; readonly status: number }[] = [
    { ms: 5_000, how: 'step', status: 200 },
    { ms: 6_000, how: 'step', status: 503 },
    { ms: 3_600_000, how: 'step', status: 503 },
    // A machine that is suspended keeps its monotonic clock still.
    { ms: 6_000, how: 'stepWall', status: 503 },
  ];
  for (const [index, { ms, how, status }] of sleeps.entries()) {
    const before = proxy.receiver.requests.length;
    const key = `slept-${index}`;
    // The token has to outlive the sleep: only the lease counts here.
    const nowS = Math.floor(proxy.clock.now() / 1000);
    const answer = await meanwhile(proxy, { key, claims: { iat: nowS, exp: nowS + 7_000 } }, () => {
      proxy.clock[how](ms);
    });
    t.equal(answer.status, status, `${how} ${ms}`);
    t.equal(proxy.receiver.requests.length - before, status === 200 ? 1 : 0);
    if (status === 503) t.match(JSON.parse(answer.text), { type: 'urn:sallyport:store-unavailable' });
  }
});

t.test('a machine that sleeps while a write waits for a connection sends nothing when it wakes', async (t) => {
  const proxy = await startReservingProxy(t, {
    config: { upstream: { connect_timeout: '20s', response_timeout: '30s', max_connections: 1 } },
  });
  for (const { ms, lifeS, status } of [
    { ms: 3_600_000, lifeS: 7_000, status: 503 },
    { ms: 40_000, lifeS: 20, status: 401 },
  ]) {
    const nowS = Math.floor(proxy.clock.now() / 1000);
    const lives = (seconds: number): Readonly<Record<string, number>> => ({ iat: nowS, exp: nowS + seconds });
    const held: ServerResponse[] = [];
    proxy.receiver.behave((req, res) => {
      req.resume().on('end', () => held.push(res));
    });
    const first = proxy.write({ key: `holds-${ms}`, claims: lives(7_000) });
    await until('the only connection to be taken', () => held.length === 1);
    const second = proxy.write({ key: `waits-${ms}`, claims: lives(lifeS) });
    await until('the second to wait', () => proxy.results.length === 2);
    proxy.clock.stepWall(ms);
    proxy.receiver.behave(null);
    held[0]?.end('done');
    t.equal((await first).status, 200);
    t.equal((await second).status, status);
    t.same(
      proxy.results.splice(0).sort(),
      ['acquired', 'acquired', 'completed', 'released'],
      'nothing was sent, be the lease over or not',
    );
  }
  t.equal(proxy.executions().length, 2);
});

t.test('in shadow mode a token that expires while its write waits for a connection passes as nobody', async (t) => {
  let listed: readonly Revocations[] = [];
  const proxy = await startReservingProxy(t, {
    config: { mode: 'shadow', upstream: { connect_timeout: '20s', response_timeout: '30s', max_connections: 1 } },
    listed: () => listed,
  });
  for (const { id, ms, isRevoked, status, decision, reason } of [
    { id: 'expires', ms: 40_000, isRevoked: false, status: 200, decision: 'shadow', reason: 'token_expired' },
    { id: 'revoked', ms: 0, isRevoked: true, status: 401, decision: 'denied', reason: 'subject_revoked' },
    { id: 'slept', ms: 3_600_000, isRevoked: false, status: 503, decision: 'failed', reason: 'store_unavailable' },
  ]) {
    const nowS = Math.floor(proxy.clock.now() / 1000);
    const held: ServerResponse[] = [];
    proxy.receiver.behave((req, res) => {
      req.resume().on('end', () => held.push(res));
    });
    const first = proxy.write({ key: `holds-${id}`, claims: { iat: nowS, exp: nowS + 7_000 } });
    await until('the only connection to be taken', () => held.length === 1);
    const second = proxy.write({
      key: id,
      claims: { sub: 'migration', iat: nowS, exp: nowS + 20 },
      headers: { 'X-Request-Id': id },
      body: id,
    });
    await until('the second to wait', () => proxy.results.filter((result) => result === 'acquired').length === 2);
    if (isRevoked) listed = [revocations({ subjects: new Set(['migration']) })];
    proxy.clock.stepWall(ms);
    proxy.receiver.behave(null);
    held[0]?.end('done');
    t.equal((await first).status, 200);
    t.equal((await second).status, status, id);
    listed = [];
    t.same(proxy.results.splice(0).sort(), ['acquired', 'acquired', 'completed', 'released'], id);
    const record = await proxy.recordOf(id);
    t.match(record, { decision, reason, status });
    const upstreamMs = record.upstream_ms ?? 0;
    t.ok(upstreamMs >= 0 && upstreamMs <= record.duration_ms, 'the time of the upstream, from the first asking on');
  }
  const passed = proxy.executions().filter(({ body }) => ['expires', 'revoked', 'slept'].includes(body.toString()));
  t.equal(passed.length, 1);
  for (const name of ['X-Auth-Subject', 'Idempotency-Record']) t.same(passed[0]?.field(name), [], name);
  await until('nothing is under way', proxy.isIdle);
});

t.test('a token that expires while the store is asked is 401, and the key is free', async (t) => {
  const proxy = await startReservingProxy(t, { config: timings });
  const nowS = Math.floor(proxy.clock.now() / 1000);
  // The lease leaves 6 s, the skew adds 5 s to the token.
  const answer = await meanwhile(proxy, { key: 'k', claims: { exp: nowS - 2 } }, () => {
    proxy.clock.step(4_500);
  });
  t.equal(answer.status, 401);
  t.same(proxy.counted.denials, ['token_expired']);
  t.same(proxy.results, ['acquired', 'released']);
  t.same(proxy.receiver.requests, []);
  t.ok(await isFree(proxy, 'k'));
});

t.test('a token that is revoked while the store is asked is 401, and the key is free', async (t) => {
  let listed: readonly Revocations[] = [];
  const proxy = await startReservingProxy(t, { listed: () => listed });
  const answer = await meanwhile(proxy, { key: 'k' }, () => {
    listed = [revocations({ subjects: new Set(['checkout']) })];
  });
  listed = [];
  t.equal(answer.status, 401);
  t.same(proxy.counted.denials, ['subject_revoked']);
  t.same(proxy.results, ['acquired', 'released']);
  t.same(proxy.receiver.requests, []);
  t.ok(await isFree(proxy, 'k'));
});

t.test('without enough replicas nothing is dispatched', async (t) => {
  const proxy = await startReservingProxy(t, { replicas: 2 });
  const confirmedBy =
    (confirmedReplicas: number | null): Fault =>
    async (run) => {
      const answer = (await run()) as { readonly ok: true; readonly value: ReserveReply };
      return accept({ ...answer.value, confirmedReplicas });
    };
  for (const [confirmed, status] of [
    [null, 503],
    [0, 503],
    [1, 503],
    [2, 200],
    [3, 200],
  ] as const) {
    proxy.store.behave('reserve', confirmedBy(confirmed));
    t.equal((await proxy.write({ key: `by-${String(confirmed)}` })).status, status, String(confirmed));
  }
  t.equal(proxy.shortfalls(), 3);
  t.equal(proxy.executions().length, 2);
  t.equal(proxy.results.filter((result) => result === 'released').length, 3);
});

t.test('a result that was kept is shown whatever the gate would say', async (t) => {
  const proxy = await startReservingProxy(t, { config: timings });
  await proxy.write({ key: 'k' });
  const answer = await meanwhile(proxy, { key: 'k' }, () => {
    proxy.clock.step(120_000);
  });
  t.equal(answer.field('Idempotent-Replayed'), 'true');
});
