/** Bodies that an upstream does not read yet: what waits for its windows must not cost the other streams anything. */
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { listen } from '../../../support/listening.js';
import { until } from '../../../support/until.js';
import { startUpstream } from '../upstream-harness.js';
import {
  code,
  data,
  flag,
  frameType,
  head,
  setting,
  startFrameUpstream,
  whole,
  windowUpdate,
  type FrameUpstream,
} from './frame-upstream.js';

const mib = 1024 * 1024;

/** An upstream that answers a GET at once, and reads what is posted when it is told to. */
async function startUnreading(t: Test): Promise<{ readonly url: string; readonly posted: ServerHttp2Stream[] }> {
  const posted: ServerHttp2Stream[] = [];
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined);
    if (headers[':method'] === 'POST') posted.push(stream);
    else {
      stream.respond({ ':status': 200 });
      stream.end('hello');
    }
  });
  const { port } = await listen(t, server);
  return { url: `http://127.0.0.1:${String(port)}`, posted };
}

/** Reads all of it, and responds with its digest. */
function read(stream: ServerHttp2Stream): void {
  const hash = createHash('sha256');
  stream.on('data', (piece: Buffer) => hash.update(piece));
  stream.on('end', () => {
    stream.respond({ ':status': 200 });
    stream.end(hash.digest('hex'));
  });
}

const digest = (body: Buffer): string => createHash('sha256').update(body).digest('hex');

const loads: readonly { readonly name: string; readonly sizes: readonly number[]; readonly isStreamed?: boolean }[] = [
  { name: 'twelve bodies of 1 MiB', sizes: Array.from({ length: 12 }, () => mib) },
  { name: 'one body of 11 MiB', sizes: [11 * mib] },
  { name: 'bodies around the size of a piece', sizes: [1, 65_535, 65_536, 65_537, 131_072, 131_073] },
  { name: '250 bodies of 256 KiB', sizes: Array.from({ length: 250 }, () => 256 * 1024) },
  { name: '250 streamed bodies', sizes: Array.from({ length: 250 }, () => 256 * 1024), isStreamed: true },
];

for (const { name, sizes, isStreamed = false } of loads) {
  t.test(`while the upstream does not read ${name}, others are answered; then all arrive whole`, async (t) => {
    const upstream = await startUnreading(t);
    const { send, ask } = startUpstream(t, upstream.url, { http2: true, maxStreams: 300, maxConnections: 1 });
    t.equal(await ask(), '200 hello');
    const bodies = sizes.map((size) => randomBytes(size));
    const heard = bodies.map((body) => send({ method: 'POST', body: isStreamed ? Readable.from([body]) : body }));
    await until('all are there', () => upstream.posted.length === sizes.length);
    for (let i = 0; i < 3; i += 1) t.equal(await ask(), '200 hello');
    upstream.posted.forEach(read);
    await until('all are answered', () => heard.every(({ ends }) => ends() === 1));
    t.same(
      heard.map(({ failure, body }) => failure()?.reason ?? body().toString()),
      bodies.map(digest),
    );
  });
}

t.test('a body that is answered before all of it was taken is taken back', async (t) => {
  const upstream = await startFrameUpstream(t, (id, peer) => {
    if (upstream.came(frameType.headers).length > 1) peer.send(whole(id, 'later'));
    else peer.send(head(id, 200), data(id, 'early', true));
  });
  const { send, ask } = startUpstream(t, upstream.url, { http2: true });
  const heard = send({ method: 'POST', body: Buffer.alloc(mib) });
  await until('it ended', () => heard.ends() > 0);
  t.equal(heard.body().toString(), 'early');
  await until('the rest is called off', () => upstream.came(frameType.rstStream).length === 1);
  // With room for all of it, on the connection and on the stream, it would come now, before the next request.
  const streamId = upstream.came(frameType.rstStream)[0]?.streamId ?? 0;
  upstream.peers[0]?.send(windowUpdate(0, mib), windowUpdate(streamId, mib));
  t.equal(await ask(), '200 later');
  t.equal(upstream.peers.length, 1);
  t.notOk(
    upstream.came(frameType.data).some(({ flags }) => (flags & flag.endStream) !== 0),
    'half a body does not look like a whole one',
  );
});

