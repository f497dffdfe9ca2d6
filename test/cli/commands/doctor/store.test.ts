import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { checkStore } from '../../../../src/cli/commands/doctor/store.js';
import { run } from '../../../../src/cli/program.js';
import type { RedisStoreSettings } from '../../../../src/config/types.js';
import { certificates } from '../../../support/certificates.js';
import { startJwksServer } from '../../../support/jwks-server.js';
import { rsaKey } from '../../../support/keys.js';
import { freePort, listen } from '../../../support/listening.js';
import { startUpstreamServer } from '../../../support/upstream-server.js';
import { startRedis, startReplica } from '../../../support/redis-server.js';
import { tempDir } from '../../../support/temp-dir.js';
import { baseConfig } from '../../../support/proxy-process.js';
import { until } from '../../../support/until.js';
import { captureIo } from '../../captured-io.js';

function settings(port: number, change: Partial<RedisStoreSettings> = {}): RedisStoreSettings {
  return {
    kind: 'redis',
    topology: { kind: 'single', host: '127.0.0.1', port, database: 0 },
    username: null,
    passwordFile: null,
    tls: null,
    prefix: 'sallyport',
    replicas: 0,
    reserveTimeoutMs: 10_000,
    settleTimeoutMs: 10_000,
    startsWithoutRevocations: false,
    keptPerCaller: null,
    durability: 'verified',
    ...change,
  };
}

t.test('a Redis that may keep reservations', async (t) => {
  const redis = await startRedis(t);
  const [server, time, revoked, ...others] = await checkStore(settings(redis.port));
  t.same(others, []);
  t.match(server, {
    level: 'ok',
    subject: 'store',
    what: /^127\.0\.0\.1:\d+: version \d+\.\d+\.\d+, 0 replicas, an append-only file$/,
  });
  t.match(time, {
    level: 'ok',
    subject: 'store time',
    what: /^answers in \d+\.\d ms at best; reserve_timeout is 10000 ms$/,
  });
  t.match(revoked, { level: 'ok', subject: 'revocations', what: '0 in the store; changes are told at once' });
  t.match(
    (await checkStore(settings(redis.port, { reserveTimeoutMs: 0 })))[1],
    { level: 'warning', fix: /reserve_timeout/ },
    'no time is left',
  );
  t.equal(await redis.client.dbsize(), 0, 'nothing was written');
  t.same(await checkStore(null), []);
  t.same(await checkStore({ kind: 'memory' }), []);
});

t.test(
  'a primary with more replicas than confirm is warned of: a planned fail-over can lose what was confirmed',
  async (t) => {
    const redis = await startRedis(t);
    await startReplica(t, redis.port);
    await startReplica(t, redis.port);
    await until(
      'the primary counts both',
      async () => (await redis.client.info('replication')).match(/state=online/g)?.length === 2,
    );
    const warned = (await checkStore(settings(redis.port, { replicas: 1 }))).filter(({ level }) => level === 'warning');
    t.match(warned, [
      {
        subject: 'store replicas',
        what: /: 2 replicas are connected, and 1 confirm: /,
        fix: /CLIENT PAUSE.*docs\/storage\.md/,
      },
    ]);
    t.equal(warned.length, 1);
    for (const replicas of [0, 2]) {
      const findings = await checkStore(settings(redis.port, { replicas }));
      t.notOk(
        findings.some(({ subject }) => subject === 'store replicas'),
        String(replicas),
      );
    }
  },
);

t.test('each thing that makes it unfit, with its fix', async (t) => {
  const redis = await startRedis(t, ['--maxmemory-policy', 'allkeys-lru', '--appendonly', 'no']);
  const findings = await checkStore(settings(redis.port, { replicas: 1 }));
  t.match(
    findings.map(({ level, what, fix }) => ({ level, what, fix })),
    [
      {
        level: 'problem',
        what: /: replicas connected: 0; store\.redis\.replicas asks for 1$/,
        fix: /connect more replicas/,
      },
      { level: 'problem', what: /: maxmemory-policy is allkeys-lru/, fix: 'set maxmemory-policy noeviction' },
      { level: 'problem', what: /: there is no append-only file and no replica/, fix: /set appendonly yes/ },
    ],
  );
  t.equal(
    findings.some(({ outOfReach }) => outOfReach),
    false,
  );
  t.match(
    await checkStore(settings(redis.port, { durability: 'none' })),
    [{ level: 'ok' }, { level: 'ok' }, { level: 'ok' }],
    'where that is written down',
  );
});

t.test('a Redis that is not reached', async (t) => {
  const c = certificates(t);
  const silent = (await listen(t, createServer())).port;
  const password = join(tempDir(t), 'password');
  writeFileSync(password, 'hunter2');
  const locked = await startRedis(t, ['--user', 'sallyport', 'on', '>another', '~*', '+@all']);
  const plain = await startRedis(t);
  const rows: readonly { name: string; store: RedisStoreSettings; what: RegExp }[] = [
    {
      name: 'no such database',
      store: settings(plain.port, {
        topology: { kind: 'single', host: '127.0.0.1', port: plain.port, database: 99 },
      }),
      what: /^not reached at .*: the server does not let us into database 99; name one in store\.redis\.url/,
    },
    {
      name: 'nobody listens',
      store: settings(await freePort()),
      what: /^not reached at 127\.0\.0\.1:\d+: .*ECONNREFUSED/,
    },
    { name: 'it says nothing', store: settings(silent), what: /^not reached at .*: no answer within 3000 ms$/ },
    {
      name: 'the wrong password',
      store: settings(locked.port, { username: 'sallyport', passwordFile: password }),
      what: /^not reached at .*WRONGPASS/,
    },
    {
      name: 'no TLS there',
      store: settings(locked.port, { tls: { caFile: c.ca.certFile, serverName: null } }),
      what: /^not reached at /,
    },
    {
      name: 'no Sentinel',
      store: settings(0, {
        topology: { kind: 'sentinel', name: 'main', nodes: [{ host: '127.0.0.1', port: await freePort() }] },
      }),
      what: /^no primary was found: ./,
    },
    {
      name: 'no Cluster',
      store: settings(0, { topology: { kind: 'cluster', nodes: [{ host: '127.0.0.1', port: locked.port }] } }),
      what: /^no primary was found: .*cluster support disabled/,
    },
  ];
  const found = await Promise.all(rows.map(({ store }) => checkStore(store)));
  for (const [index, { name, what }] of rows.entries()) {
    const finding = found[index]?.find(({ subject }) => subject === 'store');
    t.match(finding, { level: 'problem', outOfReach: true, what, fix: /store\.redis/ }, name);
    t.notMatch(JSON.stringify(finding), /hunter2/, name);
  }
});

