import t, { type Test } from 'tap';
import { kernelConnections } from '../support/linux.js';
import { until } from '../support/until.js';
import { drip, startLedger, type Ledger } from './ledger.js';
import { startAttackedService } from './load-process.js';
import type { Claims } from '../support/tokens.js';

t.setTimeout(300_000);

const KiB = 1024;
/** Code that is compiled meanwhile, and the like: a list of pieces in the place of one buffer is many times that. */
const slack = 2 * 1024 * KiB;

const connections = 40;
const rounds = 800;

interface Filling {
  /** Bytes, as the proxy counts them, or may hold of them. */
  readonly counted: number;
  readonly factor: number;
  readonly fill: () => Promise<void>;
}

/** Holds what bytes took of the process against what the proxy counts for them. */
async function holdAgainst(t: Test, { held }: Ledger, { counted, factor, fill }: Filling): Promise<void> {
  const before = await held();
  await fill();
  const took = (await held()) - before;
  t.comment(`${String(Math.round(took / KiB))} KiB held for ${String(Math.round(counted / KiB))} KiB that are counted`);
  t.ok(took <= factor * counted + slack, `at most ${String(factor)} times what is counted`);
}

t.test(
  'a body that is kept takes no more than twice its bytes, whatever pieces it comes in, announced or not',
  async (t) => {
    for (const [fields, byte] of [
      ['Content-Length: 1600\r\n', 'x'],
      ['Transfer-Encoding: chunked\r\n', '1\r\nx\r\n'],
    ] as const) {
      const ledger = await startLedger(t);
      const sockets = await ledger.open(connections, (index) =>
        ledger.head('POST /write', `Idempotency-Key: k-${String(index)}\r\n${fields}`),
      );
      await ledger.gauge('sallyport_requests_in_flight', connections);
      await holdAgainst(t, ledger, {
        counted: connections * rounds,
        factor: 2,
        fill: async () => {
          await drip(sockets, { rounds, byte, isRead: () => kernelConnections(ledger.proxy.port).unread === 0 });
          await ledger.read();
        },
      });
      for (const socket of sockets) socket.destroy();
      await ledger.gauge('sallyport_requests_in_flight', 0);
      await ledger.gauge('sallyport_connections_open', 0);
    }
  },
);

t.test('a response that is kept takes no more than twice its bytes, whatever pieces it comes in', async (t) => {
  const ledger = await startLedger(t);
  await ledger.open(connections, (index) =>
    ledger.head('POST /write', `Idempotency-Key: k-${String(index)}\r\nContent-Length: 0\r\n`),
  );
  await until('every answer has begun', () => ledger.answers.length === connections);
  await holdAgainst(t, ledger, {
    counted: connections * rounds,
    factor: 2,
    fill: async () => {
      await drip(ledger.answers, {
        rounds,
        isRead: () => kernelConnections(ledger.proxy.receiver.port, 'far').unread === 0,
      });
    },
  });
});

t.test('what waits behind a request that is being served takes no more than twice its bytes', async (t) => {
  const ledger = await startLedger(t);
  const sockets = await ledger.open(connections, () => ledger.head('GET /read'));
  await until('every request is being served', () => ledger.answers.length === connections);
  await holdAgainst(t, ledger, {
    counted: connections * (rounds + 32 * KiB),
    factor: 2,
    fill: async () => {
      for (const socket of sockets) socket.write('GET /read HTTP/1.1\r\nX: ');
      await drip(sockets, { rounds, isRead: () => kernelConnections(ledger.proxy.port).unread === 0 });
      for (const socket of sockets) socket.write('x'.repeat(32 * KiB));
      await ledger.read();
    },
  });
  await kernelCounts(ledger.proxy.port, connections);
});

/** The list may have one twice while it changes. */
async function kernelCounts(port: number, count: number): Promise<void> {
  await until(
    `the kernel counts ${String(count)} connections on port ${String(port)}`,
    () => kernelConnections(port).count === count,
  );
}

/** Writes until nothing more is taken: kernel and proxy hold what they will. */
async function stuff(
  takers: readonly { readonly write: (bytes: Buffer) => boolean; readonly writableLength: number }[],
  piece: Buffer,
): Promise<void> {
  let left: number[] = [];
  const lengths = (): number[] => takers.map(({ writableLength }) => writableLength);
  await until(
    'nothing more is taken',
    () => {
      for (const taker of takers) if (taker.writableLength < 4 * piece.length) taker.write(piece);
      const now = lengths();
      const isStuck = now.every((length, index) => length >= 4 * piece.length && length === left[index]);
      left = now;
      return isStuck;
    },
    60_000,
  );
}

/** Of an answer or a WebSocket whose other end does not read: 16 KiB on their way, and what was read at once. */
const perStuck = 160 * KiB;

t.test('a response that nobody reads is held by the sockets, and by the process only in part', async (t) => {
  const ledger = await startLedger(t);
  const sockets = await ledger.open(connections, () => ledger.head('GET /read'));
  for (const socket of sockets) socket.pause();
  await until('every answer has begun', () => ledger.answers.length === connections);
  await holdAgainst(t, ledger, {
    counted: connections * perStuck,
    factor: 1,
    fill: async () => stuff(ledger.answers, Buffer.alloc(64 * KiB, 'x')),
  });
  await kernelCounts(ledger.proxy.receiver.port, connections);
});