const endsIn = ({ came }: FrameUpstream): number =>
  came(frameType.data).filter(({ flags }) => (flags & flag.endStream) !== 0).length;

/** Bodies of which the stream has all, but the upstream had no window for the last of it. */
const stuck: readonly { readonly name: string; readonly window: number; readonly body: () => Readable | Buffer }[] = [
  { name: 'a body in one piece', window: 16_384, body: () => Buffer.alloc(60_000) },
  { name: 'the last of several pieces', window: 70_000, body: () => Buffer.alloc(2 * 65_536) },
  { name: 'the tail of a streamed body', window: 1_000, body: () => Readable.from([Buffer.alloc(10_000)]) },
  { name: 'the end of a streamed body', window: 1_000, body: () => withTrailers(1_000, []) },
  { name: 'trailers', window: 1_000, body: () => withTrailers(1_000, ['X-Sum', '1']) },
];

function withTrailers(bytes: number, trailers: readonly string[]): Readable {
  return Object.assign(Readable.from([Buffer.alloc(bytes)]), { trailers: () => trailers });
}

for (const { name, window, body } of stuck) {
  t.test(
    `${name} that waits for a window when the response has ended is taken back, and its place is free`,
    async (t) => {
      const bytes = new Map<number, number>();
      const upstream = await startFrameUpstream(
        t,
        (id, peer) => {
          if ((peer.frames.at(-1)?.flags ?? 0) & flag.endStream) peer.send(whole(id, 'hello'));
        },
        {
          settings: [
            [setting.initialWindowSize, window],
            [setting.maxConcurrentStreams, 2],
          ],
        },
        ({ type, streamId, payload }, peer) => {
          if (type !== frameType.data) return;
          const came = (bytes.get(streamId) ?? 0) + payload.length;
          bytes.set(streamId, came);
          peer.send(windowUpdate(0, payload.length));
          if (came === window) peer.send(head(streamId, 413), data(streamId, 'too large', true));
        },
      );
      const { ask, upstream: pool } = startUpstream(t, upstream.url, { http2: true, maxConnections: 1 });
      t.equal(await ask(), '200 hello');
      for (let i = 0; i < 4; i += 1) t.equal(await ask({ method: 'POST', body: body() }), '413 too large');
      t.equal(await ask({ holder: 'another' }), '200 hello');
      t.same(
        upstream.came(frameType.rstStream).map(({ payload }) => payload.readUInt32BE()),
        Array.from({ length: 4 }, () => code.cancel),
      );
      t.equal(endsIn(upstream), 0, 'half a body does not look like a whole one');
      t.equal(upstream.peers.length, 1);
      t.equal(pool.counts().active, 0);
    },
  );

  t.test(`${name} that goes out with the end of the response in one reading is not taken back`, async (t) => {
    let bytes = 0;
    const upstream = await startFrameUpstream(
      t,
      (id, peer) => {
        if (id > 1) peer.send(whole(id, 'later'));
      },
      { settings: [[setting.initialWindowSize, window]] },
      ({ type, streamId, payload }, peer) => {
        if (type !== frameType.data) return;
        bytes += payload.length;
        peer.send(windowUpdate(0, Math.max(1, payload.length)));
        if (bytes === window) peer.send(windowUpdate(streamId, mib), whole(streamId, 'done'));
      },
    );
    const { ask } = startUpstream(t, upstream.url, { http2: true, maxConnections: 1 });
    t.equal(await ask({ method: 'POST', body: body() }), '200 done');
    t.equal(await ask(), '200 later');
    t.same(upstream.came(frameType.rstStream), []);
  });
}
