/** Callers that open streams and leave them, or a connection, as they are. */
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { codes, postOf } from '../../../support/attacks/http2-floods.js';
import { ask, connectHttp2 } from '../../../support/http2-client.js';
import {
  connectFrames,
  fieldBlock,
  flags,
  frame,
  frameTypes,
  headers,
  preface,
  uint32,
} from '../../../support/http2-frames.js';
import type { Scope } from '../../../support/scope.js';
import { until } from '../../../support/until.js';
import { startProxy, type Harness, type HarnessOptions } from '../../harness.js';

const http2 = { listen: { http2: true } };

const fieldsOf = (proxy: Harness, isAuthorized = true): readonly string[] => [
  ...[':method', 'GET', ':scheme', 'http', ':path', '/orders', ':authority', 'a'],
  ...(isAuthorized ? ['authorization', proxy.authorization().Authorization] : []),
];

/** Nothing is counted that is not there, and others are served. */
async function holdsNothing(t: Test, proxy: Harness, limitMs = 30_000): Promise<void> {
  await until(
    'nothing is held',
    () => proxy.server.counts().inFlight === 0 && proxy.server.counts().streams === 0,
    limitMs,
  );
  const session = await connectHttp2(t, `http://127.0.0.1:${proxy.port}`);
  t.equal((await ask(session, { ':path': '/orders', ...lower(proxy) })).status, 200);
}

const lower = (proxy: Harness): { readonly authorization: string } => ({
  authorization: proxy.authorization().Authorization,
});

const start = (t: Scope, config: NonNullable<HarnessOptions['config']> = {}): Promise<Harness> =>
  startProxy(t, { config: { listen: http2.listen, ...config } });

t.jobs = 8;
t.setTimeout(120_000);

t.test('responses that no window is opened for end after the write time-out', async (t) => {
  const proxy = await start(t, { upstream: { idle_timeout: '1s' } });
  proxy.receiver.behave((_req, res) => res.end(Buffer.alloc(1_000_000)));
  const client = await connectFrames(t, proxy.port, [[4, 0]]);
  const before = process.memoryUsage.rss();
  for (let i = 0; i < 100; i += 1) client.write(headers(2 * i + 1, fieldsOf(proxy)));
  await until(
    'all were answered',
    () => client.frames.filter(({ type }) => type === frameTypes.headers).length === 100,
  );
  t.ok(process.memoryUsage.rss() - before < 100 * 1024 * 1024, 'what waits is no more than a share of each');
  await until('all are reset', () => client.frames.filter(({ type }) => type === frameTypes.reset).length === 100);
  const resets = client.frames.filter(({ type }) => type === frameTypes.reset);
  t.same(new Set(resets.map(({ payload }) => payload.readUInt32BE(0))), new Set([codes.internalError]));
  proxy.receiver.behave(null);
  await holdsNothing(t, proxy);
  t.equal(proxy.server.counts().streams, 0);
});

t.test('a refusal of an upload that no window is opened for ends as well', async (t) => {
  const proxy = await start(t);
  const client = await connectFrames(t, proxy.port, [[4, 0]]);
  for (let i = 0; i < 10; i += 1) client.write(headers(2 * i + 1, postOf(fieldsOf(proxy, false)), false));
  await until('all were refused', () => client.frames.filter(({ type }) => type === frameTypes.headers).length === 10);
  t.equal(proxy.server.counts().streams, 10);
  await until('all are reset', () => client.frames.filter(({ type }) => type === frameTypes.reset).length === 10);
  await holdsNothing(t, proxy);
});

t.test('a caller that reads nothing at all, and still says something, is ended', async (t) => {
  const proxy = await start(t, { upstream: { idle_timeout: '1s' } });
  proxy.receiver.behave((_req, res) => res.end(Buffer.alloc(30_000_000)));
  const client = await connectFrames(t, proxy.port, [[4, 2 ** 31 - 1]]);
  client.write(frame(frameTypes.windowUpdate, 0, 0, uint32(2 ** 31 - 1 - 65_535)));
  for (let i = 0; i < 5; i += 1) client.write(headers(2 * i + 1, fieldsOf(proxy)));
  await client.next('a response', ({ type }) => type === frameTypes.data);
  client.socket.pause();
  const talk = setInterval(() => client.write(frame(frameTypes.windowUpdate, 0, 0, uint32(1))), 200);
  t.teardown(() => clearInterval(talk));
  // Of those that are silent it takes 20 s to be sure.
  await until('its connection is ended', () => proxy.server.counts().connections === 0, 12_000);
  proxy.receiver.behave(null);
  await holdsNothing(t, proxy);
});

t.test('a caller that is silent while it waits is asked by PING, and ended where it does not answer', async (t) => {
  const proxy = await start(t, { upstream: { response_timeout: '5m' } });
  const waiting: (() => unknown)[] = [];
  proxy.receiver.behave((_req, res) => waiting.push(() => res.end('late')));
  const [gone, patient] = [await connectFrames(t, proxy.port), await connectFrames(t, proxy.port)];
  for (const client of [gone, patient]) client.write(headers(1, fieldsOf(proxy)));
  await until('both are under way', () => waiting.length === 2);
  const ping = await patient.next('a PING', ({ type }) => type === frameTypes.ping);
  patient.write(frame(frameTypes.ping, flags.ack, 0, ping.payload));
  await until('the other one is ended', () => gone.socket.closed, 40_000);
  t.equal(gone.frames.filter(({ type }) => type === frameTypes.ping).length, 1);
  t.equal(proxy.server.counts().streams, 1);
  for (const respond of waiting) respond();
  await patient.next('its response', ({ type, stream }) => type === frameTypes.data && stream === 1);
  proxy.receiver.behave(null);
  patient.socket.destroy();
  await holdsNothing(t, proxy);
});

