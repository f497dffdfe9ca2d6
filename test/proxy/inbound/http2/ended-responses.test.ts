/** Responses that are ended to make room, since their callers do not take them. */
import { constants, type ClientHttp2Stream } from 'node:http2';
import { createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { createFairQueue } from '../../../../src/decision/limits/fair-queue.js';
import { Http2ClientConnection } from '../../../../src/proxy/inbound/http2/connection.js';
import { ReadTurns } from '../../../../src/proxy/inbound/http2/read-turns.js';
import { StreamPlaces } from '../../../../src/proxy/inbound/http2/stream-places.js';
import type { ReceivedRequest } from '../../../../src/proxy/inbound/received-request.js';
import { connectHttp2 } from '../../../support/http2-client.js';
import { listen } from '../../../support/listening.js';
import { until } from '../../../support/until.js';

/** Each request is answered at once, and in full. */
async function start(t: Test, initialWindowSize: number) {
  const clock = { monotonic: () => performance.now() };
  const streamPlaces = new StreamPlaces(100, { log: { warn: () => undefined }, clock });
  const serve = (request: ReceivedRequest) => {
    const writer = request.createWriter({
      isShuttingDown: () => false,
      challenges: () => [],
      writeTimeoutMs: () => 60_000,
      onWriteTimeout: () => writer.abort(),
      onWritable: () => undefined,
    });
    return {
      start: () => {
        writer.sendWhole(200, [], Buffer.from('something'));
        writer.end(null);
      },
      isReceived: () => writer.isReceived(),
      failBody: () => undefined,
      shortenBodyTimeouts: () => undefined,
      cutOff: () => undefined,
      onDrain: () => undefined,
    };
  };
  const server = createServer();
  const { port } = await listen(t, server);
  const accepted = once(server, 'connection');
  const session = await connectHttp2(t, `http://127.0.0.1:${String(port)}`, { settings: { initialWindowSize } });
  const [socket] = (await accepted) as [Socket];
  const connection = new Http2ClientConnection(socket, {
    peer: { remoteAddress: '127.0.0.1', encrypted: false, trusted: false },
    ...{ maxStreams: 100, maxHeaderBytes: 16_384, keepAliveMs: 60_000, clock, serve, streamPlaces },
    openHeads: createFairQueue(100),
    readTurns: new ReadTurns(),
    onHeaders: () => undefined,
    onAbuse: () => t.fail('it was ended as abuse'),
    fail: (error) => t.fail(String(error)),
  });
  const codes: (number | undefined)[] = [];
  const open = async (method = 'GET'): Promise<ClientHttp2Stream> => {
    const at = codes.push(undefined) - 1;
    const stream = session.request({ ':method': method, ':path': '/' }, { endStream: method === 'GET' });
    stream.on('error', () => undefined).on('close', () => (codes[at] = stream.rstCode));
    await once(stream, 'response');
    return stream;
  };
  return { connection, streamPlaces, codes, open };
}

t.test('the oldest is ended, one at a time', async (t) => {
  const { connection, streamPlaces, codes, open } = await start(t, 0);
  for (let i = 0; i < 5; i += 1) await open();
  t.equal(connection.untaken(performance.now()), 5);
  connection.endUntaken(performance.now());
  connection.endUntaken(performance.now());
  t.equal(streamPlaces.taken(), 3, 'at once');
  await until('two are ended', () => codes.filter((code) => code !== undefined).length === 2);
  t.same(codes.slice(0, 2), [constants.NGHTTP2_INTERNAL_ERROR, constants.NGHTTP2_INTERNAL_ERROR]);
  t.equal(connection.streams(), 3);
});

t.test('one that was taken is whole: no more is wanted of its request', async (t) => {
  const { connection, codes, open } = await start(t, 65_535);
  const stream = await open('POST');
  let body = '';
  stream.on('data', (piece: Buffer) => (body += piece.toString()));
  await until('it is taken', () => body === 'something');
  t.equal(connection.streams(), 1);
  connection.endUntaken(performance.now());
  await until('it is over', () => codes[0] !== undefined, 900);
  t.equal(codes[0], constants.NGHTTP2_NO_ERROR);
});
