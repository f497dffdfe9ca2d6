import { createServer } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { certificates } from '../support/certificates.js';
import { startJwksServer } from '../support/jwks-server.js';
import { listen } from '../support/listening.js';
import { connectRaw, request } from '../support/raw-client.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { baseConfig, type ConfigTree } from '../support/proxy-process.js';
import { statusProblems } from '../admin/status-schema.js';
import { startInProcessProxy, startFrom } from './in-process-proxy.js';

t.test('requests are let through or refused, and every listener says where it is', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { probes: { host: '127.0.0.1', port: 0 } } });
  t.equal((await proxy.request({ path: '/orders' })).status, 200);
  t.equal((await request(proxy.port, { path: '/orders' })).status, 401);
  t.equal((await proxy.request({ path: '/orders' }, { sub: 'stranger' })).status, 403);
  const listening = proxy
    .logs()
    .filter(({ msg }) => msg === 'listening')
    .map(({ listener, port }) => [listener, port]);
  const { listeners } = proxy.app;
  t.same(
    listening,
    [
      ['admin', listeners.admin.port],
      ['probes', listeners.probes?.port],
      ['proxy', listeners.proxy?.port ?? 0],
    ],
    'admin and probes are there before the proxy',
  );
});

t.test('what each listener answers', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { probes: { host: '127.0.0.1', port: 0 } } });
  const probesPort = proxy.app.listeners.probes?.port ?? 0;
  for (const [path, onProbes, onAdmin] of [
    ['/livez', 200, 200],
    ['/readyz', 200, 200],
    ['/metrics', 200, 200],
    ['/status', 404, 200],
  ] as const) {
    t.equal((await request(probesPort, { path, headers: { Host: 'pod.example' } })).status, onProbes, `probes ${path}`);
    t.equal((await proxy.admin(path)).status, onAdmin, `admin ${path}`);
    t.equal((await request(proxy.port, { path })).status, 401, `never on the caller's port: ${path}`);
  }
  t.equal((await request(proxy.adminPort, { path: '/status', headers: { Host: 'evil.example' } })).status, 421);
  t.match(JSON.parse((await proxy.admin('/readyz')).text), {
    status: 'ready',
    checks: [{ name: 'listener', status: 'ok' }],
  });
  t.match((await proxy.admin('/metrics')).field('content-type'), /^text\/plain; version=0\.0\.4/);
});

t.test('/status and /metrics show what is in force and what happened', async (t) => {
  const proxy = await startInProcessProxy(t);
  await proxy.request({ path: '/orders' });
  await request(proxy.port, { path: '/orders' });
  await until(
    'both are counted',
    async () =>
      (await proxy.metric('sallyport_requests_total{route="list-orders",outcome="forwarded"}')) === 1 &&
      (await proxy.metric('sallyport_denials_total{reason="credential_missing"}')) === 1,
  );
  const status: unknown = JSON.parse((await proxy.admin('/status')).text);
  t.same(statusProblems(status), [], 'as docs/status.schema.json says');
  t.match(status, {
    phase: 'serving',
    config: { file: 'sallyport.yaml', sha256: /^[0-9a-f]{64}$/, last_reload_error: null },
    issuers: [{ name: 'core', usable: true, keys: [{ key_id: 'd-1', accepted: true }] }],
    counts: { requests: { forwarded: 1, denied: 1 }, denials: { credential_missing: 1 } },
    listeners: { proxy: { port: proxy.port } },
  });
  const { sha256 } = proxy.app.status().config;
  t.equal(await proxy.metric(`sallyport_config_info{sha256="${sha256}"}`), 1);
  t.equal(await proxy.metric('sallyport_jwks_refreshes_total{issuer="core",result="ok"}'), 1);
});

t.test('without keys it is alive and not ready, and recovers by itself', async (t) => {
  const parked = await startJwksServer(t);
  await parked.close();
  const proxy = await startInProcessProxy(t, { jwks: parked, ready: false });
  t.equal((await proxy.admin('/livez')).status, 200);
  await until('the first attempt failed', () => proxy.logs().some(({ msg }) => msg === 'keys could not be loaded'));
  const notReady = await proxy.admin('/readyz');
  t.equal(notReady.status, 503);
  t.match(JSON.parse(notReady.text), {
    status: 'unavailable',
    checks: [{}, {}, { name: 'keys', status: 'failed' }, { name: 'keys:core', status: 'failed' }],
  });
  const refused = await proxy.request({ path: '/orders' });
  t.equal(refused.status, 503, 'not let through');
  t.match(refused.text, /keys-unavailable/);
  t.equal(proxy.receiver.requests.length, 0);
  await startJwksServer(t, { port: parked.port });
  await until('ready again', async () => (await proxy.admin('/readyz')).status === 200);
  t.equal((await proxy.request({ path: '/orders' })).status, 200);
});

