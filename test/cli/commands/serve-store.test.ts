import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startRedis } from '../../support/redis-server.js';
import { startServe } from '../../support/serve-process.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { baseConfig, startProxyProcess } from '../../support/proxy-process.js';

t.test('settings of Redis that can forget end the start with 1 and their fix', async (t) => {
  const redis = await startRedis(t, ['--maxmemory-policy', 'volatile-ttl']);
  const file = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(file, baseConfig({ store: { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } } }));
  const serve = startServe(t, file);
  t.same(await serve.exited, { code: 1, signal: null });
  t.match(
    serve.output(),
    /^error: store\.redis: .*maxmemory-policy is volatile-ttl: .*set maxmemory-policy noeviction$/m,
  );
  const lines = serve
    .output()
    .split('\n')
    .filter((line) => line.includes('maxmemory-policy is volatile-ttl'));
  t.equal(lines.length, 2, 'said once to people');
  t.equal(lines.filter((line) => line.startsWith('{"level":"fatal"')).length, 1, 'and once in the log');
});

t.test('a new password is used at the next connect', async (t) => {
  const redis = await startRedis(t, ['--user', 'sallyport', 'on', '>first', '~sallyport:*', '+@all']);
  const password = join(tempDir(t), 'password');
  writeFileSync(password, 'first\n');
  chmodSync(password, 0o600);
  const route = {
    name: 'create',
    methods: ['POST'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: [],
    idempotency: 'required',
  };
  const proxy = await startProxyProcess(t, {
    config: {
      store: {
        redis: {
          url: `redis://127.0.0.1:${String(redis.port)}`,
          username: 'sallyport',
          password_file: password,
          reserve_timeout: '10s',
        },
      },
      routes: [route],
    },
  });
  const create = async (key: string): Promise<number> => {
    const headers = { ...proxy.authorization(), 'Idempotency-Key': key };
    return (await proxy.request({ method: 'POST', path: '/orders', headers, body: 'x' })).status;
  };
  await until('the store is up', async () => (await proxy.metric('sallyport_store_up')) === 1);
  t.equal(await create('a'), 200);
  await redis.client.call('ACL', 'SETUSER', 'sallyport', 'resetpass', '>second');
  await redis.client.call('CLIENT', 'KILL', 'USER', 'sallyport');
  await until('the old password is refused', async () => /WRONGPASS/.test((await proxy.admin('/status')).text));
  t.equal(await create('b'), 503);
  t.equal((await proxy.admin('/readyz')).status, 200, 'the other routes are served');
  writeFileSync(password, 'second');
  await until('the store is up again', async () => (await proxy.metric('sallyport_store_up')) === 1);
  t.equal(await create('b'), 200);
  t.notMatch(proxy.process.output(), /\bfirst\b|\bsecond\b/);
});
