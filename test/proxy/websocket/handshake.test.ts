import { certificates } from '../../support/certificates.js';
import { join } from 'node:path';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { once } from 'node:events';
import t from 'tap';
import { WebSocket, WebSocketServer } from 'ws';
import { acceptOf } from '../../../src/decision/websocket/handshake.js';
import { handshakeFields, handshakes } from '../../support/attacks/handshakes.js';
import { listen } from '../../support/listening.js';
import { connectRaw, sendRaw } from '../../support/raw-client.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';
import { startRawUpstream } from '../upstream/raw-upstream.js';
import {
  clientOf,
  frame,
  handshake,
  key,
  soundFields,
  startWebSocketProxy,
  switchRaw,
  webSocketRoutes,
} from './websocket-proxy.js';

interface RefusedHere {
  readonly name: string;
  readonly fields: string;
  readonly status: number;
  readonly reason: string;
  readonly method?: string;
  readonly version?: string;
  readonly path?: string;
}

const refusedHere: readonly RefusedHere[] = [
  ...handshakes.flatMap(({ name, method = 'GET', httpVersion = '1.1', fields, expected }): readonly RefusedHere[] => {
    if (expected === null) return [];
    // Whatever else it is: by default nothing of HTTP/1.0 is taken.
    const reason = httpVersion === '1.0' ? 'http_version' : expected;
    const status = reason === 'websocket_version' ? 426 : 400;
    return [{ name, method, version: `HTTP/${httpVersion}`, fields: linesOf(handshakeFields(fields)), status, reason }];
  }),
  { name: 'a route without WebSockets', fields: soundFields, path: '/orders', status: 400, reason: 'upgrade_refused' },
];

function linesOf(fields: readonly string[]): string {
  return fields.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
}

t.test('RFC 6455 §4.2.1: what is no sound handshake is refused, and leaves no tunnel', async (t) => {
  const proxy = await startWebSocketProxy(t);
  for (const { name, fields, status, reason, ...head } of refusedHere) {
    const { path, method, version } = { path: '/live', method: 'GET', version: 'HTTP/1.1', ...head };
    // The bytes after the head would be a request of their own.
    const smuggled = `GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`;
    const answers = await sendRaw(
      proxy.port,
      handshake(`${fields}${proxy.bearer()}`, path, method, version) + smuggled,
      { untilClosed: true },
    );
    t.same(
      answers.map((answer) => answer.status),
      [status],
      name,
    );
    t.match(answers[0]?.field('proxy-status'), /^sallyport; /, name);
    t.equal(answers[0]?.field('connection'), 'close', name);
    if (status === 426) {
      t.same([answers[0]?.field('sec-websocket-version'), answers[0]?.field('upgrade')], ['13', 'websocket']);
    }
    t.equal(proxy.records.at(-1)?.reason, reason, name);
  }
  t.equal(proxy.webSockets.upgrades.length, 0);
  await until('no connection is left', () => proxy.server.counts().connections === 0);
});

t.test('without a credential all that is answered is 401, whether the route takes WebSockets or not', async (t) => {
  const proxy = await startWebSocketProxy(t);
  for (const path of ['/live', '/orders', '/nowhere']) {
    const [answer] = await sendRaw(proxy.port, handshake(soundFields, path), { untilClosed: true });
    t.same([answer?.status, answer?.field('www-authenticate')], [401, 'Bearer realm="sallyport"'], path);
  }
  for (const token of ['?access_token=x', '?token=x']) {
    const [answer] = await sendRaw(proxy.port, handshake(soundFields, `/live${token}`));
    t.equal(answer?.status, 401, 'a token never comes from a URL');
  }
  const [subprotocol] = await sendRaw(proxy.port, handshake(`${soundFields}Sec-WebSocket-Protocol: bearer, x\r\n`));
  t.equal(subprotocol?.status, 401, 'nor from a subprotocol');
});

t.test('what a caller that is refused sends on is read and forgotten, so that it gets its response', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const raw = await connectRaw(proxy.port);
  t.teardown(raw.end);
  raw.write(Buffer.concat([Buffer.from(handshake(soundFields)), frame(1, 'x'.repeat(300_000))]));
  t.equal((await raw.readResponse())?.status, 401);
  await raw.closed;
  t.equal(proxy.webSockets.upgrades.length, 0);
});

