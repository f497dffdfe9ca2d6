import t from 'tap';
import { acceptOf } from '../../../src/decision/websocket/handshake.js';
import { rsaKey } from '../../support/keys.js';
import { connectRaw } from '../../support/raw-client.js';
import { accept } from '../../../src/lib/result.js';
import type { JsonObject } from '../../../src/lib/strict-json.js';
import type { SessionAsker } from '../../../src/ports/auth.js';
import { mintSession, sessionClaims } from '../../support/sessions.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';
import { startRawUpstream } from '../upstream/raw-upstream.js';
import {
  handshake,
  key as handshakeKey,
  soundFields,
  startWebSocketProxy,
  webSocketRoutes,
} from './websocket-proxy.js';
import { sessionConfig, sessionsOf, userRoute } from './stand-in-sessions.js';

const key = rsaKey();
const accepted = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(handshakeKey)}\r\n`;
const config = { ...sessionConfig, routes: [...webSocketRoutes, userRoute] };

const openings = [
  {
    name: 'in a cookie, on a page of the host',
    fields: 'Origin: http://proxy.example\r\n',
    bearer: false,
    status: 101,
  },
  { name: 'in a cookie, on a foreign page', fields: 'Origin: https://evil.example\r\n', bearer: false, status: 403 },
  { name: 'in a cookie, and no page', fields: '', bearer: false, status: 403 },
  { name: 'in Authorization, and no page', fields: '', bearer: true, status: 101 },
  {
    name: 'in Authorization, on a foreign page',
    fields: 'Origin: https://evil.example\r\n',
    bearer: true,
    status: 403,
  },
] as const;

t.test('RFC 6455 §10.2: a session opens a WebSocket on its own pages only', async (t) => {
  const proxy = await startWebSocketProxy(t, { config, sessions: sessionsOf(key) });
  for (const { name, fields, bearer, status } of openings) {
    const session = mintSession({ key });
    const credential = bearer
      ? `Authorization: Bearer ${session}\r\n`
      : `Cookie: sAccessToken=${session}; theme=dark\r\n`;
    const raw = await connectRaw(proxy.port);
    t.teardown(raw.end);
    raw.write(handshake(`${soundFields}${credential}${fields}`, '/user').replace('Host: a', 'Host: proxy.example'));
    const answer = await raw.readResponse();
    t.equal(answer?.status, status, name);
    if (status === 403) {
      t.equal(answer?.text, '{"type":"about:blank","title":"Forbidden","status":403}');
      await raw.closed;
      t.equal(proxy.records.at(-1)?.reason, 'origin_refused');
    }
  }
  t.match(proxy.webSockets.upgrades[0]?.headers, {
    'x-auth-kind': 'session',
    'x-auth-subject': 'user-1',
    cookie: 'theme=dark',
  });
  t.equal(proxy.webSockets.upgrades.length, 2);
});

t.test('4401 when the session expires', async (t) => {
  const proxy = await startWebSocketProxy(t, { config, sessions: sessionsOf(key) });
  const session = mintSession({ key, claims: { exp: Math.floor(Date.now() / 1_000) + 5 } });
  const client = proxy.connect({
    path: '/user',
    anonymous: true,
    headers: { Cookie: `sAccessToken=${session}` },
    origin: `http://127.0.0.1:${proxy.port}`,
  });
  await client.opened;
  t.same(await client.closed, { code: 4401, reason: 'unauthorized' });
  await until('it is recorded', () => proxy.records.length === 1);
  t.match(proxy.records, [{ reason: 'session_expired', kind: 'session', subject: 'user-1' }]);
  t.same(proxy.counted.webSocketCloses, ['expired']);
});

t.test('4401 when the session expires while it waits for its turn to be asked about again', async (t) => {
  const askers: SessionAsker[] = [];
  let answer = (): void => undefined;
  const upstream = await startRawUpstream(t, (socket) => {
    answer = () => socket.write(`HTTP/1.1 101 S\r\n${accepted}\r\n`);
  });
  const sessions = sessionsOf(key, {
    verify: (_token, _asksCore, asker) => {
      askers.push(asker);
      return asker.again !== null
        ? new Promise(() => undefined)
        : Promise.resolve(accept({ userId: 'user-1', claims: sessionClaims() as JsonObject, renewed: null }));
    },
  });
  const proxy = await startProxy(t, { config, sessions, upstreamUrl: upstream.url });
  const raw = await connectRaw(proxy.port);
  t.teardown(raw.end);
  const session = mintSession({ key, claims: { exp: Math.floor(Date.now() / 1_000) + 5 } });
  raw.write(handshake(`${soundFields}Authorization: Bearer ${session}\r\n`, '/user'));
  await until('the receiver is asked', () => upstream.hits() === 1);
  proxy.reload(config);
  answer();
  t.equal((await raw.readResponse())?.status, 101);
  await until('4401', () => raw.pending().includes('unauthorized'));
  t.same(
    askers.map(({ user, again }) => [user, again === null]),
    [
      ['user-1', true],
      ['user-1', false],
    ],
  );
  await until('nobody waits for it any more', () => askers[1]?.again?.isGone());
});
