import { X509Certificate } from 'node:crypto';
import t from 'tap';
import { WebSocket } from 'ws';
import { systemClock } from '../../../src/adapters/system/clock.js';
import { closeCauses } from '../../../src/decision/websocket/close-codes.js';
import { certificates } from '../../support/certificates.js';
import { mintToken } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import {
  clientOf,
  frame,
  startWebSocketProxy,
  switchRaw,
  webSocketRoutes,
  type Client,
  type WebSocketProxy,
} from './websocket-proxy.js';

async function opened(proxy: WebSocketProxy): Promise<Client> {
  const client = proxy.connect();
  await client.opened;
  await until('the receiver has it', () => proxy.webSockets.sockets.length > 0);
  return client;
}

/** The code that the receiver's end gets. */
async function receiverClosed(proxy: WebSocketProxy): Promise<number> {
  const [peer] = proxy.webSockets.sockets;
  return new Promise((resolve) => peer?.on('close', resolve));
}

t.test('4401 when the token expires, exp and skew later and not before', async (t) => {
  let offsetMs = 0;
  const proxy = await startWebSocketProxy(t, { clock: { ...systemClock, now: () => Date.now() + offsetMs } });
  const expS = Math.floor(Date.now() / 1_000) + 60;
  const client = proxy.connect({ claims: { exp: expS } });
  await client.opened;
  // The token's expiry and 3 s: within the skew of 5 s.
  offsetMs = expS * 1_000 + 3_000 - Date.now();
  await proxy.server.reauthorizeConnections();
  client.socket.send('still here');
  await until('the echo', () => client.messages.length === 1);
  const peer = receiverClosed(proxy);
  offsetMs += 2_000;
  await proxy.server.reauthorizeConnections();
  t.same(await client.closed, { code: 4401, reason: 'unauthorized' });
  t.equal(await peer, 4401);
  await until('it is recorded', () => proxy.records.length === 1);
  t.match(proxy.records, [{ decision: 'forwarded', reason: 'token_expired', status: 101 }]);
  t.same([proxy.counted.webSocketCloses, proxy.counted.denials], [['expired'], []]);
});

t.test('4401 at the expiry of a token, without anything else that happens', async (t) => {
  const proxy = await startWebSocketProxy(t, { config: { issuers: { core: { clock_skew: '0s' } } } });
  const client = proxy.connect({ claims: { exp: Math.floor(Date.now() / 1_000) + 2 } });
  await client.opened;
  t.same(await client.closed, { code: 4401, reason: 'unauthorized' });
});

t.test('the end of a certificate that it needs, without anything else that happens', async (t) => {
  const files = certificates(t);
  const endsAtMs = Date.parse(new X509Certificate(files.client.cert).validTo);
  const offsetMs = endsAtMs - 1_000 - Date.now();
  for (const mode of ['require', 'optional'] as const) {
    const { server, ca, client: own } = files;
    const tls = { cert_file: '/tls/tls.crt', key_file: '/tls/tls.key', client_ca_file: '/tls/ca.crt' };
    const proxy = await startWebSocketProxy(t, {
      config: { listen: { tls: { ...tls, client_auth: mode } } },
      tls: { cert: server.cert, key: server.key, clientCa: ca.cert, clientAuth: mode },
      clock: { ...systemClock, now: () => Date.now() + offsetMs },
    });
    const token = mintToken({ key: proxy.key, nowMs: Date.now() + offsetMs });
    const client = clientOf(
      t,
      new WebSocket(`wss://localhost:${proxy.port}/live`, {
        ca: ca.cert,
        cert: own.cert,
        key: own.key,
        headers: { Authorization: `Bearer ${token}` },
      }),
    );
    await client.opened;
    if (mode === 'require') {
      t.equal((await client.closed).code, 4403);
      t.match(proxy.records, [{ reason: 'client_certificate_refused' }]);
    } else {
      await until('the certificate is over', () => Date.now() + offsetMs > endsAtMs + 200);
      client.socket.send('still here');
      await until('the echo', () => client.messages.length === 1);
    }
  }
});