t.test('an upstream that does not switch has answered like any other', async (t) => {
  const upstream = await startRawUpstream(t, (socket, received) => {
    const status = received.includes('/live?no') ? '426 Upgrade Required' : '200 OK';
    socket.write(`HTTP/1.1 ${status}\r\nX-Own: yes\r\nX-Auth-Subject: evil\r\nContent-Length: 5\r\n\r\nplain`);
  });
  const proxy = await startProxy(t, { config: { routes: webSocketRoutes }, upstreamUrl: upstream.url });
  for (const [path, status] of [
    ['/live?no', 426],
    ['/live', 200],
  ] as const) {
    const smuggled = `GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`;
    const answers = await sendRaw(proxy.port, handshake(`${soundFields}${proxy.bearer()}`, path) + smuggled, {
      untilClosed: true,
    });
    t.match(
      answers.map((answer) => [answer.status, answer.text, answer.field('x-own'), answer.field('x-auth-subject')]),
      [[status, 'plain', 'yes', null]],
    );
  }
  t.notMatch(upstream.received().join(''), /\/orders/, 'what came after the head is no request');
  t.equal(upstream.hits(), 2);
  await until('they are recorded', () => proxy.records.length === 2);
  t.match(proxy.records, [{ status: 426, decision: 'forwarded', reason: null }, { status: 200 }]);
});

t.test(
  'a response that is being written goes on when a handshake is pipelined behind it, and a caller that hangs up then is noticed',
  async (t) => {
    for (const hangsUp of [false, true]) {
      // More than a system takes of what nobody reads: Linux keeps up to 4 MiB at one end and 6 at the other.
      const body = 'x'.repeat(hangsUp ? 32_000_000 : 4_000_000);
      const upstream = await startRawUpstream(t, (socket, received) => {
        if (received.includes('/large')) {
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
        } else socket.write('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 5\r\n\r\nplain');
      });
      const large = { name: 'large', methods: ['GET'], path: '/large', access: 'public' };
      const proxy = await startProxy(t, { config: { routes: [...webSocketRoutes, large] }, upstreamUrl: upstream.url });
      const raw = await connectRaw(proxy.port);
      t.teardown(raw.end);
      if (hangsUp) raw.socket.pause();
      raw.write(`GET /large HTTP/1.1\r\nHost: a\r\n\r\n${handshake(`${soundFields}${proxy.bearer()}`)}`);
      await until('it has begun', () => upstream.hits() >= 1);
      if (hangsUp) {
        await until('the answer is stuck', () => proxy.server.counts().inFlight === 1);
        raw.socket.destroy();
      } else {
        t.equal((await raw.readResponse())?.text.length, body.length);
        t.equal((await raw.readResponse())?.text, 'plain');
      }
      await until(
        'nothing is in flight',
        () => proxy.server.counts().inFlight === 0 && proxy.server.counts().connections === 0,
      );
    }
  },
);

t.test('a large response instead of the switch comes whole, at the pace of its reader', async (t) => {
  const body = 'x'.repeat(12 * 1024 * 1024);
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  });
  const proxy = await startProxy(t, { config: { routes: webSocketRoutes }, upstreamUrl: upstream.url });
  const raw = await connectRaw(proxy.port);
  t.teardown(raw.end);
  let read = 0;
  raw.socket.removeAllListeners('data').on('data', (chunk: Buffer) => {
    read += chunk.length;
  });
  raw.write(handshake(`${soundFields}${proxy.bearer()}`));
  await until('it begins', () => read > 0);
  raw.socket.pause();
  await until('the receiver has sent what fits', () => upstream.hits() === 1);
  raw.socket.resume();
  await raw.closed;
  t.ok(read > body.length);
  await until('it is recorded', () => proxy.records.length === 1);
  t.match(proxy.records, [{ status: 200, reason: null }]);
});

t.test('what is revoked while the upstream thinks about the switch is closed right after it', async (t) => {
  let answer = (): void => undefined;
  const upstream = await startRawUpstream(t, (socket) => {
    answer = () => socket.write(`HTTP/1.1 101 S\r\n${accepted}\r\n`);
  });
  const proxy = await startProxy(t, { config: { routes: webSocketRoutes }, upstreamUrl: upstream.url });
  const raw = await connectRaw(proxy.port);
  t.teardown(raw.end);
  raw.write(handshake(`${soundFields}${proxy.bearer()}`));
  await until('the receiver is asked', () => upstream.hits() === 1);
  proxy.reload({ routes: webSocketRoutes, revoked: { subjects: ['checkout'] } });
  await proxy.server.reauthorizeConnections();
  answer();
  t.equal((await raw.readResponse())?.status, 101);
  await until('4401', () => raw.pending().includes('unauthorized'));
});

