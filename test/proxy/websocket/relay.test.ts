import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket as FetchWebSocket } from 'undici';
import t from 'tap';
import type { WebSocket } from 'ws';
import { FrameReader } from '../../../src/decision/websocket/frames.js';
import { RelayDirection } from '../../../src/proxy/websocket/relay-direction.js';
import { connectRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { frame, handshake, key, soundFields, startWebSocketProxy, switchRaw, type Client } from './websocket-proxy.js';

t.test('a message and its echo, with the identity of the caller on the handshake', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const client = proxy.connect({
    headers: { 'X-Auth-Subject': 'evil', Origin: 'https://page.example', Cookie: 'a=b' },
  });
  await client.opened;
  client.socket.send('hello');
  await until('the echo', () => client.messages.length === 1);
  t.same(client.messages, ['hello']);
  const [upgrade] = proxy.webSockets.upgrades;
  t.match(upgrade?.headers, {
    'x-auth-subject': 'checkout',
    'x-auth-kind': 'service',
    'x-auth-permissions': 'orders:read orders:write',
    'x-forwarded-proto': 'http',
    upgrade: 'websocket',
    connection: 'upgrade',
    origin: 'https://page.example',
    cookie: 'a=b',
  });
  t.equal(upgrade?.headers.authorization, undefined);
  t.equal(upgrade?.url, '/live');
  t.equal(proxy.server.openWebSockets(), 1);
  t.equal(proxy.server.counts().inFlight, 0, 'it holds no place of a request');
  t.same(proxy.records, [], 'its line is written at its end');
  client.socket.close(4000, 'enough');
  t.same(await client.closed, { code: 4000, reason: 'enough' }, 'the receiver echoes it');
  await until('it is recorded', () => proxy.records.length === 1);
  t.match(proxy.records, [
    {
      route: 'live',
      method: 'GET',
      path: '/live',
      decision: 'forwarded',
      reason: null,
      subject: 'checkout',
      status: 101,
    },
  ]);
  t.same(proxy.counted.webSocketCloses, ['caller']);
  t.equal(proxy.server.openWebSockets(), 0);
  await until('the receiver is left', () => proxy.webSockets.open() === 0);
});

t.test('close codes and reasons pass in both directions, and a missing one too', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const cases = [
    { by: 'caller', code: 1000, reason: 'done' },
    { by: 'caller', code: undefined, reason: '' },
    { by: 'receiver', code: 3999, reason: 'later' },
    { by: 'receiver', code: 1011, reason: '' },
    { by: 'receiver', code: undefined, reason: '' },
  ] as const;
  for (const [index, { by, code, reason }] of cases.entries()) {
    const client = proxy.connect();
    await client.opened;
    const peer = await until('the receiver has it', () => proxy.webSockets.sockets[index]);
    const peerClosed = new Promise((resolve) => peer.on('close', (...event) => resolve(event[0])));
    (by === 'caller' ? client.socket : peer).close(code, reason);
    t.same(await client.closed, { code: code ?? 1005, reason }, `to the caller, by the ${by}`);
    t.equal(await peerClosed, code ?? 1005, `to the receiver, by the ${by}`);
    await until('it is counted', () => proxy.counted.webSocketCloses.length === index + 1);
    t.equal(proxy.counted.webSocketCloses[index], by);
  }
});

t.test('subprotocols are offered as they came, and the choice comes back', async (t) => {
  const proxy = await startWebSocketProxy(t, { server: { handleProtocols: (offered) => [...offered][1] ?? false } });
  const client = proxy.connect({ protocols: ['v1.example', 'v2.example'] });
  await client.opened;
  t.equal(client.socket.protocol, 'v2.example');
  t.equal(proxy.webSockets.upgrades[0]?.headers['sec-websocket-protocol'], 'v1.example,v2.example');
});

t.test('permessage-deflate is agreed between the ends, and its frames are not touched', async (t) => {
  const proxy = await startWebSocketProxy(t, { server: { perMessageDeflate: { threshold: 0 } } });
  const client = proxy.connect({ perMessageDeflate: { threshold: 0 } });
  await client.opened;
  t.match(client.socket.extensions, /permessage-deflate/);
  const long = 'compressible '.repeat(10_000);
  client.socket.send(long);
  await until('the echo', () => client.messages.length === 1);
  t.equal(client.messages[0], long);
});

