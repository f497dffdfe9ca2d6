import { randomBytes } from 'node:crypto';
import t from 'tap';
import type { ReservationScope } from '../../../src/decision/idempotency/scope.js';
import type { ReservationStore } from '../../../src/ports/idempotency.js';
import { startRedis } from '../../support/redis-server.js';
import { storeContract } from '../store-contract.js';
import { acquire, freshScope, markOf, reserveOf } from '../store-commands.js';
import { openStore, redisSettings } from './redis-store.js';

t.test('the Redis store', async (t) => {
  const server = await startRedis(t);
  const { store, log, up } = openStore(t, redisSettings(server.port));
  await up();

  t.test('keeps the contract', (t) => {
    storeContract(t, () => store);
    t.end();
  });

  t.test('a record of another version is answered as unsupported and never overwritten', async (t) => {
    const scope = freshScope();
    const key = `sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`;
    await server.client.hset(key, { v: '2', s: 'pending', future: 'field' });
    const before = await server.client.hgetall(key);
    t.match(await store.reserve(scope, reserveOf('a', {}, 1_000)), { value: { reserved: { kind: 'unsupported' } } });
    t.same(
      await store.complete(scope, {
        attempt: 'a',
        fence: 1,
        fingerprint: 'f',
        state: 'completed',
        response: { status: 200, headers: [], body: Buffer.alloc(0) },
        retentionMs: 1_000,
      }),
      { ok: true, value: 'unsupported' },
    );
    t.same(await store.release(scope, { attempt: 'a' }), { ok: true, value: 'unsupported' });
    t.same(await store.mark(scope, markOf('a', 1)), { ok: true, value: 'unsupported' });
    t.same(await store.resolve(scope, 'committed'), { ok: true, value: 'unsupported' });
    t.same(await server.client.hgetall(key), before);
    t.equal(
      await server.client.exists(`sallyport:{${scope.principal}}:t:${scope.token ?? ''}`),
      0,
      'the token is not used up',
    );
  });

  t.test('no key is without an end', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store, scope, reserveOf('a', {}, 5_000));
    await store.mark(scope, markOf('a', fence));
    for (const key of await server.client.keys('*')) {
      if (key.includes('{')) {
        t.ok((await server.client.pttl(key)) > 0 || (await server.client.hexists(key, 'future')) === 1, key);
      }
    }
  });

  t.test('a flushed script cache costs one more round trip, not an error', async () => {
    await server.client.script('FLUSH');
    await acquire(store, freshScope(), reserveOf('a'));
  });

  t.test('256 KiB of any bytes come back as they were', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store, scope, reserveOf('a'));
    const body = randomBytes(256 * 1024);
    const headers = ['Link', `<${'x'.repeat(4_000)}>`, 'X-Latin', 'ÿ\u0001"\\'];
    await store.complete(scope, {
      attempt: 'a',
      fence,
      fingerprint: 'f',
      state: 'completed',
      response: { status: 203, headers, body },
      retentionMs: 60_000,
    });
    const again = await store.reserve(scope, reserveOf('b'));
    const reserved = again.ok ? again.value.reserved : null;
    if (reserved?.kind !== 'replayed') return t.fail(JSON.stringify(again).slice(0, 200));
    t.same([reserved.response.status, reserved.response.headers], [203, headers]);
    t.ok(body.equals(reserved.response.body));
    return undefined;
  });

  t.test('trailers come back, in a form that versions without them take for damage', async (t) => {
    const scope = { ...freshScope(), token: null };
    const fence = await acquire(store, scope, reserveOf('a'));
    const response = { status: 200, headers: ['ETag', '"1"'], body: Buffer.from('b'), trailers: ['grpc-status', '0'] };
    const command = { attempt: 'a', fence, fingerprint: 'f', state: 'completed', retentionMs: 60_000 } as const;
    await store.complete(scope, { ...command, response });
    t.match(await store.reserve(scope, { ...reserveOf('b'), markerTtlMs: null }), {
      value: { reserved: { kind: 'replayed', response } },
    });
    const kept = await server.client.hget(`sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`, 'h');
    const written = { fields: response.headers, trailers: response.trailers };
    t.same(JSON.parse(kept ?? ''), written, 'it was a list before there were trailers, and versions share a store');
  });

  t.test('a body that is part of a larger buffer is kept as that part', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store, scope, reserveOf('a'));
    const part = new Uint8Array([1, 2, 3, 4, 5]).subarray(1, 4);
    await store.complete(scope, {
      attempt: 'a',
      fence,
      fingerprint: 'f',
      state: 'completed',
      response: { status: 200, headers: [], body: part },
      retentionMs: 60_000,
    });
    t.match(await store.reserve(scope, reserveOf('b')), {
      value: { reserved: { response: { body: Buffer.from([2, 3, 4]) } } },
    });
  });

  t.test("guard fence: it grows with each takeover, even where the server's clock went back", async (t) => {
    const scope = { ...freshScope(), token: null };
    const fence = await acquire(store, scope, reserveOf('a'));
    await store.mark(scope, markOf('a', fence));
    const ahead = Date.now() + 3_600_000;
    await server.client.hset(`sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`, { f: String(ahead) });
    t.equal(await acquire(store, scope, reserveOf('b', { takesOver: true })), ahead + 1);
  });

  t.test("guard fence: it grows after a release, too, even where the server's clock went back", async (t) => {
    const scope = { ...freshScope(), token: null };
    const key = `sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`;
    await acquire(store, scope, reserveOf('a'));
    const ahead = Date.now() + 3_600_000;
    await server.client.hset(key, { f: String(ahead) });
    t.same(await store.release(scope, { attempt: 'a' }), { ok: true, value: 'released' });
    const leftMs = await server.client.pttl(key);
    t.ok(
      leftMs > 3_600_000 && leftMs <= 3_900_000,
      `kept until the clock is past it by five minutes: ${String(leftMs)}`,
    );
    t.equal(await acquire(store, scope, reserveOf('b')), ahead + 1);
    await server.client.hset(key, { f: '9007199254740990' });
    await store.release(scope, { attempt: 'b' });
    t.ok((await server.client.pttl(key)) <= 31 * 86_400_000 + 300_000, 'and not for ever, whatever a damaged one says');
  });

  t.test('a damaged record is refused or unsupported, never run again, and left as it is', async (t) => {
    const well = { v: '1', s: 'pending', fp: 'f', o: 'a', f: '7', c: '1', l: '99999999999999' };
    const damages: readonly { name: string; fields: Record<string, string>; missing?: string }[] = [
      { name: 'no version', fields: well, missing: 'v' },
      { name: 'an unknown state', fields: { ...well, s: 'done' } },
      { name: 'no state', fields: well, missing: 's' },
      { name: 'no fingerprint', fields: well, missing: 'fp' },
      { name: 'no owner', fields: well, missing: 'o' },
      { name: 'no fence', fields: well, missing: 'f' },
      { name: 'a fence that is no number', fields: { ...well, s: 'unknown', f: 'seven' } },
      { name: 'no lease', fields: well, missing: 'l' },
      { name: 'a lease that is no number', fields: { ...well, l: 'soon' } },
      { name: 'a result without a status', fields: { ...well, s: 'completed', h: '[]', b: '' } },
      { name: 'a result without headers', fields: { ...well, s: 'completed', st: '200', b: '' } },
      { name: 'a result with broken headers', fields: { ...well, s: 'completed', st: '200', h: '["a"', b: '' } },
      { name: 'a tombstone without a status', fields: { ...well, s: 'tombstone' } },
    ];
    for (const { name, fields, missing } of damages) {
      const scope = { ...freshScope(), token: null };
      const key = `sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`;
      await server.client.hset(key, Object.fromEntries(Object.entries(fields).filter(([field]) => field !== missing)));
      await server.client.pexpire(key, 60_000);
      const before = await server.client.hgetall(key);
      const answer = await store.reserve(scope, reserveOf('b', { takesOver: true }));
      const kind = answer.ok ? answer.value.reserved.kind : answer.error.kind;
      t.ok(kind === 'refused' || kind === 'unsupported', `${name}: ${kind}`);
      t.same(await server.client.hgetall(key), before, name);
    }
    t.equal(store.state().up, true, 'one record says nothing of the store');
    const told = log.lines.filter((line) => line.includes('unexpected data under our key prefix'));
    t.equal(told.length, 1, 'and it is told, once in a while');
    t.match(told[0], /"key":"sallyport:\{.{43}\}:i:.{43}/);
  });

  t.test('without a key there is no record: only the token is taken, and nothing is settled', async (t) => {
    const scope = { ...freshScope(), operation: null };
    const command = { attempt: 'a', key: null, markerTtlMs: 60_000 };
    t.match(await store.reserve(scope, command), { value: { reserved: { kind: 'acquired', takenOver: false } } });
    t.match(await store.reserve(scope, { ...command, attempt: 'b' }), {
      value: { reserved: { kind: 'token_replayed' } },
    });
    t.same(await store.release(scope, { attempt: 'a' }), { ok: true, value: 'released' });
    t.same(await store.mark(scope, markOf('a', 1)), { ok: true, value: 'kept' });
    t.same(await store.resolve(scope, 'committed'), { ok: true, value: 'absent' });
    t.same(await store.show(scope), { ok: true, value: null });
    const response = { status: 200, headers: [], body: Buffer.alloc(0) };
    const completion = {
      attempt: 'a',
      fence: 1,
      fingerprint: 'f',
      state: 'completed' as const,
      response,
      retentionMs: 1_000,
    };
    t.same(await store.complete(scope, completion), { ok: true, value: 'completed' });
    t.same(await server.client.keys(`*${scope.principal}*`), [`sallyport:{${scope.principal}}:t:${scope.token ?? ''}`]);
  });

  t.test('guard scope: another caller, operation or token finds nothing of it', async (t) => {
    const scope = freshScope();
    await acquire(store, scope, reserveOf('a', {}, 60_000));
    await acquire(store, { ...scope, principal: freshScope().principal }, reserveOf('b', {}, 60_000));
    await acquire(store, { ...scope, operation: freshScope().operation, token: null }, reserveOf('b'));
    t.match(await store.reserve({ ...scope, token: freshScope().token }, reserveOf('b', {}, 60_000)), {
      value: { reserved: { kind: 'in_progress' } },
    });
  });

  t.test('the keys are those that docs/storage.md names, and hold hashes only', async (t) => {
    const scope = freshScope();
    await acquire(store, scope, reserveOf('a', {}, 5_000));
    const tag = `sallyport:{${scope.principal}}`;
    t.same((await server.client.keys(`${tag}*`)).sort(), [
      `${tag}:i:${scope.operation ?? ''}`,
      `${tag}:t:${scope.token ?? ''}`,
    ]);
    t.same(Object.keys(await server.client.hgetall(`${tag}:i:${scope.operation ?? ''}`)).sort(), [
      'c',
      'f',
      'fp',
      'l',
      'o',
      'r',
      's',
      'to',
      'v',
    ]);
    t.equal(await server.client.get(`${tag}:t:${scope.token ?? ''}`), 'a');
  });

  t.test('a key of another type under our name is refused, not overwritten', async (t) => {
    const scope = freshScope();
    await server.client.set(`sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`, 'foreign');
    t.match(await store.reserve(scope, reserveOf('a')), { ok: false, error: { kind: 'refused' } });
  });

  t.test(
    'of what is not ours the log says the key and why; of what is ours, or of nothing, it says nothing',
    async (t) => {
      type Ask = (store: ReservationStore, scope: ReservationScope) => Promise<unknown>;
      const reserve: Ask = async (store, scope) => store.reserve(scope, reserveOf('b'));
      const release: Ask = async (store, scope) => store.release(scope, { attempt: 'b' });
      const show: Ask = async (store, scope) => store.show(scope);
      const newer = { v: '2', s: 'pending' };
      const broken = { v: '1', s: 'completed', fp: 'f', o: 'a', f: '7', c: '1', l: '1', st: '200', h: '["a"', b: '' };
      const unsupported = 'a record of another version, or a damaged one';
      const unexpected = 'the store answered with something unexpected';
      const cases: readonly {
        name: string;
        ask: Ask;
        held: Record<string, string> | string | null;
        answer: object;
        told: string | null;
      }[] = [
        {
          name: 'nothing there, reserved',
          ask: reserve,
          held: null,
          answer: { value: { reserved: { kind: 'acquired' } } },
          told: null,
        },
        { name: 'nothing there, released', ask: release, held: null, answer: { value: 'released' }, told: null },
        { name: 'nothing there, shown', ask: show, held: null, answer: { value: null }, told: null },
        {
          name: 'another version, reserved',
          ask: reserve,
          held: newer,
          answer: { value: { reserved: { kind: 'unsupported' } } },
          told: unsupported,
        },
        {
          name: 'another version, released',
          ask: release,
          held: newer,
          answer: { value: 'unsupported' },
          told: unsupported,
        },
        {
          name: 'a damaged result, replayed',
          ask: reserve,
          held: broken,
          told: unexpected,
          answer: { error: { kind: 'refused', reason: unexpected, mayHaveRun: true } },
        },
        {
          name: 'another type, released',
          ask: release,
          held: 'foreign',
          told: 'WRONGTYPE',
          answer: { error: { kind: 'refused', reason: /WRONGTYPE/, mayHaveRun: false } },
        },
      ];
      for (const { name, ask, held, answer, told } of cases) {
        // Each of its own: a store tells once in a while only.
        const { store, log, up } = openStore(t, redisSettings(server.port));
        await up();
        const scope = { ...freshScope(), token: null };
        const key = `sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`;
        if (typeof held === 'string') await server.client.set(key, held);
        else if (held !== null) await server.client.hset(key, held);
        t.match(await ask(store, scope), answer, name);
        const lines = log.lines.filter((line) => line.includes('unexpected data under our key prefix'));
        t.equal(lines.length, told === null ? 0 : 1, name);
        if (told !== null) {
          t.ok(
            lines[0]?.includes(`"key":"${key}"`) === true && lines[0].includes(told),
            `${name}: ${String(lines[0])}`,
          );
        }
      }
    },
  );
});