t.test('an upstream that switches after the drain has begun is left, and the caller is told 503', async (t) => {
  let answer = (): void => undefined;
  const upstream = await startRawUpstream(t, (socket) => {
    answer = () => socket.write(`HTTP/1.1 101 S\r\n${accepted}\r\n`);
  });
  const proxy = await startProxy(t, { config: { routes: webSocketRoutes }, upstreamUrl: upstream.url });
  const raw = await connectRaw(proxy.port);
  t.teardown(raw.end);
  raw.write(handshake(`${soundFields}${proxy.bearer()}`));
  await until('the receiver is asked', () => upstream.hits() === 1);
  const drained = proxy.server.drain(60_000);
  answer();
  t.match((await raw.readResponse())?.text, 'urn:sallyport:shutting-down');
  raw.end();
  await drained;
  await until('the receiver is left', () => upstream.open() === 0);
});

const accepted = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n`;
const badAnswers = [
  { name: 'no proof', answer: 'HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n' },
  {
    name: 'the proof of another key',
    answer: `HTTP/1.1 101 S\r\n${accepted.replace(acceptOf(key), acceptOf('x'))}\r\n`,
  },
  { name: 'another protocol', answer: `HTTP/1.1 101 S\r\n${accepted.replace('websocket', 'h2c')}\r\n` },
  { name: 'a subprotocol that nobody named', answer: `HTTP/1.1 101 S\r\n${accepted}Sec-WebSocket-Protocol: x\r\n\r\n` },
  {
    name: 'an extension that nobody named',
    answer: `HTTP/1.1 101 S\r\n${accepted}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n`,
  },
  { name: '101 without Upgrade', answer: 'HTTP/1.1 101 S\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison' },
  { name: 'no HTTP', answer: 'hello\r\n\r\n' },
  { name: 'nothing', answer: '' },
] as const;

t.test('an upstream that switches wrongly: 502, and its connection is closed', async (t) => {
  for (const { name, answer } of badAnswers) {
    const upstream = await startRawUpstream(t, (socket) => {
      if (answer === '') socket.destroy();
      else socket.write(answer);
    });
    const proxy = await startProxy(t, {
      config: { routes: webSocketRoutes, upstream: { response_timeout: '1s' } },
      upstreamUrl: upstream.url,
    });
    const [response] = await sendRaw(proxy.port, handshake(`${soundFields}${proxy.bearer()}`), { untilClosed: true });
    t.ok(
      response?.status === 502 || (name === '101 without Upgrade' && response?.status === 200),
      `${name}: ${String(response?.status)}`,
    );
    await until('the receiver is left', () => upstream.open() === 0);
    t.equal(upstream.connections(), 1, 'nothing is sent again');
    t.equal(proxy.server.openWebSockets(), 0);
  }
});

t.test('an upstream that cannot be reached, or does not answer: 503, 504', async (t) => {
  const silent = await startRawUpstream(t, () => undefined);
  const slow = await startProxy(t, {
    config: { routes: webSocketRoutes, upstream: { response_timeout: '200ms' } },
    upstreamUrl: silent.url,
  });
  const [late] = await sendRaw(slow.port, handshake(`${soundFields}${slow.bearer()}`));
  t.equal(late?.status, 504);
  const closed = await startProxy(t, { config: { routes: webSocketRoutes }, upstreamUrl: 'http://127.0.0.1:1' });
  const [unreachable] = await sendRaw(closed.port, handshake(`${soundFields}${closed.bearer()}`));
  t.equal(unreachable?.status, 503);
});

t.test('a caller that leaves before the switch takes its handshake along', async (t) => {
  const upstream = await startRawUpstream(t, () => undefined);
  const proxy = await startProxy(t, { config: { routes: webSocketRoutes }, upstreamUrl: upstream.url });
  for (const how of ['end', 'reset'] as const) {
    const raw = await connectRaw(proxy.port);
    raw.write(handshake(`${soundFields}${proxy.bearer()}`));
    await until('the receiver is asked', () => upstream.open() === 1);
    if (how === 'end') raw.socket.end();
    else raw.socket.resetAndDestroy();
    await until('the receiver is left', () => upstream.open() === 0);
  }
  await until('they are recorded', () => proxy.records.length === 2);
  t.match(proxy.records, [
    { reason: 'caller_gone', status: 0 },
    { reason: 'caller_gone', status: 0 },
  ]);
});

t.test('beyond max_websockets callers are told 503 at once, and requests are served on', async (t) => {
  const proxy = await startWebSocketProxy(t, { config: { listen: { max_websockets: 4, max_in_flight: 4 } } });
  const open = [];
  for (let i = 0; i < 4; i++) open.push(await switchRaw(t, proxy));
  const [refused] = await sendRaw(proxy.port, handshake(`${soundFields}${proxy.bearer()}`));
  t.same([refused?.status, refused?.field('retry-after')], [503, '1']);
  const plain = await sendRaw(proxy.port, `GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  t.equal(plain[0]?.status, 404, 'their connections hold no place of a request');
  open[0]?.raw.end();
  await until('its place is free', () => proxy.server.openWebSockets() === 3);
  await switchRaw(t, proxy);
  const [public4] = await sendRaw(proxy.port, handshake(soundFields, '/open'));
  t.equal(public4?.status, 503);
});

