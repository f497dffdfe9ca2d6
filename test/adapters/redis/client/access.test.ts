import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startRedis, startReplica, type RedisServer } from '../../../support/redis-server.js';
import { tempDir } from '../../../support/temp-dir.js';
import { until } from '../../../support/until.js';
import type { RedisSettings } from '../../../../src/adapters/redis/client/settings.js';
import { storeContract } from '../../store-contract.js';
import { acquire, freshScope, reserveOf } from '../../store-commands.js';
import { leastRights, openStore, redisSettings } from '../redis-store.js';

t.jobs = 4;

async function setUser(server: RedisServer, password: string, allowed: readonly string[] = leastRights): Promise<void> {
  await server.client.call('acl', 'setuser', 'sallyport', 'reset', 'on', `>${password}`, ...allowed);
}

function passwordFile(t: Test, text: string): string {
  const path = join(tempDir(t), 'password');
  writeFileSync(path, text);
  return path;
}

const inDatabase = (port: number, database: number): Pick<RedisSettings, 'topology'> => ({
  topology: { kind: 'single', host: '127.0.0.1', port, database },
});

t.test('a user with the rights that docs/storage.md lists, and no more, does everything', async (t) => {
  const server = await startRedis(t);
  await startReplica(t, server.port);
  await setUser(server, 'secret');
  const { store, up } = openStore(
    t,
    redisSettings(server.port, { username: 'sallyport', passwordFile: passwordFile(t, 'secret\n'), replicas: 1 }),
  );
  await up();
  await t.test('as the contract asks', (t) => {
    storeContract(t, () => store);
    t.end();
  });
  const foreign = openStore(
    t,
    redisSettings(server.port, { username: 'sallyport', passwordFile: passwordFile(t, 'secret'), prefix: 'other' }),
  );
  await foreign.up();
  t.match(await foreign.store.reserve(freshScope(), reserveOf('a')), {
    ok: false,
    error: { kind: 'refused', reason: /^NOPERM|keys mentioned/, mayHaveRun: false },
  });
});

t.test('a wrong password is told, never shown, and read again when it changes', async (t) => {
  const server = await startRedis(t);
  await setUser(server, 'right-one');
  const path = passwordFile(t, 'wrong-one');
  const { store, problem, up, log } = openStore(
    t,
    redisSettings(server.port, { username: 'sallyport', passwordFile: path }),
  );
  await problem(/WRONGPASS/);
  t.equal(store.verdict(), null);
  t.match(await store.reserve(freshScope(), reserveOf('a')), {
    ok: false,
    error: { kind: 'unreachable', mayHaveRun: false },
  });
  writeFileSync(path, 'right-one\r\n');
  await up();
  t.notMatch(log.lines.join('\n'), /wrong-one|right-one/);
});

t.test('a rotated password is read at the next connect', async (t) => {
  const server = await startRedis(t, ['--requirepass', 'first'], { client: { password: 'first' } });
  const path = passwordFile(t, 'first');
  const { store, up, problem } = openStore(t, redisSettings(server.port, { passwordFile: path }));
  await up();
  await server.client.config('SET', 'requirepass', 'second');
  await server.client.call('client', 'kill', 'type', 'normal', 'skipme', 'yes');
  await problem(/WRONGPASS/);
  rmSync(path);
  writeFileSync(path, 'second');
  await up();
  await acquire(store, freshScope(), reserveOf('a'));
});

t.test('no password where one is needed', async (t) => {
  const server = await startRedis(t, ['--requirepass', 'first'], { client: { password: 'first' } });
  for (const path of [null, join(tempDir(t), 'missing')]) {
    for (const database of [0, 3]) {
      const { problem } = openStore(
        t,
        redisSettings(server.port, { passwordFile: path, ...inDatabase(server.port, database) }),
      );
      await problem(/^NOAUTH/);
    }
  }
  t.pass();
});

const missing: readonly { name: string; right: string; replicas: number; problem: RegExp }[] = [
  { name: 'INFO', right: '+info', replicas: 0, problem: /does not say its version; allow INFO to the Redis user/ },
  { name: 'WAIT', right: '+wait', replicas: 1, problem: /NOPERM.*'wait'/ },
];

for (const { name, right, replicas, problem } of missing) {
  t.test(`a user without ${name} is told of before anything is written`, async (t) => {
    const server = await startRedis(t);
    await setUser(
      server,
      'secret',
      leastRights.filter((given) => given !== right),
    );
    const { problem: says } = openStore(
      t,
      redisSettings(server.port, { username: 'sallyport', passwordFile: passwordFile(t, 'secret'), replicas }),
    );
    await says(problem);
    t.pass();
  });
}

