/**
 * What nghttp2 lets a caller do without end is ended by us: frames and resets that come slowly enough for its own
 * limits, each confirmed before more are sent.
 */
import { connect } from 'node:net';
import t from 'tap';
import { codes } from '../../../support/attacks/http2-floods.js';
import {
  connectFrames,
  flags,
  frame,
  frameTypes,
  headers,
  preface,
  uint32,
  type FrameClient,
} from '../../../support/http2-frames.js';
import type { Scope } from '../../../support/scope.js';
import { until } from '../../../support/until.js';
import { startProxy, type Harness } from '../../harness.js';

const start = (t: Scope): Promise<Harness> => startProxy(t, { config: { listen: { http2: true } } });

const fieldsOf = (proxy: Harness): readonly string[] => [
  ...[':method', 'GET', ':scheme', 'http', ':path', '/orders', ':authority', 'a'],
  ...['authorization', proxy.authorization().Authorization],
];

const ping = frame(frameTypes.ping, 0, 0, Buffer.alloc(8));
const settings = frame(frameTypes.settings, 0, 0, Buffer.from([0, 4, 0, 0, 255, 255]));

/** How many frames of this type came that confirm one of ours. */
const confirmed = ({ frames }: FrameClient, type: number): number =>
  frames.filter((sent) => sent.type === type && (sent.flags & flags.ack) !== 0).length;

/** Codes of all GOAWAY frames. */
const farewells = ({ frames }: FrameClient): readonly number[] =>
  frames.filter(({ type }) => type === frameTypes.goAway).map(({ payload }) => payload.readUInt32BE(4));

/** Sends until the connection ends, or `most` rounds were sent, and says whether it ended. */
async function endsWithin(client: FrameClient, most: number, round: (index: number) => unknown): Promise<boolean> {
  for (let index = 0; index < most && !client.socket.closed; index += 1) await round(index);
  // What was sent last may not have been read yet.
  return until('its end', () => client.socket.closed, 10_000).catch(() => false);
}

for (const [name, bytes, type] of [
  ['PING', ping, frameTypes.ping],
  ['SETTINGS', settings, frameTypes.settings],
] as const) {
  t.test(`${name} that are each answered end the connection all the same`, async (t) => {
    const proxy = await start(t);
    const client = await connectFrames(t, proxy.port);
    const before = confirmed(client, type);
    const ended = await endsWithin(client, 400, async (index) => {
      client.write(Buffer.concat(Array.from({ length: 50 }, () => bytes)));
      const wanted = before + 50 * (index + 1);
      await until('they are confirmed', () => confirmed(client, type) >= wanted || client.socket.closed);
    });
    t.ok(ended);
    t.same(farewells(client), [codes.enhanceYourCalm]);
    t.same(proxy.counted.connectionEndings, ['http2_abuse']);
  });

  t.test(`${name} that come with requests end nothing`, async (t) => {
    const proxy = await start(t);
    const client = await connectFrames(t, proxy.port);
    const fields = fieldsOf(proxy);
    for (let round = 0; round < 60; round += 1) {
      for (let i = 0; i < 20; i += 1) {
        client.write(Buffer.concat([headers(40 * round + 2 * i + 1, fields), bytes, bytes]));
      }
      await until('they are answered', () => answers(client) >= 20 * (round + 1));
      // What it took is given back, as a client does.
      client.write(frame(frameTypes.windowUpdate, 0, 0, uint32(20_000)));
    }
    t.equal(proxy.receiver.requests.length, 1_200);
    t.same([farewells(client), proxy.counted.connectionEndings], [[], []]);
  });
}

/** Responses that came whole. */
const answers = ({ frames }: FrameClient): number =>
  frames.filter(({ type, flags: set }) => type === frameTypes.data && (set & flags.endStream) !== 0).length;

/** Ways in which a caller has a stream end before it is answered. */
const takenBack: readonly {
  readonly name: string;
  readonly act: (proxy: Harness, client: FrameClient, stream: number) => Promise<void> | void;
}[] = [
  {
    name: 'with its head',
    act: (proxy, client, stream) =>
      client.write(
        Buffer.concat([headers(stream, fieldsOf(proxy)), frame(frameTypes.reset, 0, stream, uint32(codes.cancel))]),
      ),
  },
  {
    name: 'once it is under way',
    act: async (proxy, client, stream) => {
      const before = proxy.receiver.requests.length;
      client.write(headers(stream, fieldsOf(proxy)));
      await until('it came', () => proxy.receiver.requests.length > before || client.socket.closed);
      client.write(frame(frameTypes.reset, 0, stream, uint32(codes.cancel)));
    },
  },
  {
    name: 'with NO_ERROR once it is under way',
    act: async (proxy, client, stream) => {
      const before = proxy.receiver.requests.length;
      client.write(headers(stream, fieldsOf(proxy)));
      await until('it came', () => proxy.receiver.requests.length > before || client.socket.closed);
      client.write(frame(frameTypes.reset, 0, stream, uint32(codes.noError)));
    },
  },
];

for (const { name, act } of takenBack) {
  t.test(`streams that are taken back ${name} are bounded before nghttp2 bounds them`, async (t) => {
    const proxy = await start(t);
    proxy.receiver.behave(() => undefined);
    const client = await connectFrames(t, proxy.port);
    // nghttp2 lets 1,000 of them pass, and 33 more a second.
    const ended = await endsWithin(client, 900, async (index) => {
      await act(proxy, client, 2 * index + 1);
      const isOver = (): boolean => proxy.server.counts().streams === 0 || client.socket.closed;
      if (index % 20 === 19) await until('they are over', isOver);
    });
    t.ok(ended);
    t.same(proxy.counted.connectionEndings, ['http2_abuse']);
    const [code] = farewells(client);
    // It may be lost where something of the caller's was not read.
    if (code !== undefined) t.equal(code, codes.enhanceYourCalm);
    await until('nothing is held', () => proxy.server.counts().inFlight === 0 && proxy.server.counts().streams === 0);
  });
}

t.test('streams that are taken back before anybody could look at them are bounded as well', async (t) => {
  const proxy = await start(t);
  const socket = connect(proxy.port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.on('error', () => undefined).resume();
  // All of it comes with the preface, and is read at once.
  const fields = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'a'];
  const streams = Array.from({ length: 700 }, (_none, i) =>
    Buffer.concat([headers(2 * i + 1, fields), frame(frameTypes.reset, 0, 2 * i + 1, uint32(codes.cancel))]),
  );
  socket.write(Buffer.concat([preface, frame(frameTypes.settings, 0, 0), ...streams]));
  t.ok(await until('its end', () => socket.closed, 10_000).catch(() => false));
  t.same(proxy.counted.connectionEndings, ['http2_abuse']);
});