t.test('public routes may have three quarters of the places', async (t) => {
  const proxy = await startWebSocketProxy(t, { config: { listen: { max_websockets: 4 } } });
  const clients = Array.from({ length: 3 }, () => proxy.connect({ path: '/open', anonymous: true }));
  await Promise.all(clients.map(async ({ opened }) => opened));
  const [fourth] = await sendRaw(proxy.port, handshake(soundFields, '/open'));
  t.equal(fourth?.status, 503);
  await switchRaw(t, proxy);
});

t.test('one caller leaves some of the places to others', async (t) => {
  const proxy = await startWebSocketProxy(t, { config: { listen: { max_websockets: 24 } } });
  const held = [];
  for (let i = 0; i < 21; i += 1) held.push(await switchRaw(t, proxy));
  const [refused] = await sendRaw(proxy.port, handshake(`${soundFields}${proxy.bearer()}`));
  t.equal(refused?.status, 503);
  const clients = Array.from({ length: 3 }, () => proxy.connect({ path: '/open', anonymous: true }));
  await Promise.all(clients.map(async ({ opened }) => opened));
  held[0]?.raw.end();
  await until('its place is free', () => proxy.server.openWebSockets() === 23);
  await switchRaw(t, proxy);
});

t.test('places are given back by handshakes that come to nothing', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => socket.write('HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n'));
  const proxy = await startProxy(t, {
    config: { routes: webSocketRoutes, listen: { max_websockets: 1 } },
    upstreamUrl: upstream.url,
  });
  for (let i = 0; i < 5; i++) {
    const [answer] = await sendRaw(proxy.port, handshake(`${soundFields}${proxy.bearer()}`), { untilClosed: true });
    t.equal(answer?.status, 403);
  }
});

t.test('the upstream over TLS is verified, and a unix socket will do', async (t) => {
  const { server, ca } = certificates(t);
  const webSockets = new WebSocketServer({ noServer: true });
  const unix = join(tempDir(t), 'app.sock');
  const [secure, local] = [createTlsServer({ cert: server.cert, key: server.key }), createServer()];
  for (const each of [secure, local]) {
    each.on('upgrade', (req, socket, head) =>
      webSockets.handleUpgrade(req, socket, head, (peer) => peer.on('message', (data) => peer.send(data))),
    );
  }
  const { port } = await listen(t, secure);
  local.listen(unix);
  await once(local, 'listening');
  t.teardown(() => {
    local.closeAllConnections();
    local.close();
    for (const each of webSockets.clients) each.terminate();
  });
  const cases = [
    {
      upstreamUrl: `https://127.0.0.1:${port}`,
      upstreamCa: ca.cert,
      tls: { cert: server.cert, key: server.key, clientCa: null, clientAuth: 'require' } as const,
    },
    { upstreamUrl: `unix:${unix}` },
  ];
  for (const options of cases) {
    const isTls = 'tls' in options;
    const listener = isTls ? { listen: { tls: { cert_file: '/tls/tls.crt', key_file: '/tls/tls.key' } } } : {};
    const proxy = await startProxy(t, { config: { routes: webSocketRoutes, ...listener }, ...options });
    const client = clientOf(
      t,
      new WebSocket(`${isTls ? 'wss' : 'ws'}://127.0.0.1:${proxy.port}/live`, {
        headers: proxy.authorization(),
        rejectUnauthorized: false,
      }),
    );
    await client.opened;
    client.socket.send('hello');
    await until('the echo', () => client.messages.length === 1);
    client.socket.close(1000);
    t.equal((await client.closed).code, 1000);
  }
  const unverified = await startProxy(t, {
    config: { routes: webSocketRoutes },
    upstreamUrl: `https://127.0.0.1:${port}`,
  });
  const [answer] = await sendRaw(unverified.port, handshake(`${soundFields}${unverified.bearer()}`));
  t.same([answer?.status, answer?.field('proxy-status')], [503, 'sallyport; error=tls_certificate_error']);
});