const [live, open, list] = webSocketRoutes;
const changes = [
  {
    name: 'subject revoked',
    config: { revoked: { subjects: ['checkout'] } },
    code: 4401,
    reason: 'subject_revoked',
    as: 'revoked',
  },
  {
    name: 'token revoked',
    config: { revoked: { token_ids: ['j-1'] } },
    code: 4401,
    reason: 'token_revoked',
    as: 'revoked',
  },
  { name: 'key revoked', config: { revoked: { key_ids: ['d-1'] } }, code: 4401, reason: 'key_revoked', as: 'revoked' },
  {
    name: 'issued before',
    config: { revoked: { issued_before: '2999-01-01T00:00:00Z' } },
    code: 4401,
    reason: 'issue_time_revoked',
    as: 'revoked',
  },
  {
    name: 'key id rejected',
    config: { issuers: { core: { key_ids: { reject: ['d-1'] } } } },
    code: 4401,
    reason: 'key_id_refused',
    as: 'revoked',
  },
  {
    name: 'audience changed',
    config: { issuers: { core: { audience: 'other' } } },
    code: 4401,
    reason: 'audience_mismatch',
    as: 'revoked',
  },
  {
    name: 'subject taken off',
    config: { routes: [{ ...live, subjects: ['other'] }] },
    code: 4403,
    reason: 'subject_not_approved',
    as: 'forbidden',
  },
  {
    name: 'permission added',
    config: { routes: [{ ...live, permissions: ['more'] }] },
    code: 4403,
    reason: 'permission_missing',
    as: 'forbidden',
  },
  { name: 'route gone', config: { routes: [open, list] }, code: 4403, reason: 'route_unknown', as: 'forbidden' },
  {
    name: 'WebSockets no more',
    config: { routes: [{ ...live, websocket: false }, open] },
    code: 4403,
    reason: 'upgrade_refused',
    as: 'forbidden',
  },
] as const;

t.test('a reload that takes the credential, the permission or the route away closes the connection', async (t) => {
  for (const { name, config, code, reason, as } of changes) {
    const proxy = await startWebSocketProxy(t);
    const client = proxy.connect({ claims: { jti: 'j-1' } });
    await client.opened;
    await until('the receiver has it', () => proxy.webSockets.sockets.length === 1);
    const peer = receiverClosed(proxy);
    proxy.reload({ routes: webSocketRoutes, ...config });
    await proxy.server.reauthorizeConnections();
    t.equal((await client.closed).code, code, name);
    t.equal(await peer, code, name);
    await until('it is recorded', () => proxy.records.length === 1);
    t.match(proxy.records, [{ reason, decision: 'forwarded' }], name);
    t.same(proxy.counted.webSocketCloses, [as], name);
  }
});

t.test('a reload that changes nothing for it, and keys that cannot be had, leave it open', async (t) => {
  let isAway = false;
  const key = (await import('../../support/keys.js')).rsaKey();
  const proxy = await startWebSocketProxy(t, {
    find: (keyId) =>
      isAway ? { kind: 'unavailable' } : { kind: 'found', key: { keyId, algorithm: 'RS256', key: key.publicKey } },
  });
  const client = await opened(proxy);
  const anonymous = proxy.connect({ path: '/open', anonymous: true });
  await anonymous.opened;
  proxy.reload({
    routes: [...webSocketRoutes, { name: 'more', methods: ['GET'], path: '/more', access: 'public' }],
    upstream: { url: proxy.webSockets.url },
  });
  await proxy.server.reauthorizeConnections();
  isAway = true;
  await proxy.server.reauthorizeConnections();
  for (const { socket, messages } of [client, anonymous]) {
    socket.send('still here');
    await until('the echo', () => messages.length === 1);
  }
  t.equal(proxy.server.openWebSockets(), 2);
});

t.test('nothing of a revoked caller reaches the upstream, and a frame that has begun to it ends whole', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const { raw } = await switchRaw(t, proxy);
  const [peer] = proxy.webSockets.sockets;
  const heard: string[] = [];
  peer?.on('message', (data: Buffer) => heard.push(data.toString()));
  const peerGone = receiverClosed(proxy);
  const whole = frame(1, 'x'.repeat(100));
  raw.write(whole.subarray(0, 50));
  let read = 0;
  let tail = Buffer.alloc(0);
  raw.socket.removeAllListeners('data').on('data', (chunk: Buffer) => {
    read += chunk.length;
    tail = Buffer.concat([tail, chunk]).subarray(-16);
  });
  // More than all buffers on the way hold: the caller is in the midst of this one when its token is revoked.
  peer?.send(Buffer.alloc(24 * 1024 * 1024, 'a'));
  await until('some of it came', () => read > 0);
  raw.socket.pause();
  proxy.reload({ routes: webSocketRoutes, revoked: { subjects: ['checkout'] } });
  await proxy.server.reauthorizeConnections();
  raw.write(whole.subarray(50));
  raw.write(frame(1, 'more'));
  raw.socket.resume();
  const last = Buffer.from([0x88, 14, 0x11, 0x31, ...Buffer.from('unauthorized')]);
  await until('the Close', () => tail.equals(last));
  t.equal(read, 10 + 24 * 1024 * 1024 + last.length, 'the frame is whole');
  raw.write(frame(8, Buffer.from([0x11, 0x31])));
  await raw.closed;
  t.equal(await peerGone, 1006, 'a Close cannot stand within a frame');
  t.same(heard, []);
});