t.test('one issuer of two without keys is degraded, not unavailable', async (t) => {
  const dead = await startJwksServer(t);
  await dead.close();
  const issuer = {
    issuer: 'https://b.example',
    audience: 'orders',
    source: 'microservice',
    token_type: 'service',
    jwks_url: dead.url,
  };
  const proxy = await startInProcessProxy(t, { ready: false, config: { issuers: { other: issuer } } });
  await until('degraded', async () => (await proxy.admin('/readyz')).text.includes('degraded'));
  const readiness = await proxy.admin('/readyz');
  t.equal(readiness.status, 200);
  const checks = [{}, {}, {}, { name: 'keys:core', status: 'ok' }, { name: 'keys:other', status: 'failed' }];
  t.match(JSON.parse(readiness.text), { status: 'degraded', checks });
});

t.test('what keeps it from starting', async (t) => {
  const c = certificates(t);
  const taken = (await listen(t, createServer())).port;
  const tls = { cert_file: c.server.certFile, key_file: c.server.keyFile };
  const rows: readonly { name: string; config: ConfigTree; kind: string; message: RegExp }[] = [
    {
      name: 'a bad config',
      config: { listen: { port: 'x' } },
      kind: 'invalid',
      message: /^sallyport\.yaml:\d+:\d+: error: /,
    },
    {
      name: 'no certificate',
      config: { listen: { tls: { ...tls, cert_file: '/none.crt' } } },
      kind: 'unreadable',
      message: /^\/none\.crt: does not exist$/,
    },
    {
      name: 'a key that does not fit',
      config: { listen: { tls: { ...tls, key_file: c.client.keyFile } } },
      kind: 'invalid',
      message: /is not the key/,
    },
    {
      name: 'a client CA that is none',
      config: { listen: { tls: { ...tls, client_ca_file: c.server.keyFile } } },
      kind: 'invalid',
      message: /no PEM/,
    },
    {
      name: 'no CA of the receiver',
      config: { upstream: { url: 'https://127.0.0.1', ca_file: c.dir } },
      kind: 'unreadable',
      message: /is a directory/,
    },
    {
      name: 'a CA of an issuer that is none',
      config: { issuers: { core: { jwks_url: 'https://127.0.0.1/', ca_file: c.server.keyFile } } },
      kind: 'invalid',
      message: /no PEM/,
    },
    {
      name: 'the port in use',
      config: { listen: { port: taken } },
      kind: 'unavailable',
      message: /proxy listener.*port is in use \(EADDRINUSE\)/,
    },
    {
      name: 'the admin port in use',
      config: { admin: { port: taken } },
      kind: 'unavailable',
      message: /admin listener.*in use/,
    },
    {
      name: 'the probes port in use',
      config: { probes: { host: '127.0.0.1', port: taken } },
      kind: 'unavailable',
      message: /probes listener.*in use/,
    },
    {
      name: 'an address of another machine',
      config: { admin: { host: '192.0.2.1' } },
      kind: 'unavailable',
      message: /192\.0\.2\.1:0.*none of this machine/,
    },
  ];
  for (const { name, config, kind, message } of rows) {
    const file = join(tempDir(t), 'sallyport.yaml');
    writeFileSync(file, baseConfig(config));
    const { started, logs } = await startFrom(t, file);
    if (started.ok) {
      t.fail(`${name}: started`);
      continue;
    }
    t.equal(started.error.kind, kind, `${name}: ${started.error.messages.join()}`);
    t.match(started.error.messages.join('\n'), message, name);
    for (const { port } of logs().filter(({ msg }) => msg === 'listening')) {
      await t.rejects(connectRaw(Number(port)), { code: 'ECONNREFUSED' }, `${name}: nothing is left open`);
    }
  }
});

t.test('what is doubtful about the config is in the log', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { issuers: { core: { max_lifetime: '12h' } } } });
  const warnings = proxy
    .logs()
    .filter(({ level, msg }) => level === 'warn' && msg === 'the config has a warning')
    .map(({ warning }) => warning);
  t.equal(warnings.length, 1);
  t.match(warnings[0], /issuers\.core\.max_lifetime is long/);
  t.same(proxy.app.status().config.warnings, warnings);
});