t.test('ping and pong go from end to end', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const client = proxy.connect();
  await client.opened;
  const pong = new Promise((resolve) => client.socket.on('pong', (data) => resolve(data.toString())));
  client.socket.ping('from the caller');
  t.equal(await pong, 'from the caller');
  const [peer] = proxy.webSockets.sockets;
  const answered = new Promise((resolve) => peer?.on('pong', (data) => resolve(data.toString())));
  peer?.ping('from the receiver');
  t.equal(await answered, 'from the receiver');
});

t.test('the WebSocket of undici, which is that of Node and close to that of browsers', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const socket = new FetchWebSocket(`${proxy.url}/live?q=1`, { protocols: ['chat'], headers: proxy.authorization() });
  const heard: unknown[] = [];
  socket.addEventListener('open', () => socket.send('hello'));
  socket.addEventListener('message', ({ data }) => {
    heard.push(data);
    socket.close(4001, 'bye');
  });
  const closed = new Promise((resolve) =>
    socket.addEventListener('close', ({ code, reason }) => resolve({ code, reason })),
  );
  t.same(await closed, { code: 4001, reason: 'bye' });
  t.same(heard, ['hello']);
  t.equal(proxy.webSockets.upgrades[0]?.url, '/live?q=1');
});

t.test('messages of every size class arrive whole, in both directions at once', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const client = proxy.connect();
  await client.opened;
  const sizes = [0, 1, 125, 126, 127, 65_535, 65_536, 65_537, 1_000_000];
  const sent = sizes.map((size) => 'x'.repeat(size));
  for (const text of sent) client.socket.send(text);
  await until('all echoes', () => client.messages.length === sizes.length);
  t.same(
    client.messages.map(({ length }) => length),
    sizes,
  );
});

t.test('a public route passes no identity, and needs no token', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const client = proxy.connect({ path: '/open', anonymous: true });
  await client.opened;
  t.equal(proxy.webSockets.upgrades[0]?.headers['x-auth-subject'], undefined);
});

