import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startJwksServer } from '../support/jwks-server.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { startCollector } from '../support/otlp-collector.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { baseConfig } from '../support/proxy-process.js';
import { startInProcessProxy, startFrom } from './in-process-proxy.js';

t.test(
  'what a caller sends in secret is in no log line, on no page and in nothing that a collector gets',
  async (t) => {
    const collector = await startCollector(t);
    const telemetry = { otlp: { endpoint: collector.url }, traces: { ratio: 1 }, metrics: true, logs: true };
    const proxy = await startInProcessProxy(t, { config: { log: { level: 'debug' }, telemetry } });
    const token = proxy.token();
    const headers = { Authorization: `Bearer ${token}`, Cookie: 'session=hush-cookie', 'X-Api-Key': 'hush-api-key' };
    await request(proxy.port, { path: '/orders?token=hush-query', headers });
    await request(proxy.port, { path: '/nothing?token=hush-query', headers });
    await request(proxy.port, {
      path: '/orders?token=hush-query',
      headers: { ...headers, Authorization: `Bearer ${token}x` },
    });
    await request(proxy.port, { path: '/orders', headers: { ...headers, Authorization: 'Basic hush-basic' } });
    await request(proxy.port, { method: 'POST', path: '/orders', headers, body: 'hush-body' });
    await until('every line is written', () => proxy.logs().filter(({ route }) => route !== undefined).length === 5);
    const pages = await Promise.all(
      ['/status', '/metrics', '/readyz', '/livez'].map(async (path) => (await proxy.admin(path)).text),
    );
    const openMetrics = { Accept: 'application/openmetrics-text' };
    pages.push((await request(proxy.adminPort, { path: '/metrics', headers: openMetrics })).text);
    await proxy.app.stop();
    t.same([...new Set(collector.exports.map(({ path }) => path))].toSorted(), [
      '/v1/logs',
      '/v1/metrics',
      '/v1/traces',
    ]);
    const exported = collector.exports.map(({ bytes }) => bytes.toString('latin1'));
    const written = [...proxy.logs().map((line) => JSON.stringify(line)), ...pages, ...exported].join('\n');
    t.notMatch(written, /hush-/);
    const [, payload = '', signature = ''] = token.split('.');
    t.notOk(written.includes(payload) || written.includes(signature));
  },
);

t.test('secrets of the config are in no log line, on no page and in no problem', async (t) => {
  const jwks = await startJwksServer(t);
  const receiver = await startUpstreamServer(t);
  const file = join(tempDir(t), 'sallyport.yaml');
  const config = (path: string): string =>
    baseConfig({
      upstream: { url: receiver.url },
      issuers: { core: { jwks_url: `http://127.0.0.1:${String(jwks.port)}${path}?key=\${env:SECRET}` } },
    });
  writeFileSync(file, config('/jwks.json'));
  const { started, logs } = await startFrom(t, file, { SECRET: 'hush-secret' });
  if (!started.ok) throw new Error(started.error.messages.join());
  const app = started.value;
  await until('ready', () => app.readiness().status === 'ready');
  jwks.behave((_req, res) => res.writeHead(500).end('hush-answer'));
  writeFileSync(file, config('/moved.json'));
  await app.reload();
  writeFileSync(
    file,
    baseConfig({
      upstream: { url: '${env:SECRET}' },
      listen: { port: '${env:SECRET}' },
      mode: '${env:SECRET}',
      routes: '${env:SECRET}',
    }),
  );
  await app.reload();
  t.ok((app.status().config.last_reload_error?.problems.length ?? 0) >= 4);
  t.match(app.status().issuers[0], { usable: false, last_error: String });
  const pages = await Promise.all(
    ['/status', '/metrics', '/readyz'].map(async (path) => (await request(app.listeners.admin.port, { path })).text),
  );
  t.notMatch([...logs().map((line) => JSON.stringify(line)), ...pages].join('\n'), /hush-/);
});
