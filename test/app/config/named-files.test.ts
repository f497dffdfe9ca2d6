import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { freePort } from '../../support/listening.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import { startRedis } from '../../support/redis-server.js';
import { replaceFile } from '../../support/replace-file.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { startInProcessProxy } from '../in-process-proxy.js';
import { redisStore, reservingRoutes } from '../store/store-config.js';

t.test('another CA of the upstream is taken up without a signal', async (t) => {
  const c = certificates(t);
  const receiver = await startUpstreamServer(t, { tls: c.strangerServer });
  const proxy = await startInProcessProxy(t, {
    receiver,
    config: { upstream: { url: receiver.url, ca_file: c.ca.certFile } },
  });
  t.equal((await proxy.request({ path: '/orders' })).status, 503, 'a stranger');
  replaceFile(c.ca.certFile, 'no certificate');
  await until('it is refused', () => proxy.app.status().config.last_reload_error !== null);
  replaceFile(c.ca.certFile, `${c.ca.cert}${c.otherCa.cert}`);
  await until('the stranger is trusted', async () => (await proxy.request({ path: '/orders' })).status === 200);
  t.match(
    proxy.logs().find(({ changed }) => Array.isArray(changed) && changed.length > 0),
    { changed: ['upstream.ca_file'] },
  );
  t.equal(proxy.app.status().config.last_reload_error, null);
});

t.test('a file behind a placeholder is read again when it changes, as an edit of the config would be', async (t) => {
  const file = join(tempDir(t), 'subject');
  writeFileSync(file, 'checkout\n');
  const address = join(tempDir(t), 'address');
  writeFileSync(address, '192.0.2.1');
  const config = {
    listen: { trust_forwarded: [`\${file:${address}}`] },
    routes: [{ name: 'orders', methods: ['GET'], path: '/orders', subjects: [`\${file:${file}}`], permissions: [] }],
  };
  const proxy = await startInProcessProxy(t, { config });
  t.equal((await proxy.request({ path: '/orders' })).status, 200);
  replaceFile(file, 'reporting');
  await until('the other subject counts', async () => (await proxy.request({ path: '/orders' })).status === 403);
  t.same(proxy.app.status().restart_needed, []);
  replaceFile(address, '192.0.2.2');
  await until('it takes a restart', () => proxy.app.status().restart_needed.length > 0);
  t.same(proxy.app.status().restart_needed, ['listen.trust_forwarded']);
  proxy.rewrite({
    routes: [{ name: 'orders', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [] }],
  });
  await until('it is named no more', async () => (await proxy.request({ path: '/orders' })).status === 200);
  const reloads = proxy.app.status().counts.config_reloads.ok;
  replaceFile(file, 'nobody');
  await proxy.app.reload();
  t.equal(proxy.app.status().counts.config_reloads.ok, reloads + 1, 'and looked at no more');
});

t.test('another CA of Redis is taken up for connections to come', async (t) => {
  const c = certificates(t);
  const port = await freePort();
  const redis = await startRedis(
    t,
    [
      '--port',
      '0',
      '--tls-port',
      String(port),
      '--tls-cert-file',
      c.server.certFile,
      '--tls-key-file',
      c.server.keyFile,
      '--tls-ca-cert-file',
      c.ca.certFile,
      '--tls-auth-clients',
      'no',
    ],
    { port, client: { tls: { rejectUnauthorized: false } } },
  );
  await redis.client.connect().catch(() => undefined);
  const proxy = await startInProcessProxy(t, {
    config: {
      routes: reservingRoutes,
      ...redisStore({ port }, { url: `rediss://127.0.0.1:${String(port)}`, tls: { ca_file: c.ca.certFile } }),
    },
  });
  let count = 0;
  const write = async (): Promise<number> => {
    count += 1;
    return (
      await proxy.request({ method: 'POST', path: '/orders', headers: { 'Idempotency-Key': `"key-${String(count)}"` } })
    ).status;
  };
  t.equal(await write(), 200);
  await redis.client.config(
    'SET',
    'tls-key-file',
    c.strangerServer.keyFile,
    'tls-cert-file',
    c.strangerServer.certFile,
  );
  await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal');
  await until('the stranger is refused', async () => (await write()) === 503);
  replaceFile(c.ca.certFile, 'no certificate');
  await until('it is refused', () =>
    proxy.logs().some(({ msg }) => msg === 'the authorities of the store were not reloaded; the old ones stay in use'),
  );
  replaceFile(c.ca.certFile, c.otherCa.cert);
  await until('the stranger is trusted', async () => (await write()) === 200);
  t.ok(proxy.logs().some(({ msg }) => msg === 'the authorities of the store were reloaded'));
});
