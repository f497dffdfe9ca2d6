/** docs/contract.md 2 and 6: reload whole or not at all, stop without losing a request. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import { connectRaw } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { startProxyProcess, usualWorkers, type ProxyProcess } from '../support/proxy-process.js';

// Many processes have to be started, each of them with as many workers.
t.setTimeout(60_000 * usualWorkers);

const route = (name: string, path: string): object => ({
  name,
  methods: ['GET'],
  path,
  subjects: ['checkout'],
  permissions: [],
});
const statusOf = async (proxy: ProxyProcess, path: string): Promise<number> =>
  (await proxy.request({ path, headers: proxy.authorization() })).status;

t.test('a changed config takes effect, a bad one leaves the old in force', async (t) => {
  const proxy = await startProxyProcess(t, { config: { routes: [route('one', '/one')] } });
  t.same([await statusOf(proxy, '/one'), await statusOf(proxy, '/two')], [200, 403]);
  proxy.rewrite({ routes: [route('two', '/two')] });
  await until('the new policy', async () => (await statusOf(proxy, '/two')) === 200);
  t.equal(await statusOf(proxy, '/one'), 403, 'nothing of the old one is left');

  const bad: readonly (readonly [string, string])[] = [
    ['unknown key', 'surprise: 1\n'],
    ['duplicate key', 'routes: []\n'],
    ['a syntax error', '  - [\n'],
    ['an alias bomb', 'x: &x [1]\ny: [*x,*x]\n'],
  ];
  for (const [name, text] of bad) {
    const failed = await proxy.metric('sallyport_config_reloads_total{result="failed"}');
    proxy.writeConfigText(text, 'at its end');
    proxy.signal('SIGHUP');
    await until(
      `${name} is refused`,
      async () => (await proxy.metric('sallyport_config_reloads_total{result="failed"}')) > failed,
    );
    t.equal(await statusOf(proxy, '/two'), 200, `${name}: the old policy holds`);
    t.match((await proxy.admin('/status')).text, /error/i, `${name}: /status tells`);
    t.equal((await proxy.admin('/readyz')).status, 200, `${name}: still ready`);
    proxy.rewrite({ routes: [route('two', '/two')] });
  }
  for (const text of ['', '{}']) {
    const failed = await proxy.metric('sallyport_config_reloads_total{result="failed"}');
    proxy.writeConfigText(text, 'in its place');
    proxy.signal('SIGHUP');
    await until(
      'an empty file is refused',
      async () => (await proxy.metric('sallyport_config_reloads_total{result="failed"}')) > failed,
    );
    t.equal(await statusOf(proxy, '/two'), 200);
  }
  proxy.rewrite({ routes: [route('three', '/three')] });
  proxy.signal('SIGHUP');
  await until('the next good one', async () => (await statusOf(proxy, '/three')) === 200);
  t.ok((await proxy.metric('sallyport_config_reloads_total{result="ok"}')) >= 2);
  t.same(await proxy.exposures(), []);
});

t.test('a request keeps the policy it began with', async (t) => {
  const proxy = await startProxyProcess(t, { config: { routes: [route('one', '/one')] } });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const waiting = proxy.request({ path: '/one', headers: proxy.authorization() });
  await until('the request is at the receiver', () => held.length === 1);
  proxy.receiver.behave(null);
  proxy.rewrite({ routes: [route('two', '/two')] });
  await until('the new policy', async () => (await statusOf(proxy, '/two')) === 200);
  held[0]?.end('finished');
  t.match(await waiting, { status: 200, text: 'finished' });
});

t.test('SIGTERM: not ready, then requests in flight end, then exit 0', async (t) => {
  const proxy = await startProxyProcess(t, { config: { shutdown: { delay: '300ms', grace: '20s' } } });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const silent = await connectRaw(proxy.port);
  const idle = await connectRaw(proxy.port);
  idle.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
  await until('the public one is at the receiver', () => held.length === 1);
  held[0]?.end('ok');
  t.equal((await idle.readResponse())?.status, 200);
  const waiting = proxy.request({ path: '/orders', headers: proxy.authorization() });
  await until('the request is at the receiver', () => held.length === 2);

  proxy.signal('SIGTERM');
  await until('not ready', async () => (await proxy.admin('/readyz').catch(() => ({ status: 503 }))).status === 503);
  t.equal(proxy.process.isRunning(), true);
  // Neither a connection that never said a word nor an idle one keeps the process.
  await Promise.all([silent.closed, idle.closed]);
  held[1]?.end('finished');
  const response = await waiting;
  t.match(response, { status: 200, text: 'finished' });
  t.equal(response.field('connection'), 'close', 'the caller is told to come elsewhere');
  t.same(await proxy.process.exited, { code: 0, signal: null });
  t.notMatch(proxy.process.output(), proxy.token().slice(0, 20));
});

t.test(
  'what passes in shadow mode ends before the process, and is cut off after the grace, as what is allowed',
  async (t) => {
    for (const [grace, expected] of [
      ['20s', { status: 200, text: 'finished' }],
      ['200ms', null],
    ] as const) {
      const proxy = await startProxyProcess(t, { config: { mode: 'shadow', shutdown: { delay: '0ms', grace } } });
      const held: ServerResponse[] = [];
      proxy.receiver.behave((_req, res) => held.push(res));
      const waiting = proxy.request({ path: '/orders' }).catch(() => null);
      await until('the request is at the receiver', () => held.length === 1);
      proxy.signal('SIGTERM');
      await until('no new one is taken', async () =>
        connectRaw(proxy.port).then(
          (connection) => connection.end(),
          () => true,
        ),
      );
      if (expected !== null) held[0]?.end('finished');
      const answer = await waiting;
      if (expected === null) t.equal(answer, null, 'cut off');
      else t.match(answer, expected);
      t.same(await proxy.process.exited, { code: 0, signal: null });
      t.match(
        proxy.logs().filter((line) => line['path'] === '/orders'),
        [{ decision: expected === null ? 'failed' : 'shadow', subject: null }],
      );
    }
  },
);

t.test('what does not end within the grace is cut off, and the exit code is 0', async (t) => {
  const proxy = await startProxyProcess(t, { config: { shutdown: { delay: '0ms', grace: '200ms' } } });
  proxy.receiver.behave(() => undefined);
  const connection = await connectRaw(proxy.port);
  connection.write(`GET /orders HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${proxy.token()}\r\n\r\n`);
  await until('the request is at the receiver', () => proxy.receiver.requests.length === 1);
  proxy.signal('SIGTERM');
  await connection.closed;
  t.same(await proxy.process.exited, { code: 0, signal: null });
});
