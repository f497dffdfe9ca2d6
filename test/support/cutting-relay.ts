/**
 * Stands between clients and a server on loopback, and in a storm cuts each connection after a number of bytes that it
 * draws; where it is told to, bytes are late, or connections fall silent.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Scope } from './scope.js';

export interface CuttingRelay {
  readonly port: number;
  /**
   * From now on each connection, old and new, is cut after a random number of bytes, so many on average; `null` ends
   * the storm.
   */
  readonly storm: (meanBytes: number | null) => void;
  readonly cuts: () => number;
  /** From now on every piece is late by so many milliseconds; 0 ends it. */
  readonly lag: (ms: number) => void;
  /**
   * From now on each piece has this likelihood of being the one from which on nothing passes on its connection, in
   * either direction, though it stays open; 0 ends it for the others.
   */
  readonly silence: (likelihood: number) => void;
  /** Connections that fell silent. */
  readonly silences: () => number;
}

export interface CuttingRelayOptions {
  /** How likely a cut is a reset (RFC 9293 §3.5.2), and not an end; 0 unless given. */
  readonly resets?: number;
}

interface Pair {
  leftBytes: number;
  /** Nothing more passes. */
  isOver: boolean;
}

export async function startCuttingRelay(
  t: Scope,
  target: () => number,
  { resets = 0 }: CuttingRelayOptions = {},
): Promise<CuttingRelay> {
  let mean: number | null = null;
  let [cuts, silences, lagMs, silent] = [0, 0, 0, 0];
  const pairs = new Set<Pair>();
  const sockets = new Set<Socket>();
  const draw = (): number => (mean === null ? Infinity : Math.floor(-Math.log(1 - Math.random()) * mean));

  const listener = createServer((client) => {
    const server = connect(target(), '127.0.0.1');
    const pair: Pair = { leftBytes: draw(), isOver: false };
    pairs.add(pair);
    const end = (isReset = false): void => {
      pairs.delete(pair);
      pair.isOver = true;
      for (const socket of [client, server]) {
        sockets.delete(socket);
        if (isReset) socket.resetAndDestroy();
        else socket.destroy();
      }
    };
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      const late: Buffer[] = [];
      const pass = (bytes: Buffer): void => {
        if (pair.isOver) return;
        if (bytes.length < pair.leftBytes) {
          pair.leftBytes -= bytes.length;
          if (!to.write(bytes)) {
            from.pause();
            to.once('drain', () => from.resume());
          }
          return;
        }
        // The last bytes before the cut arrive.
        cuts += 1;
        const last = bytes.subarray(0, pair.leftBytes);
        pair.isOver = true;
        from.pause();
        to.write(last, () => end(Math.random() < resets));
      };
      from.on('data', (bytes) => {
        if (silent > 0 && !pair.isOver && Math.random() < silent) {
          pair.isOver = true;
          silences += 1;
        }
        if (lagMs === 0 && late.length === 0) {
          pass(bytes);
          return;
        }
        // Whichever timer ends first lets the oldest pass: order is kept when the lag changes.
        late.push(bytes);
        setTimeout(() => pass(late.shift() ?? Buffer.alloc(0)), lagMs);
      });
      from.on('end', () => to.end());
      from.on('error', () => end());
      from.on('close', () => end());
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  });

  return {
    port: (listener.address() as AddressInfo).port,
    storm: (meanBytes) => {
      mean = meanBytes;
      for (const pair of pairs) pair.leftBytes = draw();
    },
    cuts: () => cuts,
    lag: (ms) => {
      lagMs = ms;
    },
    silence: (likelihood) => {
      silent = likelihood;
    },
    silences: () => silences,
  };
}
