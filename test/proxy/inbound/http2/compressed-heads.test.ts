/**
 * Heads that take a byte for each header on the way, since it was sent before (RFC 7541 §6.1), and hundreds in memory,
 * from many connections at once.
 */
import t from 'tap';
import { asInTheImage } from '../../../chaos/strangers.js';
import {
  connectFrames,
  fieldBlock,
  flags,
  frame,
  frameTypes,
  type FrameClient,
} from '../../../support/http2-frames.js';
import { peakBytes } from '../../../support/linux.js';
import { startProxyProcess } from '../../../support/proxy-process.js';
import { request } from '../../../support/raw-client.js';
import type { Scope } from '../../../support/scope.js';
import { until } from '../../../support/until.js';

const connections = 60;
const headsOfEach = 90;

const pseudo = [':method', 'GET', ':scheme', 'http', ':path', '/orders', ':authority', 'a'];

/** `x-a` with a value of 100 characters, which is remembered as the newest of its table. */
const kept = Buffer.concat([Buffer.from([0x40, 3]), Buffer.from('x-a'), Buffer.from([100]), Buffer.alloc(100, 'a')]);

/** Heads with so many headers, of which all but the first are one byte. */
function compressed(count: number, each: number): Buffer {
  return Buffer.concat(
    Array.from({ length: count }, (_, index) => {
      const block = [fieldBlock(pseudo), ...(index === 0 ? [kept] : []), Buffer.alloc(each, 0xbe)];
      return frame(frameTypes.headers, flags.endHeaders + flags.endStream, 1 + 2 * index, Buffer.concat(block));
    }),
  );
}

/** Whether some response, or the end of the connection, was told. */
const wasServed = ({ frames, socket }: FrameClient): boolean =>
  socket.closed || frames.some(({ type, stream }) => stream > 0 || type === frameTypes.goAway);

/** Has so many heads wait on each of many connections, and a request of a caller of HTTP/1.1 behind them. */
async function besideFlood(t: Scope, each: number): Promise<{ served: number; status: number; peakMiB: number }> {
  const proxy = await startProxyProcess(t, {
    config: { listen: { http2: true } },
    env: asInTheImage,
  });
  const crowd = await Promise.all(Array.from({ length: connections }, () => connectFrames(t, proxy.port)));
  // All at once: it finds them when it goes on.
  proxy.signal('SIGSTOP');
  const heads = compressed(headsOfEach, each);
  for (const { write } of crowd) write(heads);
  await until('all is on its way', () => crowd.every(({ socket }) => socket.writableLength === 0));
  const answered = request(proxy.port, { path: '/orders/1', headers: proxy.authorization() });
  proxy.signal('SIGCONT');
  const { status } = await answered;
  const served = crowd.filter(wasServed).length;
  await until('all are served', () => crowd.every(wasServed), 60_000);
  return { served, status, peakMiB: peakBytes(proxy.process.pid) / 1024 ** 2 };
}

for (const each of [50, 300]) {
  t.test(`90 heads of ${String(each)} headers on each of 60 connections do not keep others waiting`, async (t) => {
    const { served, status, peakMiB } = await besideFlood(t, each);
    t.equal(status, 200);
    t.ok(served < connections / 2, `${String(served)} of 60 connections were served before`);
    t.ok(peakMiB < 250, `${peakMiB.toFixed(0)} MiB`);
  });
}
