/** What somebody without a credential, or one caller, sends to wear a proxy out. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Where attacks go. */
export interface Target {
  readonly port: number;
  /** Ports of the pages for monitors and operators. */
  readonly probes: number;
  readonly admin: number;
  /** `Authorization` of one caller. */
  readonly bearer: string;
}

/** Something that is sent until it is told to end. */
export interface Attack {
  readonly name: string;
  readonly run: (target: Target, ended: () => boolean) => Promise<void>;
}

/** Whose connections they are: `stranger` goes to public routes, or is refused. */
export type Who = 'stranger' | 'caller';

/** What went over the connections of this process. */
export const sent = { connections: 0, bytes: 0, bytesBack: 0 };

function open(port: number): Socket {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  socket
    .on('error', () => undefined)
    .once('close', () => {
      sent.connections += 1;
      sent.bytes += socket.bytesWritten;
      sent.bytesBack += socket.bytesRead;
    });
  return socket;
}

function openAndRead(port: number): Socket {
  return open(port).resume();
}

async function written(socket: Socket, bytes: string): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
    socket.write(bytes, () => resolve());
  });
}

/** How many connections at a time, and how many new ones in a second. */
export interface Many {
  readonly count: number;
  readonly perSecond: number;
}

const tickMs = 20;

/** Keeps so many connections open; whichever is closed is opened anew. */
async function keepUp({ count, perSecond }: Many, ended: () => boolean, make: () => Socket): Promise<void> {
  const sockets = new Set<Socket>();
  let allowed = 0;
  while (!ended()) {
    allowed = Math.min(count, allowed + (perSecond * tickMs) / 1_000);
    for (; allowed >= 1 && sockets.size < count; allowed -= 1) {
      const socket = make();
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    }
    await sleep(tickMs);
  }
  for (const socket of sockets) socket.destroy();
}

/** As many in a tick as the queue of a listening socket holds. */
export const flatOut = 10_000;

function headOf(request: string, { port, bearer }: Target, who: Who, fields = ''): string {
  const credential = who === 'caller' ? `Authorization: ${bearer}\r\n` : '';
  return `${request} HTTP/1.1\r\nHost: 127.0.0.1:${String(port)}\r\n${credential}${fields}\r\n`;
}

/** The route of this kind that is open to whoever it is. */
function pathOf(kind: string, who: Who): string {
  return who === 'stranger' ? `/public/${kind}` : `/${kind}`;
}

/** Requests in one packet; of strangers to no route. */
export function pipelined(many: Many, who: Who): Attack {
  return {
    name: `requests in one packet, ${who === 'stranger' ? 'without a credential' : 'of one caller'}`,
    run: async (target, ended) =>
      keepUp(many, ended, () => {
        const socket = openAndRead(target.port);
        socket.write(
          who === 'stranger'
            ? 'GET / HTTP/1.1\r\nHost:a\r\n\r\n'.repeat(2_520)
            : headOf('GET /orders', target, who).repeat(100),
        );
        return socket;
      }),
  };
}

/** Requests for a page in one packet, which whoever reaches that port may send. */
export function pipelinedPages(many: Many, listener: 'probes' | 'admin', path: string): Attack {
  return {
    name: `requests for ${path} in one packet, to ${listener}`,
    run: async (target, ended) =>
      keepUp(many, ended, () => {
        const socket = openAndRead(target[listener]);
        socket.write(`GET ${path} HTTP/1.1\r\nHost:localhost\r\n\r\n`.repeat(1_500));
        return socket;
      }),
  };
}

/** Asks once, is refused or answered, and says nothing more. */
export function idle(many: Many, who: Who): Attack {
  return {
    name: `idle connections of ${who === 'stranger' ? 'strangers' : 'one caller'}`,
    run: async (target, ended) =>
      keepUp(many, ended, () => {
        const socket = openAndRead(target.port);
        socket.write(headOf('GET /orders', target, who));
        return socket;
      }),
  };
}

