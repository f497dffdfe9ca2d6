/** Bodies, windows, settings and trailers of requests over HTTP/2, against Node's server and one that writes frames. */
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { PassThrough, Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { listen } from '../../../support/listening.js';
import { until } from '../../../support/until.js';
import { startUpstream } from '../upstream-harness.js';
import {
  data,
  flag,
  frameType,
  head,
  setting,
  settingsFrame,
  startFrameUpstream,
  trailerFrame,
  whole,
  windowUpdate,
} from './frame-upstream.js';

const http2 = { http2: true };

type OnStream = (stream: ServerHttp2Stream, headers: Readonly<Record<string, unknown>>, rawHeaders: string[]) => void;

async function startServer(t: Test, onStream: OnStream): Promise<string> {
  const server = createServer();
  server.on(
    'stream',
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, rawHeaders: string[]) => {
      stream.on('error', () => undefined);
      onStream(stream, headers, rawHeaders);
    },
  );
  const { port } = await listen(t, server);
  return `http://127.0.0.1:${String(port)}`;
}

t.test('the head: pseudo-headers, names in lower case, values byte for byte, several lines of a name', async (t) => {
  let seen: string[] = [];
  const url = await startServer(t, (stream, _headers, rawHeaders) => {
    seen = rawHeaders;
    stream.respond({ ':status': 200, 'x-b': 'é' }, { endStream: true });
  });
  const { send } = startUpstream(t, url, http2);
  let fields: readonly string[] = [];
  const heard = send(
    {
      target: '/a%2Fb?c=d',
      headers: [
        'Host',
        'shop.example:8080',
        'X-A',
        'caf\xe9',
        'Cookie',
        'a=1; b=2',
        'X-A',
        'two',
        '__proto__',
        'x',
        'constructor',
        'y',
        'If-None-Match',
        '"a"',
        'If-None-Match',
        '"b"',
        'TE',
        'trailers',
        '12',
        '34',
      ],
    },
    undefined,
    (_status, rawHeaders) => {
      fields = rawHeaders;
    },
  );
  await until('it ended', () => heard.ends() > 0);
  t.equal(heard.failure(), null);
  t.same(pairs(seen), [
    '12: 34',
    ':authority: shop.example:8080',
    ':method: GET',
    ':path: /a%2Fb?c=d',
    ':scheme: http',
    '__proto__: x',
    'constructor: y',
    'cookie: a=1; b=2',
    'if-none-match: "a", "b"',
    'te: trailers',
    'x-a: caf\xe9',
    'x-a: two',
  ]);
  t.same(fields.slice(0, 2), ['x-b', '\xe9']);
});

t.test('what HTTP/2 has no place for is not sent', async (t) => {
  const upstream = await startFrameUpstream(t, (id, peer) => peer.send(whole(id, 'ok')));
  const { ask, send } = startUpstream(t, upstream.url, http2);
  t.equal(await ask(), '200 ok');
  const bad: readonly (readonly string[])[] = [
    ['Connection', 'close'],
    ['Keep-Alive', 'timeout=5'],
    ['Proxy-Connection', 'close'],
    ['Transfer-Encoding', 'chunked'],
    ['Upgrade', 'h2c'],
    ['TE', 'gzip'],
    ['Host', 'other'],
    ['Content-Length', '5'],
    ['X A', 'a'],
    ['X-A', 'a\r\nb: c'],
    ['X-A', 'a\0b'],
    [':path', '/other'],
    ['', 'a'],
    ['X-A', 'Ā'],
  ];
  for (const field of bad) {
    const heard = send({ headers: ['Host', 'a', ...field] });
    await until('it ended', () => heard.ends() > 0);
    t.equal(heard.failure()?.reason, 'internal', JSON.stringify(field));
    t.equal(heard.call.mayBeSent(), false);
  }
  for (const parts of [
    { headers: [] },
    { target: '/a b' },
    { target: '/é' },
    { method: 'GE T' },
    { upgrade: 'websocket' },
  ]) {
    const heard = send(parts);
    await until('it ended', () => heard.ends() > 0);
    t.equal(heard.failure()?.reason, 'internal', JSON.stringify(parts));
  }
  t.equal(upstream.came(frameType.headers).length, 1);
});

