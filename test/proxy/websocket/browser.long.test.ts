import t from 'tap';
import { startBrowser } from '../../support/browser.js';
import { rsaKey } from '../../support/keys.js';
import { mintSession } from '../../support/sessions.js';
import { until } from '../../support/until.js';
import { startWebSocketProxy, webSocketRoutes } from './websocket-proxy.js';
import { sessionConfig, sessionsOf, userRoute } from './stand-in-sessions.js';

const key = rsaKey();

t.test(
  'a real browser: echo, subprotocol, compression, binary messages, and 4401 when the session is revoked',
  async (t) => {
    const browser = await startBrowser(t);
    const routes = [...webSocketRoutes, { ...userRoute, origins: [browser.origin] }];
    const config = { ...sessionConfig, routes };
    const server = { perMessageDeflate: { threshold: 0 }, handleProtocols: () => 'v2' };
    const proxy = await startWebSocketProxy(t, { config, sessions: sessionsOf(key), server });
    const session = mintSession({ key });
    const told = browser.run(`
    document.cookie = 'sAccessToken=${session}';
    const socket = new WebSocket('ws://127.0.0.1:${proxy.port}/user', ['v1', 'v2']);
    const heard = [];
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      socket.send('hello');
      socket.send(new Uint8Array(1_000_000));
    };
    socket.onmessage = ({ data }) => {
      heard.push(typeof data === 'string' ? data : data.byteLength);
      if (heard.length === 2) socket.send('both came');
    };
    socket.onclose = ({ code, reason, wasClean }) =>
      report({ code, reason, wasClean, heard, protocol: socket.protocol, extensions: socket.extensions });
  `);
    await until('the page has both echoes', () => proxy.webSockets.messages() === 3);
    proxy.reload({ ...config, revoked: { subjects: ['user-1'] } });
    await proxy.server.reauthorizeConnections();
    t.match(await told, {
      code: 4401,
      reason: 'unauthorized',
      wasClean: true,
      protocol: 'v2',
      extensions: /permessage-deflate/,
      heard: ['hello', 1_000_000],
    });
    t.match(proxy.webSockets.upgrades[0]?.headers, {
      'x-auth-subject': 'user-1',
      'x-auth-kind': 'session',
      origin: browser.origin,
    });
  },
);

t.test('RFC 6455 §10.2: a foreign page in the same browser does not get in with the cookie of the user', async (t) => {
  const browser = await startBrowser(t);
  const proxy = await startWebSocketProxy(t, {
    config: { ...sessionConfig, routes: [...webSocketRoutes, userRoute] },
    sessions: sessionsOf(key),
  });
  const told = await browser.run(`
    document.cookie = 'sAccessToken=${mintSession({ key })}';
    const socket = new WebSocket('ws://127.0.0.1:${proxy.port}/user');
    socket.onopen = () => report('open');
    socket.onclose = ({ code }) => report({ code });
  `);
  t.same(told, { code: 1006 });
  t.match(proxy.records, [{ reason: 'origin_refused', status: 403, subject: 'user-1' }], 'the cookie came along');
  t.equal(proxy.webSockets.upgrades.length, 0);
});

t.test('a page on a public route, closed from both sides', async (t) => {
  const browser = await startBrowser(t);
  const proxy = await startWebSocketProxy(t);
  const told = await browser.run(`
    const socket = new WebSocket('ws://127.0.0.1:${proxy.port}/open');
    socket.onopen = () => socket.send('hello');
    socket.onmessage = ({ data }) => socket.close(4000, data);
    socket.onclose = ({ code, reason, wasClean }) => report({ code, reason, wasClean });
  `);
  t.same(told, { code: 4000, reason: 'hello', wasClean: true });
});