t.test('frames that a service does not read are held by the sockets, and by the process only in part', async (t) => {
  const { url } = await startAttackedService(t, 1, 10);
  // A hang-up behind what nobody takes cannot be read: such a WebSocket ends as one on which nothing moves.
  const ledger = await startLedger(t, { upstream: { url }, listen: { websocket_idle_timeout: '20s' } });
  const upgrade =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
  const sockets = await ledger.open(connections, () => ledger.head('GET /live', upgrade));
  for (const socket of sockets) socket.resume();
  await ledger.gauge('sallyport_websockets_open', connections);
  const frames = Buffer.concat(Array.from({ length: 9_000 }, () => Buffer.from([0x81, 0x81, 1, 2, 3, 4, 5])));
  await holdAgainst(t, ledger, {
    counted: connections * perStuck,
    factor: 1,
    fill: async () => stuff(sockets, frames),
  });
  await kernelCounts(ledger.proxy.port, connections);
  await kernelCounts(Number(new URL(url).port), connections);
  for (const socket of sockets) socket.destroy();
  await ledger.gauge('sallyport_websockets_open', 0);
});

t.test('a connection is counted as the kernel counts it, and takes some KiB', async (t) => {
  const ledger = await startLedger(t);
  const before = await ledger.held();
  const count = 1_000;
  const sockets = await ledger.open(count, () => 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  for (const socket of sockets) socket.resume();
  await ledger.gauge('sallyport_connections_open', count);
  await kernelCounts(ledger.proxy.port, count);
  await ledger.gauge('sallyport_requests_in_flight', 0);
  const took = (await ledger.held()) - before;
  t.comment(`${String(Math.round(took / count))} bytes for each connection`);
  t.ok(took <= count * 24 * KiB + slack, 'at most 24 KiB each');
  for (const socket of sockets) socket.destroy();
  await ledger.gauge('sallyport_connections_open', 0);
  await kernelCounts(ledger.proxy.port, 0);
  t.ok((await ledger.held()) - before <= slack, 'all of it is given back');
});

/** Tokens that are verified and remembered, and then refused by the route. */
async function showTokens(
  { proxy }: Ledger,
  claimsOf: (index: number) => Claims,
  { from, count }: { readonly from: number; readonly count: number },
): Promise<void> {
  for (let index = from; index < from + count; index += 1) {
    const claims = { sub: 'stranger', jti: nameOf(index, 30), ...claimsOf(index) };
    const { status } = await proxy.request({ path: '/read', headers: proxy.authorization(claims) });
    if (status !== 403) throw new Error(`token ${String(index)}: ${String(status)}`);
  }
}

function nameOf(index: number, length: number): string {
  return index.toString(36).padStart(length, '0');
}

function manyPermissions(index: number): Claims {
  return { permissions: Array.from({ length: 750 }, (_, nth) => nameOf(index * 1_000 + nth, 4)) };
}

const tokens: readonly (readonly [what: string, claimsOf: (index: number) => Claims])[] = [
  ['ordinary ones', () => ({ permissions: ['orders:read', 'orders:write'] })],
  ['many short permissions', manyPermissions],
  [
    'hundreds of longer ones',
    (index) => ({ permissions: Array.from({ length: 200 }, (_, nth) => `orders:${nameOf(index * 1_000 + nth, 13)}`) }),
  ],
  ['a subject of its own', (index) => ({ sub: nameOf(index, 10) })],
  ['a long subject of its own', (index) => ({ sub: nameOf(index, 1_000) })],
];

t.test('a token that is remembered takes no more than is counted for it, whatever it says', async (t) => {
  const count = 1_000;
  for (const [what, claimsOf] of tokens) {
    const ledger = await startLedger(t, { token_cache: '64MiB' });
    await showTokens(ledger, claimsOf, { from: 0, count: 100 });
    const counted = async (): Promise<number> => ledger.proxy.metric('sallyport_token_cache_bytes');
    const [heldBefore, countedBefore] = [await ledger.held(), await counted()];
    await showTokens(ledger, claimsOf, { from: 100, count });
    const [took, counts] = [(await ledger.held()) - heldBefore, (await counted()) - countedBefore];
    t.comment(`${what}: ${String(Math.round(took / count))} bytes each, ${String(counts / count)} are counted`);
    t.ok(counts > 0 && took <= counts + slack, what);
  }
});

t.test('what a config remembered is let go of with a reload, whatever goes on that began under it', async (t) => {
  const ledger = await startLedger(t, { token_cache: '64MiB' });
  await showTokens(ledger, manyPermissions, { from: 0, count: 50 });
  const before = await ledger.held();
  const [socket] = await ledger.open(1, () => ledger.head('GET /read'));
  await until('the answer has begun', () => ledger.answers.length === 1);
  await showTokens(ledger, manyPermissions, { from: 50, count: 500 });
  t.ok((await ledger.held()) - before > 4 * slack, 'remembered');
  ledger.proxy.writeConfigText('\n# another one\n', 'at its end');
  await ledger.proxy.loaded();
  t.ok((await ledger.held()) - before <= slack, 'let go of');
  await ledger.gauge('sallyport_requests_in_flight', 1);
  socket?.destroy();
  await ledger.gauge('sallyport_requests_in_flight', 0);
});