t.test('a user who may not use the database of the URL is told of, and nothing goes to another one', async (t) => {
  const server = await startRedis(t);
  await startReplica(t, server.port);
  await setUser(server, 'secret');
  const credential = { username: 'sallyport', passwordFile: passwordFile(t, 'secret') };
  const [alone, waiting] = [0, 1].map((replicas) =>
    openStore(t, redisSettings(server.port, { ...inDatabase(server.port, 3), ...credential, replicas })),
  );
  for (const opened of [alone, waiting]) {
    await opened?.problem(/^the Redis user may not use database 3; allow SELECT to it \(\+select\) \(NOPERM /);
    t.match(await opened?.store.reserve(freshScope(), reserveOf('a')), { ok: false, error: { mayHaveRun: false } });
    t.match(
      await opened?.store.unsettled.list({ inDoubtOnly: true, most: 1, onProgress: () => undefined }),
      { ok: false, error: { kind: 'refused', reason: /may not use database 3/ } },
      'who reads alone, too',
    );
  }
  t.equal(await server.client.dbsize(), 0);
  await setUser(server, 'secret', [...leastRights, '+select', '+scan']);
  for (const opened of [alone, waiting]) {
    await opened?.up();
    if (opened !== undefined) await acquire(opened.store, { ...freshScope(), token: null }, reserveOf('a'));
    t.match(await opened?.store.unsettled.list({ inDoubtOnly: false, most: 9, onProgress: () => undefined }), {
      ok: true,
    });
  }
  t.equal(await server.client.dbsize(), 0);
  await server.client.select(3);
  t.not(await server.client.dbsize(), 0);
  // The right is taken away again: who connects anew is told, too.
  await setUser(server, 'secret');
  await server.client.call('client', 'kill', 'type', 'normal', 'skipme', 'yes');
  await alone?.problem(/^the Redis user may not use database 3/);
});

t.test('a database that the server does not have is told of, as is a server that knows no SELECT', async (t) => {
  const server = await startRedis(t);
  const { store, problem } = openStore(t, redisSettings(server.port, inDatabase(server.port, 99)));
  await problem(/^the server does not let us into database 99; name one in store\.redis\.url that it has, .*\(ERR /);
  t.match(await store.reserve(freshScope(), reserveOf('a')), { ok: false, error: { mayHaveRun: false } });
  t.equal(await server.client.dbsize(), 0);
  const renamed = await startRedis(t, ['--rename-command', 'SELECT', 'CHOOSE']);
  const other = openStore(t, redisSettings(renamed.port, inDatabase(renamed.port, 3)));
  await other.problem(/^the server does not let us into database 3; .* where it knows no SELECT, name none \(ERR unk/);
});

t.test(
  'a user without a right that a script needs: refused, told, nothing left without an end; granted, the store is up',
  async (t) => {
    const server = await startRedis(t);
    await setUser(
      server,
      'secret',
      leastRights.filter((right) => right !== '+pexpire'),
    );
    const { store, up, problem } = openStore(
      t,
      redisSettings(server.port, { username: 'sallyport', passwordFile: passwordFile(t, 'secret') }),
    );
    await up();
    t.match(await store.reserve({ ...freshScope(), token: null }, reserveOf('a')), {
      ok: false,
      error: { kind: 'refused', mayHaveRun: false },
    });
    await problem(/user executing the script|ACL failure/);
    t.equal(await server.client.dbsize(), 0);
    await setUser(server, 'secret');
    await acquire(store, freshScope(), reserveOf('a'));
    await up();
  },
);

t.test('a reserve that fails in its middle burns no token and leaves no record', async (t) => {
  const server = await startRedis(t);
  for (const right of ['+pexpire', '+hset']) {
    await setUser(
      server,
      'secret',
      leastRights.filter((allowed) => allowed !== right),
    );
    const { store, up } = openStore(
      t,
      redisSettings(server.port, { username: 'sallyport', passwordFile: passwordFile(t, 'secret') }),
    );
    await up();
    const scope = { ...freshScope(), token: freshScope().token ?? 'token' };
    t.match(
      await store.reserve(scope, reserveOf('first', {}, 60_000)),
      { ok: false, error: { kind: 'refused', reason: /NOPERM|permission|can't run/i } },
      right,
    );
    t.same(
      (await server.client.keys('*')).filter((name) => !name.endsWith(':floor')),
      [],
      right,
    );
    await setUser(server, 'secret');
    await until('the same token to pass', async () => {
      const answer = await store.reserve(scope, reserveOf('second', {}, 60_000));
      return answer.ok && answer.value.reserved.kind === 'acquired';
    });
    await server.client.flushall();
  }
});