t.test('the body of a request: whole, streamed, with its length where that is known', async (t) => {
  const url = await startServer(t, (stream, headers) => {
    let body = '';
    stream.on('data', (bytes: Buffer) => (body += bytes.toString()));
    stream.on('end', () => {
      stream.respond({ ':status': 200 });
      stream.end(`${String(headers['content-length'])} ${body}`);
    });
  });
  const { ask } = startUpstream(t, url, http2);
  t.equal(await ask({ method: 'POST', body: null }), '200 0 ');
  t.equal(await ask({ method: 'POST', body: Buffer.from('hello') }), '200 5 hello');
  t.equal(
    await ask({ method: 'POST', body: Readable.from([Buffer.from('he'), Buffer.from('llo')]) }),
    '200 undefined hello',
  );
  const fields = ['Host', 'a', 'Content-Length', '5'];
  t.equal(await ask({ method: 'POST', headers: fields, body: Readable.from([Buffer.from('hello')]) }), '200 5 hello');
  const large = Buffer.alloc(300_000, 'x');
  t.equal((await ask({ method: 'PUT', body: large })).length, '200 300000 '.length + large.length);
});

t.test('a body that breaks off, or is not as long as was said, resets the stream and never ends it', async (t) => {
  const cases = [
    { name: 'breaks off', fields: ['Host', 'a'], act: (body: PassThrough) => body.destroy() },
    { name: 'ends early', fields: ['Host', 'a', 'Content-Length', '9'], act: (body: PassThrough) => body.end() },
    { name: 'goes on', fields: ['Host', 'a', 'Content-Length', '5'], act: (body: PassThrough) => body.end('more') },
  ];
  for (const { name, fields, act } of cases) {
    const upstream = await startFrameUpstream(t, () => undefined);
    const { send } = startUpstream(t, upstream.url, http2);
    const body = new PassThrough();
    body.on('error', () => undefined).write('hello');
    const heard = send({ method: 'POST', headers: fields, body });
    await until('some of it came', () => upstream.came(frameType.data).length > 0);
    act(body);
    await until('it ended', () => heard.ends() > 0);
    await until('it was reset', () => upstream.came(frameType.rstStream).length === 1);
    t.equal(upstream.came(frameType.rstStream)[0]?.payload.readUInt32BE(), 8, name);
    t.notOk(
      upstream.came(frameType.data).some(({ flags }) => (flags & flag.endStream) !== 0),
      name,
    );
    t.equal(heard.failure()?.reason, 'upstream_failed', name);
  }
});

t.test('a call that is cancelled resets its stream, and others on the connection go on', async (t) => {
  const upstream = await startFrameUpstream(t, (id, peer) => {
    if (id > 1) peer.send(whole(id, 'other'));
  });
  const { send, ask } = startUpstream(t, upstream.url, http2);
  const heard = send({ method: 'POST', body: new PassThrough() });
  await until('it came', () => upstream.came(frameType.headers).length === 1);
  heard.call.cancel();
  await until('it was reset', () => upstream.came(frameType.rstStream).length === 1);
  t.equal(heard.ends(), 0, 'the sink hears nothing more');
  t.equal(await ask(), '200 other');
  t.equal(upstream.peers.length, 1);
});

t.test('a response that nobody takes closes its window, and no other', async (t) => {
  const piece = Buffer.alloc(16_000, 'a');
  const upstream = await startFrameUpstream(t, (id, peer) => {
    if (id === 1) {
      peer.send(head(id, 200), ...Array.from({ length: 4 }, () => data(id, piece)), data(id, 'b'.repeat(1_000)));
    } else peer.send(whole(id, 'other'));
  });
  const { send, ask } = startUpstream(t, upstream.url, http2);
  let taken = 0;
  let resume = (): void => undefined;
  const heard = send({}, (bytes, goOn) => {
    taken += bytes.length;
    resume = goOn;
    return false;
  });
  await until('some came', () => taken > 0);
  t.equal(await ask(), '200 other');
  const updates = (): number => upstream.came(frameType.windowUpdate).filter(({ streamId }) => streamId === 1).length;
  t.equal(updates(), 0);
  const before = taken;
  await delay(50);
  t.equal(taken, before, 'nothing is handed on before it is asked for');
  resume();
  await until('all of it came', () => {
    resume();
    return taken === 65_000;
  });
  await until('the window opens again', () => updates() > 0);
  upstream.peers[0]?.send(data(1, 'end', true));
  await until('it ended', () => {
    resume();
    return heard.ends() > 0;
  });
  t.equal(heard.body().length, 65_003);
});

t.test('a window that stays shut holds the body back, in bounded memory', async (t) => {
  const upstream = await startFrameUpstream(t, () => undefined, { settings: [[setting.initialWindowSize, 0]] });
  const { send } = startUpstream(t, upstream.url, http2);
  let read = 0;
  const endless = new Readable({
    read() {
      read += 16_384;
      this.push(Buffer.alloc(16_384));
    },
  });
  const heard = send({ method: 'POST', body: endless });
  await until('it came', () => upstream.came(frameType.headers).length === 1);
  await delay(100);
  t.equal(upstream.came(frameType.data).length, 0);
  t.ok(read <= 10 * 16_384, `read ${String(read)} bytes`);
  upstream.peers[0]?.send(settingsFrame([[setting.initialWindowSize, 10_000]]));
  await until('as much came as it opened', () => sum(upstream.came(frameType.data)) === 10_000);
  upstream.peers[0]?.send(windowUpdate(1, 5_000));
  await until('and more', () => sum(upstream.came(frameType.data)) === 15_000);
  heard.call.cancel();
  endless.destroy();
});

