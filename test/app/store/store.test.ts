import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import type { RawResponse } from '../../support/raw-client.js';
import { freePort } from '../../support/listening.js';
import { startRedis } from '../../support/redis-server.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';
import { startInProcessProxy, startFrom, type InProcessProxy } from '../in-process-proxy.js';
import { redisStore, reservingRoutes } from './store-config.js';

let keys = 0;

function create(proxy: InProcessProxy, key = `key-${String((keys += 1))}`): Promise<RawResponse> {
  return proxy.request({ method: 'POST', path: '/orders', headers: { 'Idempotency-Key': key }, body: '{"item":1}' });
}

async function storeCheck(proxy: InProcessProxy): Promise<unknown> {
  const { status, checks } = JSON.parse((await proxy.admin('/readyz')).text) as {
    status: string;
    checks: readonly { name: string; status: string }[];
  };
  return { ready: status, store: checks.find(({ name }) => name === 'store')?.status };
}

t.test('a write sent twice runs once, in memory and in Redis', async (t) => {
  const redis = await startRedis(t);
  for (const [kind, store] of [
    ['memory', { store: { memory: {} } }],
    ['redis', redisStore(redis)],
  ] as const) {
    const proxy = await startInProcessProxy(t, { config: { ...store, routes: reservingRoutes } });
    await until('the store is up', () => proxy.app.status().store?.up);
    const first = await create(proxy, 'once');
    const second = await create(proxy, 'once');
    t.same([first.status, second.status], [200, 200], kind);
    t.equal(second.field('idempotent-replayed'), 'true', kind);
    t.equal(proxy.receiver.requests.length, 1, kind);
    t.match(proxy.app.status().store, { kind, up: true, problem: null }, kind);
    t.same(await storeCheck(proxy), { ready: 'ready', store: 'ok' }, kind);
    t.equal(await proxy.metric('sallyport_store_up'), 1, kind);
    t.equal(await proxy.metric('sallyport_reservations_total{result="acquired"}'), 1, kind);
    t.equal(await proxy.metric('sallyport_reservations_total{result="replayed"}'), 1, kind);
    t.equal(await proxy.metric('sallyport_store_duration_seconds_count{operation="reserve"}'), 2, kind);
    await proxy.app.stop();
  }
});

t.test('it starts without Redis, answers 503 until it was read what is revoked, and heals by itself', async (t) => {
  const port = await freePort();
  const proxy = await startInProcessProxy(t, {
    config: { ...redisStore({ port }), routes: reservingRoutes },
    ready: false,
  });
  await until(
    'it has its keys',
    () => proxy.app.readiness().checks.find(({ name }) => name === 'keys')?.status === 'ok',
  );
  const refused = await create(proxy);
  t.equal(refused.status, 503);
  t.match(refused.text, /store-unavailable/);
  t.match(refused.field('retry-after'), /^\d+$/);
  t.equal(proxy.receiver.requests.length, 0);
  t.equal((await proxy.request({ method: 'POST', path: '/plain', body: 'x' })).status, 503);
  t.same(await storeCheck(proxy), { ready: 'unavailable', store: 'failed' });
  t.equal((await proxy.admin('/readyz')).status, 503, 'what is revoked was never read');
  t.match(proxy.app.status().store, { kind: 'redis', up: false, problem: /ECONNREFUSED/ });
  t.equal(await proxy.metric('sallyport_store_up'), 0);
  await startRedis(t, [], { port });
  await until('it is ready', async () => (await proxy.admin('/readyz')).status === 200);
  await until('the store is up', () => proxy.app.status().store?.up);
  t.equal((await create(proxy)).status, 200);
  t.equal((await proxy.request({ method: 'POST', path: '/plain', body: 'x' })).status, 200);
  t.same(await storeCheck(proxy), { ready: 'ready', store: 'ok' });
});

t.test(
  'where it need not know what is revoked, it answers 503 to what has to be reserved and to nothing else',
  async (t) => {
    const config = {
      ...redisStore({ port: await freePort() }, { start_without_revocations: true }),
      routes: reservingRoutes,
    };
    const proxy = await startInProcessProxy(t, { config, ready: false });
    await until('it is ready', async () => (await proxy.admin('/readyz')).status === 200);
    t.equal((await create(proxy)).status, 503);
    t.equal(proxy.receiver.requests.length, 0);
    t.equal((await proxy.request({ method: 'POST', path: '/plain', body: 'x' })).status, 200);
    t.same(await storeCheck(proxy), { ready: 'degraded', store: 'failed' });
  },
);

t.test('it goes on without Redis, and heals', async (t) => {
  const redis = await startRedis(t);
  const proxy = await startInProcessProxy(t, { config: { ...redisStore(redis), routes: reservingRoutes } });
  await until('the store is up', () => proxy.app.status().store?.up);
  t.equal((await create(proxy)).status, 200);
  await redis.kill();
  await until('the store is seen to be away', () => proxy.app.status().store?.up === false);
  t.equal((await create(proxy)).status, 503);
  await redis.restart();
  await until('the store is up again', () => proxy.app.status().store?.up);
  t.equal((await create(proxy)).status, 200);
  await until('the restart is counted', async () => (await proxy.metric('sallyport_store_failovers_total')) === 1);
});

