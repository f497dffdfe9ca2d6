import t from 'tap';
import { sendRaw, type RawResponse } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import {
  handshake,
  soundFields,
  startWebSocketProxy,
  switchRaw,
  webSocketRoutes,
  type WebSocketProxy,
} from './websocket-proxy.js';

const limits = { max_in_flight: 2 };

async function ask(proxy: WebSocketProxy, path = '/live', claims = {}): Promise<RawResponse | undefined> {
  return (
    await sendRaw(proxy.port, handshake(`${soundFields}${proxy.bearer(claims)}`, path), { untilClosed: true })
  )[0];
}

t.test('an open WebSocket is in flight for its caller until it is closed, however it ends', async (t) => {
  const proxy = await startWebSocketProxy(t, {
    config: { routes: webSocketRoutes, limits, listen: { max_in_flight: 1 } },
  });
  const ends = [
    { name: 'a Close', end: async () => Promise.resolve() },
    { name: 'a lost caller', end: async () => (await switchRaw(t, proxy)).raw.socket.resetAndDestroy() },
    {
      name: 'a lost receiver',
      end: async () => {
        await switchRaw(t, proxy);
        proxy.webSockets.sockets.at(-1)?.terminate();
      },
    },
  ];
  for (const { name, end } of ends) {
    await end();
    await until('none is open', () => proxy.server.openWebSockets() === 0);
    const open = [proxy.connect()];
    await open[0]?.opened;
    open.push(proxy.connect());
    await open[1]?.opened;
    t.equal(proxy.server.counts().inFlight, 0, 'they are none of the requests of all');
    const refused = await ask(proxy);
    t.equal(refused?.status, 429, name);
    t.match(JSON.parse(refused?.text ?? ''), { type: 'urn:sallyport:too-many-in-flight' }, name);
    for (const { socket } of open) socket.close(1000);
    await Promise.all(open.map(async ({ closed }) => closed));
    await until('both are over', () => proxy.server.openWebSockets() === 0);
  }
  t.equal((await ask(proxy, '/orders'))?.status, 400, 'a refused upgrade');
  const [plain] = await sendRaw(proxy.port, `GET /live HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  t.equal(plain?.status, 404, 'a plain request has its places again');
});

t.test('a WebSocket that is closed by a revocation gives its place back', async (t) => {
  const proxy = await startWebSocketProxy(t, { config: { routes: webSocketRoutes, limits: { max_in_flight: 1 } } });
  const client = proxy.connect({ claims: { jti: 'j-1' } });
  await client.opened;
  proxy.reload({ routes: webSocketRoutes, limits: { max_in_flight: 1 }, revoked: { token_ids: ['j-1'] } });
  await proxy.server.reauthorizeConnections();
  t.equal((await client.closed).code, 4401);
  await until('it is over', () => proxy.server.openWebSockets() === 0);
  await switchRaw(t, proxy);
});