t.test('a connection is over a moment after it was ended, whatever its caller does', async (t) => {
  const proxy = await start(t, { listen: { http2: true, keep_alive_timeout: '1s' } });
  const sockets: Socket[] = [];
  for (let i = 0; i < 5; i += 1) {
    const socket = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
    t.teardown(() => socket.destroy());
    await once(socket, 'connect');
    sockets.push(socket.on('error', () => undefined).on('data', () => undefined));
    socket.write(Buffer.concat([preface, frame(frameTypes.settings, 0, 0)]));
    // One of them is in the midst of a head.
    if (i === 1) socket.write(frame(frameTypes.headers, 0, 1, fieldBlock(fieldsOf(proxy))));
  }
  await until('all are there', () => proxy.server.counts().connections === 5);
  await until('all are gone', () => proxy.server.counts().connections === 0);
  await holdsNothing(t, proxy);
});

t.test('bodies that never come end after the time for them', async (t) => {
  const proxy = await start(t, { listen: { http2: true, body_idle_timeout: '1s' } });
  const client = await connectFrames(t, proxy.port);
  for (let i = 0; i < 50; i += 1) client.write(headers(2 * i + 1, postOf(fieldsOf(proxy)), false));
  await until('they have places', () => proxy.server.counts().streams === 50);
  await until('they were refused', () => client.frames.filter(({ type }) => type === frameTypes.headers).length === 50);
  await holdsNothing(t, proxy);
  t.same(new Set(proxy.records.map(({ reason }) => reason)), new Set(['body_timeout', null]));
});

for (const [name, block] of [
  ['10,000 fields', fieldBlock(Array.from({ length: 20_000 }, () => 'a'))],
  ['a field of 1 MiB', fieldBlock(['x-large', 'a'.repeat(1024 * 1024)])],
] as const) {
  t.test(`a head of ${name} is refused`, async (t) => {
    const proxy = await start(t);
    const client = await connectFrames(t, proxy.port);
    const fields = Buffer.concat([fieldBlock(fieldsOf(proxy)), block]);
    const pieces: Buffer[] = [];
    for (let at = 0; at < fields.length; at += 16_000) {
      const isLast = at + 16_000 >= fields.length;
      const type = at === 0 ? frameTypes.headers : frameTypes.continuation;
      pieces.push(frame(type, (at === 0 ? 1 : 0) + (isLast ? 4 : 0), 1, fields.subarray(at, at + 16_000)));
    }
    client.write(Buffer.concat(pieces));
    await client.next('its end', ({ type }) => type === frameTypes.reset || type === frameTypes.goAway);
    t.equal(proxy.receiver.requests.length, 0);
    await holdsNothing(t, proxy);
  });
}

t.test('references that make a large head of a small one are refused, and bounded', async (t) => {
  const proxy = await start(t);
  const client = await connectFrames(t, proxy.port);
  // An entry of 4,000 bytes in the table of the other side, and then one byte for each time that it is meant.
  const value = 'a'.repeat(3_900);
  const literal = fieldBlock(['x-bomb', value]);
  literal[0] = 0x40;
  const bomb = Buffer.alloc(15_000, 0xbe);
  for (let i = 0; i < 200; i += 1) {
    const block = i === 0 ? Buffer.concat([fieldBlock(fieldsOf(proxy)), literal]) : bomb;
    client.write(frame(frameTypes.headers, 5, 2 * i + 1, block));
  }
  await client.closed;
  t.ok(proxy.receiver.requests.length <= 1);
  await holdsNothing(t, proxy);
});

t.test(
  'a caller that says nothing while it has nothing to ask, not even to PING, is served when it does',
  async (t) => {
    const proxy = await start(t);
    const client = await connectFrames(t, proxy.port);
    const answered = async (stream: number): Promise<unknown> => {
      client.write(headers(stream, fieldsOf(proxy)));
      return client.next('an answer', ({ type, stream: about }) => type === frameTypes.headers && about === stream);
    };
    await answered(1);
    await client.next('a PING', ({ type }) => type === frameTypes.ping);
    // Beyond the time that one with requests under way has to answer it.
    await delay(13_000);
    await answered(3);
    t.equal(proxy.receiver.requests.length, 2);
  },
);

t.test('a request that a farewell comes with is served', async (t) => {
  const proxy = await start(t);
  const client = await connectFrames(t, proxy.port);
  client.write(Buffer.concat([headers(1, fieldsOf(proxy)), frame(frameTypes.goAway, 0, 0, Buffer.alloc(8))]));
  await client.next('an answer', ({ type, stream }) => type === frameTypes.headers && stream === 1);
  t.equal(proxy.receiver.requests.length, 1);
});
