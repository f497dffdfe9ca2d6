import t from 'tap';
import { startJwksServer } from '../support/jwks-server.js';
import { connectRaw, request, requestBytes } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { startAppWorld } from './app-world.js';

t.test('not ready at once, the listener stays for the delay, and what is under way ends', async (t) => {
  const world = await startAppWorld(t, { config: { shutdown: { delay: '300ms', grace: '20s' } } });
  let answer: (() => void) | null = null;
  world.receiver.behave((req, res) => {
    if (req.url === '/orders/slow') answer = () => res.end('late');
    else res.end();
  });
  const slow = world.request({ path: '/orders/slow' });
  await until('the receiver has it', () => answer !== null);
  const stopped = world.app.stop();
  const readiness = await world.admin('/readyz');
  t.equal(readiness.status, 503);
  t.match(JSON.parse(readiness.text), { status: 'unavailable', checks: [{}, { name: 'shutdown', status: 'failed' }] });
  t.equal((await world.admin('/livez')).status, 200);
  t.match(world.app.status(), { phase: 'stopping' });
  const during = await world.request({ path: '/orders' });
  t.equal(during.status, 200, 'still served');
  t.equal(during.field('connection'), 'close');
  await until('the listener is closed', async () => {
    try {
      (await connectRaw(world.port)).end();
      return false;
    } catch {
      return true;
    }
  });
  t.equal((await world.admin('/livez')).status, 200, 'admin stays until the end');
  (answer as (() => void) | null)?.();
  t.equal((await slow).text, 'late');
  await stopped;
  await t.rejects(connectRaw(world.adminPort), { code: 'ECONNREFUSED' });
  const steps = ['shutting down', 'draining', 'stopped'];
  t.same(
    world
      .logs()
      .map(({ msg }) => String(msg))
      .filter((msg) => steps.includes(msg)),
    steps,
  );
});

t.test('silent, idle and half-sent connections do not hold it up', async (t) => {
  const world = await startAppWorld(t, {
    config: { listen: { header_timeout: '1s' }, shutdown: { delay: '0s', grace: '60s' } },
  });
  const silent = await connectRaw(world.port);
  const half = await connectRaw(world.port);
  half.write('GET /orders HTTP/1.1\r\nHost: x\r\n');
  const idle = await connectRaw(world.port);
  idle.write(requestBytes(world.port, { path: '/orders', headers: { Authorization: `Bearer ${world.token()}` } }));
  t.equal((await idle.readResponse())?.status, 200);
  const adminIdle = await connectRaw(world.adminPort);
  const startedMs = performance.now();
  await world.app.stop();
  t.ok(performance.now() - startedMs < 30_000, 'well before the end of the grace');
  await Promise.all([silent.closed, half.closed, idle.closed, adminIdle.closed]);
});

t.test('what does not end within the grace is cut off', async (t) => {
  const world = await startAppWorld(t, { config: { shutdown: { delay: '0s', grace: '100ms' } } });
  world.receiver.behave(() => undefined);
  const connection = await connectRaw(world.port);
  connection.write(
    requestBytes(world.port, { path: '/orders', headers: { Authorization: `Bearer ${world.token()}` } }),
  );
  await until('the receiver has it', () => world.receiver.requests.length === 1);
  await world.app.stop();
  await connection.closed;
  const line = world.logs().find(({ route }) => route === 'list-orders');
  t.match(line, { decision: 'failed', reason: 'shutting_down', status: 0 }, 'and has its line in the log');
  await until('the receiver is let go of', () => world.receiver.open() === 0);
});

t.test('a reload during the shutdown is without effect, and harmless', async (t) => {
  const world = await startAppWorld(t, { config: { shutdown: { delay: '100ms', grace: '1s' } } });
  const stopped = world.app.stop();
  world.rewrite({ log: { level: 'debug' } });
  await world.app.reload();
  await stopped;
  await world.app.reload();
  t.equal(world.app.status().counts.config_reloads.ok, 0);
});

t.test('a reload that waits for keys is called off', async (t) => {
  const world = await startAppWorld(t);
  const other = await startJwksServer(t);
  other.behave(() => undefined);
  world.rewrite({ issuers: { core: { jwks_url: other.url, jwks: { timeout: '60s' } } } });
  const reloaded = world.app.reload();
  await until('the new source is asked', () => other.hits() > 0);
  await world.app.stop();
  await reloaded;
  t.equal(world.app.status().counts.config_reloads.ok, 0);
});

t.test('stopping twice is stopping once', async (t) => {
  const world = await startAppWorld(t);
  await Promise.all([world.app.stop(), world.app.stop()]);
  await world.app.stop();
  t.equal(world.logs().filter(({ msg }) => msg === 'stopped').length, 1);
});

t.test('a slow reader of a page does not hold it up', async (t) => {
  const world = await startAppWorld(t);
  const reader = await connectRaw(world.adminPort);
  reader.socket.pause();
  for (let sent = 0; sent < 50; sent += 1) reader.write(requestBytes(world.adminPort, { path: '/metrics' }));
  await request(world.adminPort, { path: '/livez' });
  await world.app.stop();
  reader.end();
});
