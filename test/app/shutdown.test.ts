import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startJwksServer } from '../support/jwks-server.js';
import { connectRaw, request, requestBytes } from '../support/raw-client.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { startInProcessProxy } from './in-process-proxy.js';

t.test('not ready at once, the listener stays for the delay, and what is under way ends', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { shutdown: { delay: '300ms', grace: '20s' } } });
  let answer: (() => void) | null = null;
  proxy.receiver.behave((req, res) => {
    if (req.url === '/orders/slow') answer = () => res.end('late');
    else res.end();
  });
  const slow = proxy.request({ path: '/orders/slow' });
  await until('the receiver has it', () => answer !== null);
  const stopped = proxy.app.stop();
  const readiness = await proxy.admin('/readyz');
  t.equal(readiness.status, 503);
  t.match(JSON.parse(readiness.text), { status: 'unavailable', checks: [{}, { name: 'shutdown', status: 'failed' }] });
  t.equal((await proxy.admin('/livez')).status, 200);
  t.match(proxy.app.status(), { phase: 'stopping' });
  const during = await proxy.request({ path: '/orders' });
  t.equal(during.status, 200, 'still served');
  t.equal(during.field('connection'), 'close');
  await until('the listener is closed', async () => {
    try {
      (await connectRaw(proxy.port)).end();
      return false;
    } catch {
      return true;
    }
  });
  t.equal((await proxy.admin('/livez')).status, 200, 'admin stays until the end');
  (answer as (() => void) | null)?.();
  t.equal((await slow).text, 'late');
  await stopped;
  await t.rejects(connectRaw(proxy.adminPort), { code: 'ECONNREFUSED' });
  const steps = ['shutting down', 'draining', 'stopped'];
  t.same(
    proxy
      .logs()
      .map(({ msg }) => String(msg))
      .filter((msg) => steps.includes(msg)),
    steps,
  );
});

t.test('silent, idle and half-sent connections do not hold it up', async (t) => {
  const proxy = await startInProcessProxy(t, {
    config: { listen: { header_timeout: '1s' }, shutdown: { delay: '0s', grace: '60s' } },
  });
  const silent = await connectRaw(proxy.port);
  const half = await connectRaw(proxy.port);
  half.write('GET /orders HTTP/1.1\r\nHost: x\r\n');
  const idle = await connectRaw(proxy.port);
  idle.write(requestBytes(proxy.port, { path: '/orders', headers: { Authorization: `Bearer ${proxy.token()}` } }));
  t.equal((await idle.readResponse())?.status, 200);
  const adminIdle = await connectRaw(proxy.adminPort);
  const startedMs = performance.now();
  await proxy.app.stop();
  t.ok(performance.now() - startedMs < 30_000, 'well before the end of the grace');
  await Promise.all([silent.closed, half.closed, idle.closed, adminIdle.closed]);
});

t.test('what does not end within the grace is cut off', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { shutdown: { delay: '0s', grace: '100ms' } } });
  proxy.receiver.behave(() => undefined);
  const connection = await connectRaw(proxy.port);
  connection.write(
    requestBytes(proxy.port, { path: '/orders', headers: { Authorization: `Bearer ${proxy.token()}` } }),
  );
  await until('the receiver has it', () => proxy.receiver.requests.length === 1);
  await proxy.app.stop();
  await connection.closed;
  const line = proxy.logs().find(({ route }) => route === 'list-orders');
  t.match(line, { decision: 'failed', reason: 'shutting_down', status: 0 }, 'and has its line in the log');
  await until('the receiver is let go of', () => proxy.receiver.open() === 0);
});

t.test('callers and the calling side have one grace together, and the calling side is there till late', async (t) => {
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, 'token.of.workload\n', { mode: 0o600 });
  const proxy = await startInProcessProxy(t, { config: { shutdown: { delay: '0s', grace: '6s' } } });
  const target = {
    name: 'orders',
    prefix: '/orders',
    url: proxy.receiver.url,
    token: 'own',
    allow: [{ methods: ['GET'], path: '/**' }],
  };
  const calling = await startInProcessProxy(t, {
    jwks: proxy.jwks,
    receiver: proxy.receiver,
    config: {
      shutdown: { delay: '0s', grace: '6s' },
      egress: { listen: { port: 0 }, tokens: { own: { file: tokenFile } }, targets: [target] },
    },
  });
  proxy.receiver.behave((req, res) => {
    if (req.url?.includes('slow') !== true) res.end();
  });
  const egressPort = calling.app.listeners.egress?.port ?? 0;
  const inbound = await connectRaw(calling.port);
  const headers = { Authorization: `Bearer ${proxy.token()}` };
  inbound.write(requestBytes(calling.port, { path: '/orders/slow', headers }));
  const outbound = await connectRaw(egressPort);
  outbound.write(requestBytes(egressPort, { path: '/orders/slow' }));
  await until('both are under way', () => proxy.receiver.requests.length === 2);
  const startedMs = performance.now();
  const stopped = calling.app.stop();
  await until('callers are not accepted', async () => {
    try {
      (await connectRaw(calling.port)).end();
      return false;
    } catch {
      return true;
    }
  });
  t.equal((await request(egressPort, { path: '/orders/x' })).status, 200, 'the workload may still call');
  await stopped;
  const tookMs = performance.now() - startedMs;
  t.ok(tookMs > 5_900 && tookMs < 9_000, `at the end of the grace: ${tookMs.toFixed(0)} ms`);
  await Promise.all([inbound.closed, outbound.closed]);
  await until('the receiver is let go of', () => proxy.receiver.open() === 0);
});

t.test('a reload during the shutdown is without effect, and harmless', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { shutdown: { delay: '100ms', grace: '1s' } } });
  const stopped = proxy.app.stop();
  proxy.rewrite({ log: { level: 'debug' } });
  await proxy.app.reload();
  await stopped;
  await proxy.app.reload();
  t.equal(proxy.app.status().counts.config_reloads.ok, 0);
});

t.test('a reload that waits for keys is called off', async (t) => {
  const proxy = await startInProcessProxy(t);
  const other = await startJwksServer(t);
  other.behave(() => undefined);
  proxy.rewrite({ issuers: { core: { jwks_url: other.url, jwks: { timeout: '60s' } } } });
  const reloaded = proxy.app.reload();
  await until('the new source is asked', () => other.hits() > 0);
  await proxy.app.stop();
  await reloaded;
  t.equal(proxy.app.status().counts.config_reloads.ok, 0);
});

t.test('stopping twice is stopping once', async (t) => {
  const proxy = await startInProcessProxy(t);
  await Promise.all([proxy.app.stop(), proxy.app.stop()]);
  await proxy.app.stop();
  t.equal(proxy.logs().filter(({ msg }) => msg === 'stopped').length, 1);
});

t.test('a slow reader of a page does not hold it up', async (t) => {
  const proxy = await startInProcessProxy(t);
  const reader = await connectRaw(proxy.adminPort);
  reader.socket.pause();
  for (let sent = 0; sent < 50; sent += 1) reader.write(requestBytes(proxy.adminPort, { path: '/metrics' }));
  await request(proxy.adminPort, { path: '/livez' });
  await proxy.app.stop();
  reader.end();
});