t.test('no more streams than the upstream allows, also when that changes', async (t) => {
  const open: number[] = [];
  const upstream = await startFrameUpstream(t, (id) => open.push(id), {
    settings: [[setting.maxConcurrentStreams, 3]],
  });
  const { send, upstream: own } = startUpstream(t, upstream.url, { ...http2, maxConnections: 1 });
  const all = Array.from({ length: 8 }, (_, i) => send({ holder: `caller ${String(i)}` }));
  await until('three are open', () => open.length === 3);
  await delay(30);
  t.equal(open.length, 3);
  t.same(own.counts(), { active: 3, waiting: 5 });
  const [peer] = upstream.peers;
  peer?.send(settingsFrame([[setting.maxConcurrentStreams, 5]]));
  await until('five are open', () => open.length === 5);
  peer?.send(settingsFrame([[setting.maxConcurrentStreams, 1]]));
  await delay(30);
  for (const id of open.slice(0, 4)) peer?.send(whole(id, 'ok'));
  await delay(30);
  t.equal(open.length, 5, 'no more while one is left of five');
  while (all.some((heard) => heard.ends() === 0)) {
    for (const id of open.splice(0)) peer?.send(whole(id, 'ok'));
    await delay(10);
  }
  t.same(
    all.map((heard) => heard.failure()),
    all.map(() => null),
  );
  t.equal(upstream.peers.length, 1);
});

t.test('a new connection is opened only when every open one is full, and no caller has all streams', async (t) => {
  const upstream = await startFrameUpstream(t, () => undefined);
  const { send, upstream: own } = startUpstream(t, upstream.url, { ...http2, maxConnections: 2, maxStreams: 4 });
  const flood = Array.from({ length: 20 }, () => send({ holder: 'flood' }));
  await until('its share is open', () => upstream.came(frameType.headers).length === 7);
  t.same(
    upstream.peers.map(({ frames }) => frames.filter(({ type }) => type === frameType.headers).length),
    [4, 3],
  );
  send({ holder: 'other' });
  await until('another has the last place', () => upstream.came(frameType.headers).length === 8);
  t.equal(own.connections(), 2);
  for (const heard of flood) heard.call.cancel();
});

t.test('trailers: those of the response are told, those of the request go out', async (t) => {
  const seen: Record<string, unknown>[] = [];
  const url = await startServer(t, (stream) => {
    stream.on('trailers', (trailers: Record<string, unknown>) =>
      seen.push(Object.fromEntries(Object.entries(trailers))),
    );
    stream.resume().on('end', () => {
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'x-m': ['a', 'b'] }));
      stream.end('hello');
    });
  });
  const { send } = startUpstream(t, url, http2);
  const body = Object.assign(Readable.from([Buffer.from('ping')]), {
    trailers: () => ['Content-Digest', 'x', 'x-a', '1', 'x-a', '2'],
  });
  const none = Object.assign(Readable.from([Buffer.from('ping')]), { trailers: () => null });
  for (const sent of [body, none]) {
    const heard = send({ method: 'POST', body: sent });
    await until('it ended', () => heard.ends() > 0);
    t.equal(heard.body().toString(), 'hello');
    t.same(heard.trailers(), ['grpc-status', '0', 'x-m', 'a', 'x-m', 'b']);
  }
  t.same(seen, [{ 'content-digest': 'x', 'x-a': '1, 2' }]);
});

t.test('a response that is trailers alone, and one whose trailers come late', async (t) => {
  const upstream = await startFrameUpstream(t, (id, peer) => {
    if (id === 1) peer.send(head(id, 200, { fields: [['grpc-status', '12']], end: true }));
    else {
      peer.send(head(id, 200), data(id, 'a'));
      setTimeout(() => peer.send(trailerFrame(id, [['grpc-status', '0']])), 20);
    }
  });
  const { send } = startUpstream(t, upstream.url, http2);
  const first = send();
  await until('it ended', () => first.ends() > 0);
  t.same([first.status(), first.trailers()], [200, null]);
  const second = send();
  await until('it ended', () => second.ends() > 0);
  t.same([second.body().toString(), second.trailers()], ['a', ['grpc-status', '0']]);
});

function sum(frames: readonly { readonly payload: Buffer }[]): number {
  return frames.reduce((total, { payload }) => total + payload.length, 0);
}

function pairs(rawHeaders: readonly string[]): readonly string[] {
  return rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${rawHeaders[i + 1] ?? ''}`] : [])).sort();
}