t.test('a WebSocket route still takes plain requests', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const raw = await connectRaw(proxy.port);
  t.teardown(raw.end);
  raw.write(`GET /live HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  const answer = await raw.readResponse();
  t.same([answer?.status, answer?.text, answer?.field('connection')], [404, 'plain', 'keep-alive']);
  raw.write(handshake(`${soundFields}${proxy.bearer()}`));
  t.equal((await raw.readResponse())?.status, 101, 'and switches a connection that was used before');
});

t.test("the response is the upstream's: its proof, without what it may not say", async (t) => {
  const proxy = await startWebSocketProxy(t);
  const { raw, answer } = await switchRaw(t, proxy, `${soundFields}${proxy.bearer()}X-Request-Id: req-1\r\n`);
  t.equal(
    answer.field('sec-websocket-accept'),
    createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64'),
  );
  t.same(
    [answer.field('upgrade'), answer.field('connection'), answer.field('x-request-id')],
    ['websocket', 'Upgrade', 'req-1'],
  );
  raw.write(frame(1, 'one'));
  await until('the echo', () => raw.pending().length === 5);
  t.same(raw.pending(), frame(1, 'one', { masked: false }));
});

t.test('what comes before the switch is held back, and is no request', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const raw = await connectRaw(proxy.port);
  t.teardown(raw.end);
  raw.write(Buffer.concat([Buffer.from(handshake(`${soundFields}${proxy.bearer()}`)), frame(1, 'early')]));
  t.equal((await raw.readResponse())?.status, 101);
  await until('the echo', () => raw.pending().includes('early'));
});

t.test('handshakes behind other requests of a connection wait for their responses', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const raw = await connectRaw(proxy.port);
  t.teardown(raw.end);
  const get = `GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`;
  raw.write(`${get}${get}${handshake(`${soundFields}${proxy.bearer()}`)}`);
  t.equal((await raw.readResponse())?.status, 404);
  t.equal((await raw.readResponse())?.status, 404);
  t.equal((await raw.readResponse())?.status, 101);
  raw.write(frame(1, 'hello'));
  await until('the echo', () => raw.pending().includes('hello'));
});

t.test('many at once, closed by either end', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const clients: Client[] = Array.from({ length: 60 }, () => proxy.connect());
  await Promise.all(clients.map(async ({ opened }) => opened));
  t.equal(proxy.server.openWebSockets(), 60);
  for (const { socket } of clients) socket.send('hello');
  await until('all echoes', () => clients.every(({ messages }) => messages.length === 1));
  for (const [index, { socket }] of clients.entries()) {
    if (index % 3 === 0) socket.close();
    else if (index % 3 === 1) socket.terminate();
    else proxy.webSockets.sockets[index]?.terminate();
  }
  await until('none is left', () => proxy.server.openWebSockets() === 0 && proxy.webSockets.open() === 0);
  await until('each has its line', () => proxy.records.length === 60);
});

/** The connection below a WebSocket of the library. */
function socketOf(webSocket: WebSocket): Socket {
  return (webSocket as unknown as { readonly _socket: Socket })._socket;
}

/** Writes a message again and again, as fast as it is taken; how many bytes were. */
function sendOn(socket: Socket, message: Buffer): () => number {
  let taken = 0;
  const send = (): void => {
    socket.write(message, (error?: Error | null) => {
      if (error instanceof Error) return;
      taken += message.length;
      send();
    });
  };
  send();
  return () => taken;
}

const MiB = 2 ** 20;
/** What the buffers of a pair of sockets hold, and more. */
const buffered = 32 * MiB;

/** Waits until no more is taken, or it is much. */
async function stalled(taken: () => number): Promise<void> {
  let last = -1;
  while (taken() !== last && taken() < 8 * buffered) {
    last = taken();
    await sleep(300);
  }
}

t.test('of what a receiver sends on to a caller that is gone little is read, and its connection is cut', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const client = proxy.connect();
  await client.opened;
  client.socket.pause();
  const peer = await until('the receiver has it', () => proxy.webSockets.sockets[0]);
  // It sends whatever it hears: neither the end of the caller's side nor a Close ends it.
  const socket = socketOf(peer);
  socket.removeAllListeners('end').removeAllListeners('data').resume();
  socket.allowHalfOpen = true;
  const taken = sendOn(socket, frame(2, Buffer.alloc(64 * 1024), { masked: false }));
  await stalled(taken);
  const [before, beganMs] = [taken(), performance.now()];
  client.socket.terminate();
  await until('its connection is cut', () => socket.destroyed);
  t.ok(taken() - before < buffered, `${String(Math.round((taken() - before) / MiB))} MiB`);
  t.ok(performance.now() - beganMs < 4_000, 'before the time for an answer to a Close is over');
  await until('its place is free', () => proxy.server.openWebSockets() === 0);
});

t.test('of what a caller sends behind its Close little is read', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const { raw } = await switchRaw(t, proxy);
  const peer = await until('the receiver has it', () => proxy.webSockets.sockets[0]);
  // A receiver that neither answers the Close nor ends.
  peer.pause();
  raw.write(frame(8, ''));
  const taken = sendOn(raw.socket, Buffer.alloc(MiB));
  await stalled(taken);
  t.ok(taken() < buffered, `${String(taken() / MiB)} MiB`);
  await raw.closed;
});

t.test('what a target that was ended cannot take is forgotten, and little of it is read', (t) => {
  const [source, target] = [new PassThrough(), new PassThrough()];
  source.resume();
  target.end();
  let stops = 0;
  const direction = new RelayDirection(source, target, new FrameReader({ masked: false, extended: false }), () => {
    stops += 1;
  });
  const message = frame(2, Buffer.alloc(64 * 1024), { masked: false });
  for (let sent = 0; sent < 0.9 * MiB; sent += message.length) direction.take(message);
  t.same([source.isPaused(), stops], [false, 0]);
  for (let sent = 0; sent < 0.9 * MiB; sent += message.length) direction.take(message);
  t.same([source.isPaused(), stops], [true, 1]);
  t.end();
});

t.test(
  'a receiver that sends on and takes nothing is cut once the caller is gone, whatever is unsent to it',
  async (t) => {
    const proxy = await startWebSocketProxy(t);
    const { raw } = await switchRaw(t, proxy);
    raw.socket.pause();
    const peer = await until('the receiver has it', () => proxy.webSockets.sockets[0]);
    const socket = socketOf(peer);
    socket.removeAllListeners('end').removeAllListeners('data').pause();
    socket.allowHalfOpen = true;
    socket.on('error', () => undefined);
    const down = sendOn(socket, frame(2, Buffer.alloc(64 * 1024), { masked: false }));
    const up = sendOn(raw.socket, frame(2, Buffer.alloc(64 * 1024)));
    await stalled(() => up() + down());
    raw.socket.resetAndDestroy();
    await until('its place is free', () => proxy.server.openWebSockets() === 0, 15_000);
  },
);