t.test('a user without the rights', async (t) => {
  const redis = await startRedis(t, ['--user', 'reader', 'on', 'nopass', '~*', '+@connection', '+info', '+select']);
  t.match(await checkStore(settings(redis.port, { username: 'reader', passwordFile: emptyFile(t) })), [
    { subject: 'store password' },
    { level: 'ok', subject: 'store' },
    {
      level: 'problem',
      subject: 'store',
      outOfReach: false,
      what: /refuses what reservations need: .*NOPERM/,
      fix: /docs\/storage\.md/,
    },
  ]);
});

function emptyFile(t: { teardown: (close: () => unknown) => unknown }): string {
  const path = join(tempDir(t), 'any');
  writeFileSync(path, 'any');
  chmodSync(path, 0o600);
  return path;
}

t.test('each right that reservations need and the user lacks is named, and nothing is left behind', async (t) => {
  const redis = await startRedis(t, ['--user', 'sallyport', 'on', 'nopass', '~sallyport:*', '&sallyport:*', '+@all']);
  for (const [lacks, told] of [
    [['hset'], '+hset'],
    [['pexpire'], '+pexpire'],
    [['get'], '+get'],
    [['set'], '+set'],
    [['del'], '+del'],
    [['pttl'], '+pttl'],
    [['exists', 'hmget'], '+hmget +exists'],
    [['hset', 'pexpire', 'set'], '+set +pexpire +hset'],
  ] as const) {
    await redis.client.call('ACL', 'SETUSER', 'sallyport', '+@all', ...lacks.map((command) => `-${command}`));
    const asked = settings(redis.port, { username: 'sallyport', passwordFile: emptyFile(t) });
    const [, found, ...others] = await checkStore(asked);
    t.match(found, {
      level: 'problem',
      what: new RegExp(`need: its user lacks ${told.replaceAll('+', '\\+')}$`),
      fix: /docs\/storage\.md/,
    });
    t.same(others, []);
  }
  t.equal(await redis.client.dbsize(), 0);
});

t.test('the rights that revocations need', async (t) => {
  const rights = ['~sallyport:*', '+@all'];
  const redis = await startRedis(t, ['--user', 'sallyport', 'on', 'nopass', ...rights]);
  const check = async (...change: readonly string[]) => {
    await redis.client.call('ACL', 'SETUSER', 'sallyport', 'allchannels', '+@all', ...change);
    return (await checkStore(settings(redis.port, { username: 'sallyport', passwordFile: emptyFile(t) }))).find(
      ({ subject }) => subject === 'revocations',
    );
  };
  t.match(await check(), { level: 'ok' });
  for (const change of ['-subscribe', '-publish', 'resetchannels']) {
    t.match(await check(change), { level: 'warning', what: /passes no news on/, fix: /docs\/storage\.md/ }, change);
  }
  t.match(await check('-hgetall'), {
    level: 'problem',
    what: /no proxy gets ready: .*(NOPERM|permission|can't run)/,
    fix: /docs\/storage\.md/,
  });
  await redis.client.hset('sallyport:{revoked}:list', 'e:damaged', 'x');
  t.match(await check(), { level: 'problem', what: /^1 records cannot be read/, fix: /revoke --list/ });
});

t.test('doctor checks the modes of the files of the store', async (t) => {
  const path = emptyFile(t);
  chmodSync(path, 0o644);
  const [mode] = await checkStore(settings(1, { passwordFile: path }));
  t.match(mode, { level: 'warning', subject: 'store password', what: /every user of this machine/, fix: /chmod 600/ });
  const missing = await checkStore(settings(1, { passwordFile: '/nonexistent' }));
  t.match(missing, [
    { level: 'problem', subject: 'store password' },
    { level: 'problem', subject: 'store', what: '/nonexistent: does not exist' },
  ]);
});

t.test('it is part of what doctor says', async (t) => {
  const redis = await startRedis(t, ['--appendonly', 'no']);
  const jwks = await startJwksServer(t, { keys: [rsaKey()] });
  const receiver = await startUpstreamServer(t);
  const cwd = tempDir(t);
  const store = { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } };
  writeFileSync(
    join(cwd, 'sallyport.yaml'),
    baseConfig({ store, issuers: { core: { jwks_url: jwks.url } }, upstream: { url: receiver.url } }),
  );
  const io = captureIo({ cwd });
  await run(['doctor', '--config', 'sallyport.yaml'], io);
  t.equal(io.code(), 1);
  t.match(
    io.out(),
    /^problem: store: 127\.0\.0\.1:\d+: there is no append-only file and no replica: .*; fix: set appendonly yes, or connect a replica$/m,
  );
});
