/**
 * Holds Node to what of its HTTP/2 streams is used beside their documented interface: each title begins with the symbol
 * that is gone where its test fails.
 */
import { AsyncResource } from 'node:async_hooks';
import { once } from 'node:events';
import { connect, createServer, type ClientHttp2Stream, type Http2Session } from 'node:http2';
import { connect as connectTcp, createServer as createTcpServer } from 'node:net';
import t, { type Test } from 'tap';
import {
  endAfterReading,
  isDestroyed,
  NativeSession,
  openStream,
  readOn,
  readPast,
  resetStream,
} from '../../../src/proxy/node-internals/http2-stream.js';
import { untilForgotten } from '../../support/garbage.js';
import { frame, frameTypes, preface } from '../../support/http2-frames.js';
import { listen } from '../../support/listening.js';
import { until } from '../../support/until.js';
import {
  code,
  data,
  flag,
  frameType,
  goaway,
  head,
  reset,
  setNextId,
  startFrameUpstream,
  type Peer,
} from '../upstream/http2/frame-upstream.js';

interface Told {
  readonly events: string[];
  bytes: number;
  flows: boolean;
  readonly stream: ClientHttp2Stream;
}

/** Asks a receiver that answers so, and collects what the reader is told. */
async function ask(t: Test, answer: (id: number, peer: Peer) => void, flows = true): Promise<Told> {
  const upstream = await startFrameUpstream(t, answer);
  const session = connect(upstream.url).on('error', () => undefined);
  t.teardown(() => session.destroy());
  const stream = session.request({ ':path': '/' }, { endStream: true }).on('error', () => undefined);
  const told: Told = { events: [], bytes: 0, flows, stream };
  stream.on('ready', () => undefined);
  readPast(stream, {
    onPiece: (bytes) => {
      told.bytes += bytes.length;
      return told.flows;
    },
    onEndStream: () => told.events.push('end'),
    onClosed: () => told.events.push('closed'),
  });
  return told;
}

t.test('stream.push: Node hands on what came by it, and null for END_STREAM before the stream is closed', async (t) => {
  const answers: Readonly<Record<string, (id: number) => Buffer[]>> = {
    'at the last DATA frame': (id) => [head(id, 200), data(id, 'hello', true)],
    'at an empty one': (id) => [head(id, 200), data(id, 'hello'), data(id, '', true)],
  };
  for (const [name, answer] of Object.entries(answers)) {
    const told = await ask(t, (id, peer) => peer.send(...answer(id)));
    await until('the stream is closed', () => told.stream.destroyed);
    t.equal(told.events[0], 'end', name);
    t.equal(told.bytes, 5, name);
  }
  const short = await ask(t, (id, peer) => peer.send(head(id, 204, { end: true })));
  await until('the stream is closed', () => short.stream.destroyed);
  t.equal(short.events[0], 'end', 'at the head');
});

t.test('stream.push: Node pushes null for every other end when the stream is closed', async (t) => {
  const ends: Readonly<Record<string, (id: number, peer: Peer) => void>> = {
    'RST_STREAM with NO_ERROR': (id, peer) => peer.send(reset(id, code.noError)),
    'RST_STREAM with CANCEL': (id, peer) => peer.send(reset(id, code.cancel)),
    'RST_STREAM with INTERNAL_ERROR': (id, peer) => peer.send(reset(id, code.internalError)),
    GOAWAY: (_id, peer) => peer.send(goaway(0, code.noError)),
    'the end of TCP': (_id, { socket }) => socket.end(),
    'a reset of TCP': (_id, { socket }) => socket.resetAndDestroy(),
  };
  for (const [name, end] of Object.entries(ends)) {
    let endNow = (): void => undefined;
    const told = await ask(t, (id, peer) => {
      endNow = () => end(id, peer);
      peer.send(head(id, 200), data(id, 'half'));
    });
    await until('half of it came', () => told.bytes === 4);
    endNow();
    await until('it was told', () => told.events.length > 0);
    t.equal(told.events[0], 'closed', name);
  }
});

t.test('stream._read: Node reads on by it, after false stopped it and the window was used up', async (t) => {
  const piece = Buffer.alloc(16_000, 'a');
  const told = await ask(
    t,
    (id, peer) => {
      peer.send(head(id, 200), ...Array.from({ length: 4 }, () => data(id, piece)));
    },
    false,
  );
  await until('the window is nearly full', () => told.bytes === 64_000);
  const { stream } = told;
  t.ok((stream.state.localWindowSize ?? 0) <= 65_535);
  const before = stream.state.localWindowSize ?? 0;
  t.ok(before < 40_000, 'nothing is given back while it is stopped');
  told.flows = true;
  readOn(stream);
  await until('the window opens', () => (stream.state.localWindowSize ?? 0) > before);
});

t.test('stream.end: without it a stream that is closed in the middle of its body does not end it', async (t) => {
  let hasHead = false;
  const upstream = await startFrameUpstream(t, () => {
    hasHead = true;
  });
  const session = connect(upstream.url).on('error', () => undefined);
  t.teardown(() => session.destroy());
  const stream = session.request({ ':path': '/', ':method': 'POST' }).on('error', () => undefined);
  stream.write('half');
  await until('half of it came', () => hasHead && upstream.came(frameType.data).length === 1);
  resetStream(stream, code.cancel);
  await until('it was reset', () => upstream.came(frameType.rstStream).length === 1);
  t.equal(upstream.came(frameType.rstStream)[0]?.payload.readUInt32BE(), code.cancel);
  t.same(
    upstream.came(frameType.data).filter(({ flags }) => (flags & flag.endStream) !== 0),
    [],
  );
  await until('Node forgets it', () => stream.destroyed);
});

