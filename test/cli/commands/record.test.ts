import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createRedisStore } from '../../../src/adapters/redis/reservation-store.js';
import { run } from '../../../src/cli/program.js';
import { recordIdOf, scopeOf } from '../../../src/decision/idempotency/scope.js';
import type { ReservationStore } from '../../../src/ports/idempotency.js';
import { redisSettings, wallClock } from '../../adapters/redis/redis-store.js';
import { markOf } from '../../adapters/store-commands.js';
import { freePort } from '../../support/listening.js';
import { startRedis } from '../../support/redis-server.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { baseConfig } from '../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

const attempt = 'a'.repeat(22);
const body = Buffer.from('what only its caller may see');

function scope(key: string) {
  return scopeOf({
    principal: { kind: 'service', issuer: 'https://api.example.com', subject: 'checkout' },
    audience: 'orders',
    operation: 'create-order',
    key,
    tokenId: null,
  });
}

function idOf(key: string): string {
  return recordIdOf(scope(key)) ?? '';
}

/** A Redis with a record in each state, and the config that names it. */
async function setup(t: Scope) {
  const redis = await startRedis(t);
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const deps = { clock: wallClock, log, maxTokenLifetimeMs: () => 1, onFailover: () => undefined };
  const store: ReservationStore = createRedisStore(redisSettings(redis.port), deps);
  t.teardown(() => store.close());
  await until('the store is up', () => store.state().up);
  const take = async (key: string): Promise<number> => {
    const command = {
      attempt,
      markerTtlMs: null,
      withinMs: 10_000,
      key: { fingerprint: 'f', route: 'create-order', leaseMs: 3_600_000, retentionMs: 86_400_000, takesOver: false },
    };
    const answer = await store.reserve(scope(key), command);
    if (!answer.ok || answer.value.reserved.kind !== 'acquired') throw new Error(JSON.stringify(answer));
    return answer.value.reserved.fence;
  };
  await take('pending');
  const fence = await take('unknown');
  await store.mark(scope('unknown'), markOf(attempt, fence));
  const completed = { attempt, fence: await take('completed'), fingerprint: 'f', retentionMs: 86_400_000 };
  await store.complete(scope('completed'), {
    ...completed,
    state: 'completed',
    response: { status: 201, headers: ['X-Canary', 'canary'], body },
  });
  return { redis, store, fence, config: { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } } };
}

/** A record but for its end, which is worked out from the time it has left. */
async function stored(store: ReservationStore, key: string): Promise<object> {
  const shown = await store.show(scope(key));
  if (!shown.ok || shown.value === null) throw new Error(`no record: ${JSON.stringify(shown)}`);
  return { ...shown.value.record, expiresAtMs: null };
}

async function record(t: Scope, store: unknown, ...args: readonly string[]): Promise<CapturedIo> {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig({ store }));
  const io = captureIo({ cwd });
  await run(['record', '--config', 'sallyport.yaml', ...args], io);
  return io;
}

t.test('a record is shown, without what was answered', async (t) => {
  const { config, fence } = await setup(t);
  const unknown = await record(t, config, 'show', idOf('unknown'));
  t.equal(unknown.code(), 0, unknown.err());
  t.match(unknown.out(), /^record {6}[\w-]{43}\.[\w-]{43}$/m);
  t.match(
    unknown.out(),
    /^state {7}in doubt: nobody knows whether the write was applied; a retry gets 409 until it is resolved, or is sent again where the upstream deduplicates$/m,
  );
  t.match(unknown.out(), /^lease ends {2}\d{4}-.*Z, in 59 min$/m);
  t.match(unknown.out(), new RegExp(`^fence {7}${String(fence)}$`, 'm'));
  t.match(unknown.out(), new RegExp(`^owner {7}${attempt}$`, 'm'));
  const completed = await record(t, config, 'show', idOf('completed'), '--json');
  t.equal(completed.code(), 0);
  t.match(JSON.parse(completed.out()), {
    record: idOf('completed'),
    state: 'completed',
    version: 1,
    status: 201,
    owner: attempt,
    created_at: /^\d{4}-/,
    lease_ends_at: /^\d{4}-/,
    expires_at: /^\d{4}-/,
  });
  for (const io of [completed, await record(t, config, 'show', idOf('completed'))]) {
    t.notMatch(io.out() + io.err(), /canary|only its caller/i);
  }
  t.match((await record(t, config, 'show', idOf('pending'))).out(), /^state {7}in progress: /m);
});