t.test('settings that can forget end the start, with the fix', async (t) => {
  const rows = [
    {
      name: 'eviction',
      args: ['--maxmemory-policy', 'allkeys-lru'],
      message: /^store\.redis: .*maxmemory-policy is allkeys-lru.*set maxmemory-policy noeviction/,
    },
    {
      name: 'no persistence',
      args: ['--appendonly', 'no'],
      message: /^store\.redis: .*no append-only file and no replica.*set appendonly yes/,
    },
  ];
  for (const { name, args, message } of rows) {
    const redis = await startRedis(t, args);
    const file = join(tempDir(t), 'sallyport.yaml');
    writeFileSync(file, baseConfig({ ...redisStore(redis), routes: reservingRoutes }));
    const { started, logs } = await startFrom(t, file);
    if (started.ok) {
      t.fail(`${name}: started`);
      continue;
    }
    t.equal(started.error.kind, 'invalid', name);
    t.match(started.error.messages.join('\n'), message, name);
    t.notOk(
      logs().some(({ msg }) => msg === 'listening'),
      `${name}: nobody was let in`,
    );
    const clients = (): Promise<boolean> =>
      redis.client.client('LIST').then((list) => String(list).trim().split('\n').length === 1);
    await until(`${name}: the connection to Redis is closed`, clients);
    writeFileSync(file, baseConfig({ ...redisStore(redis, { durability: 'none' }), routes: reservingRoutes }));
    t.ok((await startFrom(t, file)).started.ok, `${name}: written down, it starts`);
  }
});

t.test('files of the store that keep it from starting', async (t) => {
  const c = certificates(t);
  const tls = (file: string): ConfigTree => ({
    store: { redis: { url: 'rediss://127.0.0.1:1', tls: { ca_file: file } } },
  });
  const password = join(tempDir(t), 'password');
  writeFileSync(password, 'x'.repeat(4_097));
  const rows: readonly { name: string; config: ConfigTree; kind: string; message: RegExp }[] = [
    {
      name: 'no password',
      config: redisStore({ port: 1 }, { password_file: '/none' }),
      kind: 'unreadable',
      message: /^\/none: does not exist$/,
    },
    {
      name: 'a directory',
      config: redisStore({ port: 1 }, { password_file: c.dir }),
      kind: 'unreadable',
      message: /is a directory$/,
    },
    {
      name: 'too long a password',
      config: redisStore({ port: 1 }, { password_file: password }),
      kind: 'unreadable',
      message: /larger/,
    },
    { name: 'no authorities', config: tls('/none.crt'), kind: 'unreadable', message: /^\/none\.crt: does not exist$/ },
    {
      name: 'authorities that are none',
      config: tls(c.server.keyFile),
      kind: 'invalid',
      message: /no PEM certificate/,
    },
  ];
  for (const { name, config, kind, message } of rows) {
    const file = join(tempDir(t), 'sallyport.yaml');
    writeFileSync(file, baseConfig({ ...config, routes: reservingRoutes }));
    const { started } = await startFrom(t, file);
    t.match(started, { ok: false, error: { kind, messages: [message] } }, name);
  }
});

t.test('Redis behind TLS, with a user of its own', async (t) => {
  const c = certificates(t);
  const tlsPort = await freePort();
  const redis = await startRedis(t, [
    '--tls-port',
    String(tlsPort),
    '--tls-cert-file',
    c.server.certFile,
    '--tls-key-file',
    c.server.keyFile,
    '--tls-auth-clients',
    'no',
    '--user',
    'sallyport',
    'on',
    '>hunter2',
    '~sallyport:*',
    '+@all',
  ]);
  t.ok(redis.port !== tlsPort);
  const password = join(tempDir(t), 'password');
  writeFileSync(password, 'hunter2\n');
  chmodSync(password, 0o600);
  const store = {
    redis: {
      url: `rediss://127.0.0.1:${String(tlsPort)}`,
      username: 'sallyport',
      password_file: password,
      reserve_timeout: '10s',
      tls: { ca_file: c.ca.certFile },
    },
  };
  const proxy = await startInProcessProxy(t, { config: { store, routes: reservingRoutes } });
  await until('the store is up', () => proxy.app.status().store?.up);
  t.equal((await create(proxy)).status, 200);
  const strange = { redis: { ...store.redis, tls: { ca_file: c.otherCa.certFile } } };
  const other = await startInProcessProxy(t, { config: { store: strange, routes: reservingRoutes }, ready: false });
  await until('the certificate is refused', () =>
    /certificate|self.signed|issuer/i.test(other.app.status().store?.problem ?? ''),
  );
  t.equal((await create(other)).status, 503);
  t.notMatch(JSON.stringify([proxy.logs(), other.logs(), other.app.status()]), /hunter2/);
});

t.test('a stop settles what is under way before the store is closed', async (t) => {
  const redis = await startRedis(t);
  const proxy = await startInProcessProxy(t, { config: { ...redisStore(redis), routes: reservingRoutes } });
  await until('the store is up', () => proxy.app.status().store?.up);
  let answer = (): void => undefined;
  proxy.receiver.behave((_req, res) => {
    answer = () => res.writeHead(201, { 'content-length': 2 }).end('ok');
  });
  const written = create(proxy, 'late');
  await until('the receiver has it', () => proxy.receiver.requests[0]?.complete === true);
  const stopped = proxy.app.stop();
  answer();
  t.equal((await written).status, 201);
  await stopped;
  const [key = ''] = await redis.client.keys('*:i:*');
  t.equal(await redis.client.hget(key, 's'), 'completed');
  const clients = (): Promise<boolean> =>
    redis.client.client('LIST').then((list) => String(list).trim().split('\n').length === 1);
  await until('the connection to Redis is closed', clients);
});