t.test('a drain tells both ends 1001, and is over when they are gone', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const clients = [await opened(proxy), await opened(proxy)];
  const peer = receiverClosed(proxy);
  proxy.server.announceShutdown();
  const late = proxy.connect();
  await late.opened;
  await proxy.server.drain(60_000);
  for (const { closed } of [...clients, late]) t.same(await closed, { code: 1001, reason: 'going away' });
  t.equal(await peer, 1001);
  t.same(proxy.counted.webSocketCloses, ['shutdown', 'shutdown', 'shutdown']);
  t.ok(proxy.records.every(({ reason, status }) => reason === 'shutting_down' && status === 101));
  await until('the receiver is left', () => proxy.webSockets.open() === 0);
});

t.test('ends that do not answer do not outlive the grace', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const { raw } = await switchRaw(t, proxy);
  raw.socket.pause();
  await proxy.server.drain(100);
  t.same(proxy.server.counts(), { connections: 0, inFlight: 0, streams: 0 });
  t.equal(proxy.server.openWebSockets(), 0);
  await until('it is recorded', () => proxy.records.length === 1);
  t.match(proxy.records, [{ reason: 'shutting_down' }]);
});

t.test('4408 when neither end sends anything; a byte of either is enough', async (t) => {
  const proxy = await startWebSocketProxy(t, { config: { listen: { websocket_idle_timeout: '400ms' } } });
  const client = await opened(proxy);
  const [peer] = proxy.webSockets.sockets;
  const pinging = setInterval(() => peer?.ping(), 20);
  t.teardown(() => {
    clearInterval(pinging);
  });
  let pings = 0;
  client.socket.on('ping', () => {
    pings += 1;
  });
  const started = performance.now();
  await until('it lasts longer than that', () => performance.now() - started > 800 && pings > 10);
  t.equal(client.socket.readyState, client.socket.OPEN);
  clearInterval(pinging);
  t.same(await client.closed, { code: 4408, reason: 'idle timeout' });
  await until('it is recorded', () => proxy.records.length === 1);
  t.match(proxy.records, [{ reason: 'upstream_timeout' }]);
});

const malformed = [
  { name: 'unmasked', bytes: frame(1, 'x', { masked: false }) },
  { name: 'reserved bit', bytes: frame(1, 'x', { rsv: 4 }) },
  { name: 'no frame at all', bytes: Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n') },
  { name: 'a fragmented ping', bytes: frame(9, 'x', { fin: false }) },
];

t.test('1002 for what is no frame, and none of it is passed on', async (t) => {
  for (const { name, bytes } of malformed) {
    const proxy = await startWebSocketProxy(t);
    const { raw } = await switchRaw(t, proxy);
    const peer = receiverClosed(proxy);
    raw.write(Buffer.concat([frame(1, 'good'), bytes]));
    await raw.closed;
    t.ok(raw.pending().includes(Buffer.from([0x88, 17, 0x03, 0xea])), name);
    t.equal(await peer, 1002, name);
    await until('it is recorded', () => proxy.records.length === 1);
    t.match(proxy.records, [{ reason: 'framing', status: 101 }], name);
    t.same(proxy.counted.webSocketCloses, ['malformed'], name);
  }
});

t.test('an upstream that dies: 1011 to the caller', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const client = await opened(proxy);
  proxy.webSockets.sockets[0]?.terminate();
  t.same(await client.closed, { code: closeCauses.upstreamLost.code, reason: 'upstream failed' });
  await until('it is recorded', () => proxy.records.length === 1);
  t.match(proxy.records, [{ reason: 'upstream_failed', decision: 'forwarded' }]);
  t.same(proxy.counted.webSocketCloses, ['receiver_lost']);
});

t.test("a caller that leaves without a word takes the upstream's connection along", async (t) => {
  for (const how of ['reset', 'end'] as const) {
    const proxy = await startWebSocketProxy(t);
    const { raw } = await switchRaw(t, proxy);
    const peer = receiverClosed(proxy);
    if (how === 'reset') raw.socket.resetAndDestroy();
    else raw.socket.end();
    t.equal(await peer, 1006, how);
    await until('it is recorded', () => proxy.records.length === 1);
    t.match(proxy.records, [{ reason: 'caller_gone', decision: 'forwarded' }], how);
    t.same(proxy.counted.webSocketCloses, ['caller_lost']);
    await until('nothing is left', () => proxy.webSockets.open() === 0 && proxy.server.counts().connections === 0);
  }
});
