/** `workers: 2`: limits, metrics, log, pages, reload and shutdown are those of one proxy. */
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import t from 'tap';
import { statusProblems } from '../../admin/status-schema.js';
import { connectRaw, request, requestBytes, type RawConnection } from '../../support/raw-client.js';
import { childrenOf, openDescriptors } from '../../support/linux.js';
import { startProxyProcess, type ProxyProcess } from '../../support/proxy-process.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';

const routes = [
  { name: 'read', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [] },
  {
    name: 'counted',
    methods: ['GET'],
    path: '/counted',
    subjects: ['checkout'],
    permissions: [],
    limits: { requests_per_second: 0.01, burst: 10, shared: false },
  },
  {
    name: 'narrow',
    methods: ['GET'],
    path: '/narrow',
    subjects: ['checkout'],
    permissions: [],
    limits: { max_in_flight: 3 },
  },
  { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
];

const proxy = await startProxyProcess(t, { config: { workers: 2, routes } });

/** Ids of the processes that a proxy started. */
function workersOf({ process: { pid } }: ProxyProcess): readonly number[] {
  return childrenOf(pid);
}

/** So many connections, which go to the workers in turn. */
async function connections(t: Scope, count: number, { port }: ProxyProcess = proxy): Promise<readonly RawConnection[]> {
  const open = await Promise.all(Array.from({ length: count }, async () => connectRaw(port)));
  t.teardown(() => {
    for (const connection of open) connection.end();
  });
  return open;
}

async function ask(
  connection: RawConnection,
  path: string,
  { port, authorization }: ProxyProcess = proxy,
): Promise<number> {
  connection.write(requestBytes(port, { path, headers: { ...authorization(), Connection: 'keep-alive' } }));
  return (await connection.readResponse())?.status ?? 0;
}

t.test('connections go to both workers, and each line of the log names one', async (t) => {
  const open = await connections(t, 8);
  for (const connection of open) t.equal(await ask(connection, '/orders'), 200);
  await until('their lines', () => proxy.logs().filter(({ route }) => route === 'read').length === 8);
  const lines = proxy.logs().filter(({ route }) => route === 'read');
  t.same(
    [1, 2].map((worker) => lines.filter((line) => line['worker'] === worker).length),
    [4, 4],
  );
});

t.test('metrics and status count what was sent, whichever worker served it', async (t) => {
  const before = await proxy.metric('sallyport_requests_total{route="health"}');
  const open = await connections(t, 6);
  for (const connection of open) for (let sent = 0; sent < 5; sent += 1) await ask(connection, '/healthz');
  await until(
    'all of them',
    async () => (await proxy.metric('sallyport_requests_total{route="health"}')) === before + 30,
  );
  t.equal(await proxy.metric('sallyport_request_duration_seconds_count{route="health"}'), before + 30);
  t.equal(await proxy.metric('sallyport_overhead_seconds_bucket{route="health",le="+Inf"}'), before + 30);
  t.ok((await proxy.metric('sallyport_connections_open')) >= 6);
  t.equal(await proxy.metric('sallyport_workers_serving'), 2);
  t.equal(await proxy.metric('sallyport_build_info'), 1, 'not once for each');
  t.equal(await proxy.metric('sallyport_config_info'), 1);
  t.equal(await proxy.metric('sallyport_jwks_keys{issuer="core"}'), 1);
  const text = (await proxy.admin('/metrics')).text;
  t.match(text, /^process_cpu_seconds_total\{worker="primary"\} /m);
  t.match(text, /^process_cpu_seconds_total\{worker="2"\} /m);
  const status = JSON.parse((await proxy.admin('/status')).text) as {
    readonly counts: { readonly requests: { readonly forwarded: number } };
    readonly connections: { readonly http1: { readonly connections: number } };
    readonly workers: { readonly serving: readonly { readonly pid: number }[] };
  };
  t.same(statusProblems(status), []);
  t.ok(status.counts.requests.forwarded >= 30);
  t.ok(status.connections.http1.connections >= 6);
  t.same(status.workers.serving.map(({ pid }) => pid).toSorted(), [...workersOf(proxy)].toSorted());
  t.same(JSON.parse((await proxy.admin('/readyz')).text), {
    status: 'ready',
    checks: ['listener', 'shutdown', 'keys', 'keys:core', 'workers'].map((name) => ({ name, status: 'ok' })),
  });
});

t.test('OpenMetrics are whole, and name each series once', async (t) => {
  const { text } = await request(proxy.adminPort, {
    path: '/metrics',
    headers: { Accept: 'application/openmetrics-text; version=1.0.0' },
  });
  t.ok(text.endsWith('# EOF\n'));
  const series = text
    .split('\n')
    .flatMap((line) => (line === '' || line.startsWith('#') ? [] : [line.replace(/ [^ ]+( #.*)?$/, '')]));
  t.equal(new Set(series).size, series.length);
  t.match(text, /^sallyport_requests_total\{route="health",outcome="forwarded",code="2xx"\} /m);
});

t.test('the rate of a caller is exact over both workers', async (t) => {
  const open = await connections(t, 6);
  const statuses = await Promise.all(
    open.map(async (connection) => {
      const own: number[] = [];
      for (let sent = 0; sent < 6; sent += 1) own.push(await ask(connection, '/counted'));
      return own;
    }),
  );
  const all = statuses.flat();
  t.equal(all.filter((status) => status === 200).length, 10, 'the burst, and no request more or less');
  t.equal(all.filter((status) => status === 429).length, 26);
});

t.test('requests of a caller that are under way are counted over both workers', async (t) => {
  const held: (() => void)[] = [];
  proxy.receiver.behave((req, res) => {
    req.resume();
    held.push(() => res.end('done'));
  });
  const open = await connections(t, 8);
  const answers = open.map(async (connection) => ask(connection, '/narrow'));
  await until('those that may be under way', () => held.length === 3);
  await until(
    'the others to be refused',
    async () => (await proxy.metric('sallyport_denials_total{reason="too_many_in_flight"}')) === 5,
  );
  for (const release of held) release();
  const statuses = await Promise.all(answers);
  t.equal(statuses.filter((status) => status === 200).length, 3);
  proxy.receiver.behave(null);
  for (const connection of open) {
    t.equal(await until('a place', async () => ((await ask(connection, '/narrow')) === 200 ? 200 : null)), 200);
  }
});

t.test('the console shows refusals of both, explains each, and sums what was counted', async (t) => {
  const own = { 'Sallyport-Console': '1' };
  const page = async (path: string) => request(proxy.adminPort, { path, headers: own });
  const open = await connections(t, 4);
  for (const connection of open) t.equal(await ask(connection, '/nowhere'), 403);
  const state = JSON.parse((await page('/console/state')).text) as {
    readonly traffic: {
      readonly routes: readonly { readonly route: string; readonly requests: { readonly denied: number } }[];
    };
    readonly refusals: readonly { readonly id: number; readonly path: string }[];
  };
  const shown = state.refusals.filter(({ path }) => path === '/nowhere');
  t.equal(shown.length, 4);
  t.equal(new Set(shown.map(({ id }) => id)).size, 4);
  t.ok((state.traffic.routes.find(({ route }) => route === 'none')?.requests.denied ?? 0) >= 4);
  for (const { id } of shown) t.equal((await page(`/console/explain?refusal=${String(id)}`)).status, 200);
  t.equal((await page('/console/explain?refusal=100000')).status, 404);
  t.equal((await page('/console/access')).status, 200);
  const again = JSON.parse((await page(`/console/state?after=${String(state.refusals[0]?.id)}`)).text) as typeof state;
  t.same(again.refusals, [], 'each once');
});

t.test('a config is put in force by both or by neither', async (t) => {
  const open = await connections(t, 6);
  for (const connection of open) t.equal(await ask(connection, '/later'), 403);
  const later = { ...routes[0], name: 'later', path: '/later' };
  proxy.rewrite({ workers: 2, routes: [...routes, later] });
  await proxy.loaded();
  for (const connection of open) t.equal(await ask(connection, '/later'), 200);
  await until('its line', () => proxy.logs().some(({ msg }) => msg === 'the config was reloaded'));
  t.equal(await proxy.metric('sallyport_config_reloads_total{result="ok"}'), 1, 'counted once');
  t.equal(proxy.logs().filter(({ msg }) => msg === 'the config was reloaded').length, 1, 'told once');

  proxy.writeConfigText('routes: []', 'in its place');
  await until('the refusal', () =>
    proxy.logs().some(({ msg }) => String(msg).startsWith('the config was not reloaded')),
  );
  for (const connection of open) t.equal(await ask(connection, '/later'), 200, 'the old one stays');
  t.equal(await proxy.metric('sallyport_config_reloads_total{result="failed"}'), 1);

  const [first = 0] = workersOf(proxy);
  process.kill(first, 'SIGKILL');
  await until('another worker', () => {
    const now = workersOf(proxy);
    return now.length === 2 && !now.includes(first);
  });
  await until('it serves', async () => (await proxy.metric('sallyport_workers_serving')) === 2);
  for (const connection of await connections(t, 6)) {
    t.equal(await ask(connection, '/later'), 200, 'also by a worker that begins after that');
  }
});

t.test('what a worker counted stays counted when it is gone, and its requests in flight do not', async (t) => {
  const before = await proxy.metric('sallyport_requests_total');
  const deaths = await proxy.metric('sallyport_worker_deaths_total');
  for (const connection of await connections(t, 10)) t.equal(await ask(connection, '/orders'), 200);
  // Counts are fetched each second: what a killed worker did after that is lost.
  await until('all of them', async () => (await proxy.metric('sallyport_requests_total')) === before + 10);
  const [, second = 0] = workersOf(proxy);
  process.kill(second, 'SIGKILL');
  await until('its end', async () => (await proxy.metric('sallyport_worker_deaths_total')) === deaths + 1);
  t.equal(await proxy.metric('sallyport_requests_total'), before + 10);
  await until('another', async () => (await proxy.metric('sallyport_workers_serving')) === 2);
  t.equal(await proxy.metric('sallyport_requests_total'), before + 10);
  t.equal(await proxy.metric('sallyport_requests_in_flight'), 0);
});

t.test('while workers are busy, who opens many connections waits behind everybody else', async (t) => {
  const own = await startProxyProcess(t, { config: { workers: 2, routes } });
  const order: string[] = [];
  own.receiver.behave((req, res) => {
    order.push(String(req.headers['x-request-id']));
    req.resume();
    res.end();
  });
  const knock = async (localAddress: string, id: string): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port: own.port, host: '127.0.0.1', localAddress }, () => {
        socket.write(
          requestBytes(own.port, { path: '/orders', headers: { ...own.authorization(), 'X-Request-Id': id } }),
        );
        resolve(socket);
      });
      socket.on('error', reject);
      t.teardown(() => socket.destroy());
    });
  for (const pid of workersOf(own)) process.kill(pid, 'SIGSTOP');
  const filesBefore = openDescriptors(own.process.pid);
  const flood = async (count: number): Promise<void> => {
    for (let opened = 0; opened < count; opened += 1) await knock('127.0.0.2', `flood-${String(opened)}`);
  };
  await flood(200);
  await knock('127.0.0.3', 'honest');
  await flood(100);
  await until('the primary has accepted it', () => openDescriptors(own.process.pid) > filesBefore + 250);
  for (const pid of workersOf(own)) process.kill(pid, 'SIGCONT');
  await until('all are served', () => order.length === 301);
  t.ok(order.indexOf('honest') < 60, `${String(order.indexOf('honest'))} of 200 were before it`);
});

t.test('SIGTERM to workers as well, as a service manager sends it, loses no request', async (t) => {
  const own = await startProxyProcess(t, { config: { workers: 2, routes } });
  const held: (() => void)[] = [];
  own.receiver.behave((req, res) => {
    req.resume();
    held.push(() => res.end('done'));
  });
  const open = await connections(t, 8, own);
  const answers = open.map(async (connection) => ask(connection, '/orders', own));
  await until('all to be under way', () => held.length === 8);
  for (const pid of workersOf(own)) process.kill(pid, 'SIGTERM');
  own.signal('SIGTERM');
  await until('the drain', () => own.logs().some(({ msg }) => msg === 'draining'));
  for (const release of held) release();
  t.same(new Set(await Promise.all(answers)), new Set([200]));
  t.same(await own.process.exited, { code: 0, signal: null });
  t.equal(own.logs().filter(({ route }) => route === 'read').length, 8, 'each has its line');
});

t.test('workers end at once with the process that started them', async (t) => {
  const own = await startProxyProcess(t, { config: { workers: 2, routes } });
  const pids = workersOf(own);
  t.equal(pids.length, 2);
  own.signal('SIGKILL');
  await until('their end', () => pids.every((pid) => !readdirSync('/proc').includes(String(pid))), 10_000);
});