t.test(
  'stream.id: a stream has one as soon as it is asked for, unless those of its connection are used up',
  async (t) => {
    const upstream = await startFrameUpstream(t, (id, peer) => peer.send(head(id, 204, { end: true })));
    const session = connect(upstream.url).on('error', () => undefined);
    t.teardown(() => session.destroy());
    await once(session, 'remoteSettings');
    setNextId(session, 2 ** 31 - 1);
    const last = session.request({ ':path': '/' }, { endStream: true });
    t.equal(last.id, 2 ** 31 - 1);
    await once(last, 'response');
    const none = session.request({ ':path': '/' }, { endStream: true });
    t.equal(none.id, undefined);
    const [error] = (await once(none, 'close').catch((failure: unknown) => [failure])) as [NodeJS.ErrnoException?];
    t.equal(error?.code, 'ERR_HTTP2_OUT_OF_STREAMS', 'and it says why, later');
    t.notOk(session.destroyed, 'the connection itself stays');
    t.equal(upstream.came(frameType.headers).length, 1, 'nothing was sent');
  },
);

t.test('kHandle: what Node has of a connection is found by it and kept until it is closed', async (t) => {
  const upstream = await startFrameUpstream(t, (id, peer) => peer.send(head(id, 204, { end: true })));
  const session = connect(upstream.url).on('error', () => undefined);
  await once(session, 'connect');
  const native = new NativeSession(session);
  t.match(keptBy(native)?.constructor.name, 'Http2Session');
  session.destroy();
  await until('it is let go', () => keptBy(native) === null);
});

/** A session and who listens to it, which holds what Node has of it: as ours do. */
function holding(session: Http2Session): WeakRef<Http2Session> {
  const native = new NativeSession(session);
  session.on('error', () => undefined).on('remoteSettings', () => keptBy(native));
  return new WeakRef(session);
}

t.test('kHandle: a connection whose settings were never acknowledged is forgotten', async (t) => {
  const settings = frame(frameTypes.settings, 0, 0);

  const server = createServer();
  const opened = once(server, 'session').then(([session]) => holding(session as Http2Session));
  const { port } = await listen(t, server);
  const caller = connectTcp(port, '127.0.0.1').on('error', () => undefined);
  caller.write(Buffer.concat([preface, settings]));
  const ofCaller = await opened;
  await once(caller, 'data');
  caller.destroy();
  await untilForgotten('that of a caller', ofCaller);

  const upstream = await listen(
    t,
    createTcpServer((socket) => {
      socket.on('error', () => undefined).write(settings);
    }),
  );
  const ofUpstream = await connectAndLeave(`http://127.0.0.1:${String(upstream.port)}`);
  await untilForgotten('that of an upstream', ofUpstream);
  t.pass('both are');
});

async function connectAndLeave(url: string): Promise<WeakRef<Http2Session>> {
  const session = connect(url);
  const held = holding(session);
  await once(session, 'remoteSettings');
  session.destroy();
  return held;
}

function keptBy(native: NativeSession): object | null {
  return Reflect.get(native, 'native') as object | null;
}

t.test(
  'session.destroy and session.close: Node ends a connection by them at a GOAWAY, and they can wait for a turn of the loop',
  async (t) => {
    const upstream = await startFrameUpstream(t, (id, peer) => peer.send(goaway(id, code.internalError)));
    const session = connect(upstream.url).on('error', () => undefined);
    endAfterReading(session);
    const calls: boolean[] = [];
    const later = session.destroy.bind(session);
    session.destroy = (...given) => {
      later(...given);
      calls.push(session.destroyed, isDestroyed(session));
    };
    session.request({ ':path': '/' }, { endStream: true }).on('error', () => undefined);
    await until('it is destroyed', () => session.destroyed);
    t.same(calls.slice(0, 2), [false, true]);
  },
);

t.test(
  'AsyncResource.bind: what opens a stream is bound by it, called at once, and needs it for nothing else',
  async (t) => {
    const server = createServer().on('stream', (stream) => {
      stream.on('error', () => undefined);
      stream.respond({ ':status': 200 });
      stream.end('all');
    });
    const { port } = await listen(t, server);
    const session = connect(`http://127.0.0.1:${String(port)}`).on('error', () => undefined);
    t.teardown(() => session.destroy());
    await once(session, 'connect');

    const prototype = AsyncResource.prototype as { bind: unknown };
    const { bind } = prototype;
    t.teardown(() => {
      prototype.bind = bind;
    });
    let calls = 0;
    prototype.bind = function counted(this: AsyncResource, ...given: unknown[]): unknown {
      calls += 1;
      return Reflect.apply(bind as () => unknown, this, given) as unknown;
    };
    session.request({ ':path': '/' }, { endStream: true }).resume();
    t.equal(calls, 1, 'Node binds it');
    prototype.bind = bind;

    const stream = openStream(session, { ':path': '/' }, { endStream: true, waitForTrailers: false });
    t.equal(prototype.bind, bind, 'what others bind is bound');
    t.ok(Number.isInteger(stream.id), 'it is open');
    let text = '';
    for await (const piece of stream.setEncoding('utf8')) text += String(piece);
    t.equal(text, 'all');

    t.throws(() => openStream(session, { ':nothing': '' }, { endStream: true, waitForTrailers: false }), {
      code: 'ERR_HTTP2_INVALID_PSEUDOHEADER',
    });
    t.equal(prototype.bind, bind, 'also where it is refused');
  },
);
