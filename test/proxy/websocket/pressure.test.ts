import t from 'tap';
import { WebSocket } from 'ws';
import { until } from '../../support/until.js';
import { echo, startEchoProxy } from './echo.js';
import { clientOf, frame, startWebSocketProxy, switchRaw } from './websocket-proxy.js';

/** Far more than sockets and kernel hold on the way. */
const flood = 64 * 1024 * 1024;

t.test('a reader that stops stops the other end, in both directions, in bounded memory', async (t) => {
  const echoProxy = await startEchoProxy(t);
  const { proxy, webSockets, residentMiB } = echoProxy;
  const { socket, opened } = clientOf(
    t,
    new WebSocket(`ws://127.0.0.1:${proxy.port}/live`, { headers: proxy.authorization(), perMessageDeflate: false }),
  );
  await opened;
  const peer = await until('the receiver has it', () => webSockets.sockets[0]);
  peer.removeAllListeners('message');
  const before = residentMiB();
  const piece = Buffer.alloc(1024 * 1024, 'a');
  for (const { name, from, to } of [
    { name: 'to the caller', from: peer, to: socket },
    { name: 'to the receiver', from: socket, to: peer },
  ]) {
    let got = 0;
    to.removeAllListeners('message').on('message', (data: Buffer) => {
      got += data.length;
    });
    to.pause();
    for (let sent = 0; sent < flood; sent += piece.length) from.send(piece);
    let [last, looks] = [-1, 0];
    await until(`${name}: it stands still`, () => {
      looks = from.bufferedAmount === last ? looks + 1 : 0;
      last = from.bufferedAmount;
      return looks === 30;
    });
    t.ok(from.bufferedAmount > 0, `${name}: the sender has to wait`);
    t.ok(residentMiB() - before < 64, `${name}: ${residentMiB() - before} MiB more`);
    to.resume();
    await until(`${name}: all of it`, () => got === flood);
  }
});

t.test('an echo of 64 MiB, in messages of 1 MiB and in one', async (t) => {
  const proxy = await startEchoProxy(t);
  for (const messageBytes of [1024 * 1024, 64 * 1024 * 1024]) {
    const { bytes, beforeMiB, peakMiB } = await echo(t, proxy, 64 * 1024 * 1024, messageBytes);
    t.equal(bytes, 64 * 1024 * 1024);
    t.ok(peakMiB - beforeMiB < 96, `${peakMiB - beforeMiB} MiB more`);
  }
});

t.test('a frame of a terabyte is announced, and costs nothing', async (t) => {
  const proxy = await startWebSocketProxy(t, { server: { maxPayload: 2 ** 42 } });
  const { raw } = await switchRaw(t, proxy);
  const header = Buffer.alloc(14);
  header[0] = 0x82;
  header[1] = 0xff;
  header.writeBigUInt64BE(2n ** 40n, 2);
  raw.write(header);
  raw.write(Buffer.alloc(100_000));
  raw.socket.end();
  await until('it is over', () => proxy.records.length === 1);
  t.match(proxy.records, [{ reason: 'caller_gone' }]);
});

t.test('frames of no bytes, by the thousand, and headers one byte at a time', async (t) => {
  const proxy = await startWebSocketProxy(t);
  const { raw } = await switchRaw(t, proxy);
  raw.write(Buffer.concat(Array.from({ length: 20_000 }, () => frame(2, ''))));
  await until('all echoes', () => raw.pending().length === 40_000);
  for (const byte of frame(1, 'slow')) raw.write(Buffer.from([byte]));
  await until('the slow one', () => raw.pending().includes('slow'));
  t.equal(raw.pending().length, 40_006);
});
