/** A receiver that sends the bytes it is told and nothing else: for answers that no HTTP server would give. */
import { createServer, type Socket } from 'node:net';
import { listen } from '../../support/listening.js';
import type { Scope } from '../../support/scope.js';

export interface RawUpstream {
  readonly url: string;
  readonly port: number;
  /** Connections accepted so far. */
  readonly connections: () => number;
  /** Connections open now. */
  readonly open: () => number;
  /** Request heads received so far, over all connections. */
  readonly hits: () => number;
  /** Every byte received so far, connection by connection. */
  readonly received: () => string[];
}

/** Called for each whole request head, with what came on that connection so far and the number of the head on it. */
export type OnRequest = (socket: Socket, received: string, number: number) => void;

/** Starts one; `onRequest` answers by writing to the socket. */
export async function startRawUpstream(t: Scope, onRequest: OnRequest): Promise<RawUpstream> {
  const received: string[] = [];
  const open = new Set<Socket>();
  let hits = 0;
  const server = createServer((socket) => {
    const place = received.push('') - 1;
    let heads = 0;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      const text = (received[place] ?? '') + chunk.toString('latin1');
      received[place] = text;
      const now = text.split(/[A-Z]+ \/\S* HTTP\/1\.1\r\n(?:.+\r\n)*\r\n/).length - 1;
      for (; heads < now; heads++) {
        hits += 1;
        onRequest(socket, text, heads + 1);
      }
    });
  });
  const { port } = await listen(t, server);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    connections: () => received.length,
    open: () => open.size,
    hits: () => hits,
    received: () => received,
  };
}

/** A whole 200 answer with this body. */
export function okResponse(body: string, fields = ''): string {
  return `HTTP/1.1 200 OK\r\n${fields}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
