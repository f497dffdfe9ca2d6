/**
 * Stands between clients and a server on loopback, and in a storm cuts each connection after a number of bytes that it
 * draws.
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
}

export async function startCuttingRelay(t: Scope, target: () => number): Promise<CuttingRelay> {
  let mean: number | null = null;
  let cuts = 0;
  const pairs = new Set<{ leftBytes: number }>();
  const sockets = new Set<Socket>();
  const draw = (): number => (mean === null ? Infinity : Math.floor(-Math.log(1 - Math.random()) * mean));

  const listener = createServer((client) => {
    const server = connect(target(), '127.0.0.1');
    const pair = { leftBytes: draw() };
    pairs.add(pair);
    const end = (): void => {
      pairs.delete(pair);
      for (const socket of [client, server]) {
        sockets.delete(socket);
        socket.destroy();
      }
    };
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on('data', (bytes) => {
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
        pair.leftBytes = Infinity;
        from.pause();
        to.write(last, end);
      });
      from.on('end', () => to.end());
      from.on('error', end);
      from.on('close', end);
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
  };
}
