import t from 'tap';
import { createListener } from '../../src/proxy/listener.js';
import { connectRaw, type RawConnection } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { compiled, startProxy } from './harness.js';

t.test('F11, R-41: every limit of the listener is set, whatever Node\'s defaults are', (t) => {
  const cases = [
    { listen: {}, headersTimeout: 10_000, connectionsCheckingInterval: 1000, maxConnections: 3072 },
    { listen: { header_timeout: '200ms', max_in_flight: 10 }, headersTimeout: 200, connectionsCheckingInterval: 100, maxConnections: 2048 },
    {
      listen: { header_timeout: '60s', max_in_flight: 10_000, max_websockets: 1 }, headersTimeout: 60_000, connectionsCheckingInterval: 1000,
      maxConnections: 40_001,
    },
  ];
  for (const { listen, ...expected } of cases) {
    const { server } = createListener(compiled({ listen }).listen, null);
    const { headersTimeout, requestTimeout, timeout, keepAliveTimeout, maxConnections } = server;
    t.same({ headersTimeout, maxConnections }, { headersTimeout: expected.headersTimeout, maxConnections: expected.maxConnections });
    t.match(server, { connectionsCheckingInterval: expected.connectionsCheckingInterval, insecureHTTPParser: false, requireHostHeader: false });
    t.same({ requestTimeout, timeout, keepAliveTimeout }, { requestTimeout: 0, timeout: 0, keepAliveTimeout: 75_000 });
    server.close();
  }
  t.end();
});

t.test('connections beyond the limit are not accepted, and those that are go on', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { max_in_flight: 1, max_websockets: 1 } } });
  const open: RawConnection[] = [];
  t.teardown(() => {
    for (const connection of open) connection.end();
  });
  while (open.length < 1025) {
    // Not all at once: the system's queue is shorter, and gives those beyond it longer and longer pauses.
    open.push(...await Promise.all(Array.from({ length: Math.min(100, 1025 - open.length) }, async () => connectRaw(proxy.port))));
    await until('they are accepted', () => proxy.server.counts().connections === open.length);
  }
  const more = await connectRaw(proxy.port);
  await more.closed;
  t.match(proxy.logged, [{ level: 'debug', message: /too many/ }]);
  const [first] = open;
  first?.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal((await first?.readResponse())?.status, 200);
});