t.test('a write in doubt is resolved, with a line that says who and why', async (t) => {
  const { config, store, fence } = await setup(t);
  const io = await record(
    t,
    config,
    'resolve',
    idOf('unknown'),
    '--outcome',
    'committed',
    '--reason',
    'order 17 is in the ledger',
  );
  t.equal(io.code(), 0, io.err());
  t.match(JSON.parse(io.out()), {
    audit: 'record resolve',
    time: /^\d{4}-.*Z$/,
    user: /./,
    outcome: 'committed',
    reason: 'order 17 is in the ledger',
    result: 'resolved',
    before: { record: idOf('unknown'), state: 'unknown', fence, owner: attempt },
  });
  t.match(await store.show(scope('unknown')), { ok: true, value: { record: { state: 'tombstone' } } });
  const again = await record(t, config, 'resolve', idOf('unknown'), '--outcome', 'not-applied', '--reason', 'x');
  t.equal(again.code(), 1, 'it is in doubt no more');
  t.match(JSON.parse(again.out()), { result: 'not_in_doubt' });
  t.match((await record(t, config, 'show', idOf('unknown'))).out(), /^status {6}not known$/m);
});

t.test('a write that was not applied is free again', async (t) => {
  const { config, store } = await setup(t);
  const io = await record(
    t,
    config,
    'resolve',
    idOf('unknown'),
    '--outcome',
    'not-applied',
    '--reason',
    'no such order',
  );
  t.equal(io.code(), 0, io.err());
  t.same(await store.show(scope('unknown')), { ok: true, value: null });
});

t.test('what is not in doubt, or not there, is left alone', async (t) => {
  const { config, store } = await setup(t);
  for (const key of ['pending', 'completed']) {
    const before = await stored(store, key);
    const io = await record(t, config, 'resolve', idOf(key), '--outcome', 'not-applied', '--reason', 'x');
    t.equal(io.code(), 1, key);
    t.match(io.err(), /not in doubt/);
    t.same(await stored(store, key), before, key);
  }
  const gone = await record(t, config, 'show', idOf('never'));
  t.equal(gone.code(), 1);
  t.match(gone.err(), /there is no record/);
  t.equal(gone.out(), '');
  const resolved = await record(t, config, 'resolve', idOf('never'), '--outcome', 'committed', '--reason', 'x');
  t.equal(resolved.code(), 1);
  t.match(JSON.parse(resolved.out()), { result: 'absent' });
});

t.test('it is shown and resolved where the server may forget: that makes nothing worse', async (t) => {
  const { config, redis } = await setup(t);
  await redis.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  t.equal((await record(t, config, 'show', idOf('unknown'))).code(), 0);
  t.equal((await record(t, config, 'resolve', idOf('unknown'), '--outcome', 'committed', '--reason', 'x')).code(), 0);
});

t.test('of a record that cannot be read nothing is asked, and nothing may have taken effect', async (t) => {
  const { config, redis } = await setup(t);
  await redis.client.hset(`sallyport:{${'p'.repeat(43)}}:i:${'o'.repeat(43)}`, { v: '2', s: 'unknown' });
  const id = `${'p'.repeat(43)}.${'o'.repeat(43)}`;
  const shown = await record(t, config, 'show', id);
  const resolved = await record(t, config, 'resolve', id, '--outcome', 'committed', '--reason', 'x');
  t.match(JSON.parse(resolved.out()), { result: 'not_asked', before: { record: id } });
  for (const io of [shown, resolved]) {
    t.equal(io.code(), 3);
    t.equal(io.err(), 'error: the store did not do it: a record of another version, or a damaged one\n');
  }
});

t.test('what is in doubt is listed, and with it what may be under way', async (t) => {
  const { config } = await setup(t);
  const inDoubt = await record(t, config, 'list', '--in-doubt');
  t.equal(inDoubt.code(), 0, inDoubt.err());
  t.equal(inDoubt.out().split('\n').length, 2, 'a line each');
  t.match(
    inDoubt.out(),
    new RegExp(`^${idOf('unknown')} {2}in doubt {2}created 0 s ago {2}expires in 1 d {2}route create-order$`, 'm'),
  );
  t.equal(inDoubt.err(), '1 in doubt, of 3 records\n');
  const all = await record(t, config, 'list');
  t.match(all.out(), new RegExp(`^${idOf('pending')} {2}in progress {2}created .* route create-order$`, 'm'));
  t.equal(all.err(), '2 unsettled, of 3 records\n');
  const json = await record(t, config, 'list', '--in-doubt', '--json');
  t.match(JSON.parse(json.out()), {
    records: [
      {
        record: idOf('unknown'),
        state: 'unknown',
        route: 'create-order',
        owner: attempt,
        taken_over: false,
        created_at: /Z$/,
        expires_at: /Z$/,
      },
    ],
    whole: true,
    keys: 3,
    unreadable: 0,
  });
  for (const io of [inDoubt, all, json]) {
    t.notMatch(io.out() + io.err(), /canary|only its caller|checkout/i, 'nothing of what was sent or answered');
  }
  const limited = await record(t, config, 'list', '--limit', '1');
  t.equal(limited.out().split('\n').length, 2);
  t.equal(limited.err(), 'there are more: the search ended at --limit 1\n');
});