/** Bodies byte by byte: of reserved writes, or of plain ones. */
export function dripped(
  kind: 'reserved' | 'plain',
  who: Who,
  connections: number,
  { bytes, everyMs }: { readonly bytes: number; readonly everyMs: number },
): Attack {
  return {
    name: `bodies of ${kind} writes, byte by byte, of ${who === 'stranger' ? 'strangers' : 'one caller'}`,
    run: async (target, ended) => {
      const drip = async (id: number): Promise<void> => {
        while (!ended()) {
          const socket = openAndRead(target.port);
          await written(
            socket,
            headOf(
              `POST ${pathOf(kind, who)}`,
              target,
              who,
              `Idempotency-Key: drip-${String(id)}\r\nContent-Length: 500000\r\n`,
            ),
          );
          while (!ended() && socket.writable) {
            for (let count = 0; count < bytes; count += 1) socket.write('x');
            await sleep(everyMs);
          }
          socket.destroy();
          await sleep(Math.max(10, everyMs));
        }
      };
      await Promise.all(Array.from({ length: connections }, async (_, id) => drip(id)));
    },
  };
}

/** Asks for answers that come in pieces of one byte, and does not read them. */
export function deaf(many: Many, who: Who): Attack {
  return {
    name: `responses byte by byte to ${who === 'stranger' ? 'strangers' : 'callers'} that do not read`,
    run: async (target, ended) =>
      keepUp(many, ended, () => {
        const socket = open(target.port).pause();
        socket.write(headOf(`GET ${pathOf('drip', who)}`, target, who));
        return socket;
      }),
  };
}

/** Asks for large answers and takes a little of them now and then. */
export function slowReaders(many: Many, who: Who): Attack {
  return {
    name: `slow readers of large responses: ${who === 'stranger' ? 'strangers' : 'one caller'}`,
    run: async (target, ended) =>
      keepUp(many, ended, () => {
        const socket = open(target.port).pause();
        socket.write(headOf(`GET ${pathOf('large', who)}`, target, who));
        const timer = setInterval(() => {
          socket.read(1_024);
        }, 1_000);
        socket.once('close', () => {
          clearInterval(timer);
        });
        return socket;
      }),
  };
}

/** Asks an upstream that sends as much as it may before a body, again and again. */
export function heavyHeads(many: Many): Attack {
  return {
    name: 'heads of 60 KiB behind 1,000 interim responses, of the upstream',
    run: async (target, ended) =>
      keepUp(many, ended, () => {
        const socket = openAndRead(target.port);
        socket.write(headOf('GET /heads', target, 'caller', 'Connection: close\r\n'));
        return socket;
      }),
  };
}

/** Asks and hangs up, with more requests behind. */
export function hungUp(
  who: Who,
  { connections, everyMs }: { readonly connections: number; readonly everyMs: number },
): Attack {
  return {
    name: `hang-ups behind pipelined requests, of ${who === 'stranger' ? 'strangers' : 'one caller'}`,
    run: async (target, ended) => {
      while (!ended()) {
        const sockets = Array.from({ length: connections }, () => openAndRead(target.port));
        for (const socket of sockets) {
          socket.write(
            `${headOf(`GET ${pathOf('slow', who)}`, target, who)}${headOf('GET /orders', target, who).repeat(20)}`,
          );
        }
        await sleep(everyMs);
        for (const socket of sockets) socket.destroy();
      }
    },
  };
}

/** Opens WebSockets and sends frames without a payload to a service that does not read. */
export function frames(
  many: Many,
  who: Who,
  { frames: count, everyMs }: { readonly frames: number; readonly everyMs: number },
): Attack {
  const frame = Buffer.from([0x81, 0x81, 1, 2, 3, 4, 5]);
  const upgrade =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
  return {
    name: `empty frames of WebSockets of ${who === 'stranger' ? 'strangers' : 'one caller'}`,
    run: async (target, ended) =>
      keepUp(many, ended, () => {
        const socket = openAndRead(target.port);
        socket.write(headOf(`GET ${pathOf('live', who)}`, target, who, upgrade));
        const timer = setInterval(() => {
          if (socket.writableLength < 65_536) for (let sentNow = 0; sentNow < count; sentNow += 1) socket.write(frame);
        }, everyMs);
        socket.once('close', () => {
          clearInterval(timer);
        });
        return socket;
      }),
  };
}
