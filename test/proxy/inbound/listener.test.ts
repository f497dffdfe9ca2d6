import type { ServerResponse } from 'node:http';
import t from 'tap';
import { createListener } from '../../../src/proxy/inbound/listener.js';
import { connectRaw, type RawConnection } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import type { Scope } from '../../support/scope.js';
import { compiled, startProxy, type Harness } from '../harness.js';

const routes = [
  { name: 'orders', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [] },
  { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
];

t.test("every limit of the listener is set, whatever Node's defaults are", (t) => {
  const cases = [
    {
      listen: {},
      headersTimeout: 10_000,
      keepAliveTimeout: 75_000,
      connectionsCheckingInterval: 1000,
      maxConnections: 6144,
    },
    {
      listen: { header_timeout: '200ms', keep_alive_timeout: '620s', max_in_flight: 10 },
      headersTimeout: 200,
      keepAliveTimeout: 620_000,
      connectionsCheckingInterval: 100,
      maxConnections: 4096,
    },
    {
      listen: { header_timeout: '60s', max_in_flight: 10_000, max_websockets: 1 },
      headersTimeout: 60_000,
      keepAliveTimeout: 75_000,
      connectionsCheckingInterval: 1000,
      maxConnections: 80_002,
    },
  ];
  for (const { listen, ...expected } of cases) {
    const { server } = createListener(compiled({ listen }).listen, null);
    const { headersTimeout, requestTimeout, timeout, keepAliveTimeout, maxConnections } = server;
    t.same(
      { headersTimeout, maxConnections },
      { headersTimeout: expected.headersTimeout, maxConnections: expected.maxConnections },
    );
    t.match(server, {
      connectionsCheckingInterval: expected.connectionsCheckingInterval,
      insecureHTTPParser: false,
      requireHostHeader: false,
    });
    t.same(
      { requestTimeout, timeout, keepAliveTimeout },
      { requestTimeout: 0, timeout: 0, keepAliveTimeout: expected.keepAliveTimeout },
    );
    server.close();
  }
  t.end();
});

/** A listener that holds 1,025 connections, and that many open ones that rest. */
async function startFull(t: Scope): Promise<{ readonly proxy: Harness; readonly open: readonly RawConnection[] }> {
  const proxy = await startProxy(t, { config: { listen: { max_in_flight: 1, max_websockets: 1 } } });
  const open: RawConnection[] = [];
  t.teardown(() => {
    for (const connection of open) connection.end();
  });
  while (open.length < 1025) {
    // Not all at once: the system's queue is shorter, and gives those beyond it longer and longer pauses.
    open.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(100, 1025 - open.length) }, async () => connectRaw(proxy.port)),
      )),
    );
    await until('they are accepted', () => proxy.server.counts().connections === open.length);
  }
  return { proxy, open };
}

const ask = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';

t.test('connections that rest give way to new ones, the ones that rested longest first', async (t) => {
  const { proxy, open } = await startFull(t);
  const more = await connectRaw(proxy.port);
  t.teardown(more.end);
  more.write(ask);
  t.equal((await more.readResponse())?.status, 200, 'a new one is served');
  await until('the oldest are closed', () => open.slice(0, 32).every((connection) => connection.isClosed()));
  t.equal(open.filter((connection) => connection.isClosed()).length, 32);
  const last = open.at(-1);
  last?.write(ask);
  t.equal((await last?.readResponse())?.status, 200, 'the others go on');
  t.same(
    proxy.counted.connectionEndings,
    Array.from({ length: 32 }, () => 'gave_way'),
  );
  t.match(
    proxy.logged,
    [{ level: 'warn', message: /^connections were ended/, fields: { open: 1025, gave_way: 1 } }],
    'one line, not 32',
  );
});

t.test('who was let through with a credential, or is being served, is not turned out for silent ones', async (t) => {
  const proxy = await startProxy(t, {
    config: { listen: { max_in_flight: 2, max_websockets: 1 }, routes: [...routes] },
  });
  const held: ServerResponse[] = [];
  const [trusted, served] = [await connectRaw(proxy.port), await connectRaw(proxy.port)];
  t.teardown(trusted.end);
  t.teardown(served.end);
  trusted.write(`GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  t.equal((await trusted.readResponse())?.status, 200);
  proxy.receiver.behave((_req, res) => held.push(res));
  served.write(ask);
  await until('it is being served', () => held.length === 1);
  // Twice as many as there are places for.
  for (let opened = 0; opened < 2_050; opened += 50) {
    const made = await Promise.all(Array.from({ length: 50 }, async () => connectRaw(proxy.port)));
    for (const connection of made) t.teardown(connection.end);
  }
  await until('some have given way', () => proxy.counted.connectionEndings.length >= 1_025);
  proxy.receiver.behave(null);
  held[0]?.end('served');
  t.equal((await served.readResponse())?.text, 'served');
  trusted.write(`GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  t.equal((await trusted.readResponse())?.status, 200);
});

t.test('an idle connection is closed after keep_alive_timeout, and not before', async (t) => {
  const asked = async (connection: RawConnection): Promise<number | undefined> => {
    connection.write(ask);
    return (await connection.readResponse())?.status;
  };
  const proxy = await startProxy(t, { config: { listen: { keep_alive_timeout: '1s' } } });
  const patient = await startProxy(t, { config: { listen: { keep_alive_timeout: '2h' } } });
  const [closing, staying] = [await connectRaw(proxy.port), await connectRaw(patient.port)];
  t.teardown(() => staying.end());
  t.same([await asked(closing), await asked(staying)], [200, 200]);
  await closing.closed;
  t.equal(await asked(staying), 200);
});