t.test('an empty list is printed as empty; a list that cannot be read says why', async (t) => {
  const redis = await startRedis(t);
  const config = { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } };
  const none = await record(t, config, 'list', '--in-doubt');
  t.equal(none.code(), 0);
  t.equal(none.out(), '');
  t.equal(none.err(), 'none in doubt, of 0 records\n');
  t.same(JSON.parse((await record(t, config, 'list', '--json')).out()), {
    records: [],
    whole: true,
    keys: 0,
    unreadable: 0,
  });
  await redis.client.hset(`sallyport:{${'p'.repeat(43)}}:i:${'o'.repeat(43)}`, 's', 'unknown');
  t.match((await record(t, config, 'list')).err(), /^warning: 1 records could not be read: docs\/storage\.md/m);
  await redis.client.call('acl', 'setuser', 'default', '-scan');
  const refused = await record(t, config, 'list');
  t.equal(refused.code(), 3);
  t.match(
    refused.err(),
    /^error: the store could not be looked through: NOPERM .*\nits user needs the right \+scan for this command: docs\/storage\.md$/m,
  );
  const memory = await record(t, { memory: {} }, 'list');
  t.equal(memory.code(), 2);
  t.match(memory.err(), /in the memory of the proxy: nobody else sees them/);
});

t.test('a terminal is shown how far the search is', async (t) => {
  const { config } = await setup(t);
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig({ store: config }));
  const io = captureIo({ cwd });
  await run(['record', 'list'], { ...io, columns: () => 80 });
  t.match(io.err(), /\r\u001b\[K3 records looked at, 2 found\r\u001b\[K2 unsettled, of 3 records\n$/);
});

const usage: readonly { name: string; args: readonly string[]; message: RegExp }[] = [
  { name: 'no id', args: ['show'], message: /missing required argument 'id'/ },
  { name: 'a limit that is none', args: ['list', '--limit', '0'], message: /Allowed: a whole number from 1 to 100000/ },
  { name: 'an id that is none', args: ['show', 'abc'], message: /two parts of 43 characters/ },
  { name: 'another action', args: ['delete', idOf('x')], message: /unknown command 'delete'/ },
  {
    name: 'no outcome',
    args: ['resolve', idOf('x'), '--reason', 'x'],
    message: /required option '--outcome <outcome>' not specified/,
  },
  {
    name: 'no reason',
    args: ['resolve', idOf('x'), '--outcome', 'committed'],
    message: /required option '--reason <text>' not specified/,
  },
  {
    name: 'an empty reason',
    args: ['resolve', idOf('x'), '--outcome', 'committed', '--reason', ' '],
    message: /1 to 500 characters/,
  },
  {
    name: 'too long a reason',
    args: ['resolve', idOf('x'), '--outcome', 'committed', '--reason', 'x'.repeat(501)],
    message: /1 to 500 characters/,
  },
  {
    name: 'another outcome',
    args: ['resolve', idOf('x'), '--outcome', 'maybe', '--reason', 'x'],
    message: /Allowed choices are committed, not-applied/,
  },
];

t.test('wrong usage exits with 2', async (t) => {
  for (const { name, args, message } of usage) {
    const io = await record(t, { redis: { url: 'redis://127.0.0.1:1' } }, ...args);
    t.equal(io.code(), 2, name);
    t.match(io.err(), message, name);
    t.equal(io.out(), '', name);
  }
});

t.test('an id that begins with a dash is no option', async (t) => {
  const { config } = await setup(t);
  const id = `-h${'x'.repeat(41)}.${'y'.repeat(43)}`;
  for (const args of [
    ['show', id],
    ['show', id, '--json'],
    ['--json', 'show', id],
  ]) {
    const io = await record(t, config, ...args);
    t.equal(io.code(), 1, args.join(' '));
    t.match(io.err(), new RegExp(`^there is no record ${id}`));
  }
});

t.test('a store that nobody else sees, or that is not there', async (t) => {
  const memory = await record(t, { memory: {} }, 'show', idOf('x'));
  t.equal(memory.code(), 2);
  t.match(memory.err(), /in the memory of the proxy: nobody else sees them/);
  const none = await record(t, undefined, 'show', idOf('x'));
  t.equal(none.code(), 2);
  t.match(none.err(), /configures no store/);
  const missing = await record(
    t,
    { redis: { url: 'redis://127.0.0.1:1', password_file: '/nonexistent' } },
    'show',
    idOf('x'),
  );
  t.equal(missing.code(), 2);
  t.match(missing.err(), /^error: \/nonexistent: does not exist/);
  const away = await record(t, { redis: { url: `redis://127.0.0.1:${String(await freePort())}` } }, 'show', idOf('x'));
  t.equal(away.code(), 3);
  t.match(away.err(), /^error: the store is out of reach: .*ECONNREFUSED/);
});
