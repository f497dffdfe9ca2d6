import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { QueueBudget } from '../proxy/inbound/queue-budget.js';
import { ReadControl } from '../proxy/inbound/read-control.js';
import { hasBody, stopParserAtBody } from '../proxy/node-internals/parser.js';

/** What is read of all connections behind requests that end theirs, so that a hang-up is noticed; bytes. */
const maxHeldBytes = 4 * 1024 * 1024;

/**
 * Has a server hold so many connections, and serve one request of each at a time, one in each turn of the event loop:
 * whatever comes to it, callers of the proxy have their turn in between.
 *
 * One more connection takes the place of the oldest that has no complete request, or of the oldest of all where every
 * one is being answered. `Server.maxConnections` would refuse the new one: whoever opens connections and says nothing
 * would keep every monitor out.
 *
 * A connection that brings a request before the one before it is answered ends with that answer, and nothing more of it
 * is parsed: one packet may bring 2,500 requests, and no monitor sends them so. The client sends them again (RFC 9112
 * §9.3.2).
 */
export function serveInTurns(server: Server, maxConnections: number, serve: RequestListener): void {
  /** In the order in which they came. */
  const open = new Map<Socket, ReadControl>();
  /** Those without a complete request, in the order in which they began to wait for one. */
  const silent = new Set<Socket>();
  const answering = new Map<Socket, ServerResponse>();
  /** Those whose request waits for its turn, with what serves it. */
  const line = new Map<Socket, () => void>();
  let isTurnDue = false;
  const queueBudget = new QueueBudget({ requests: 0, bytes: maxHeldBytes });

  server.on('connection', (socket: Socket) => {
    if (open.size >= maxConnections) forget(silent.values().next().value ?? open.keys().next().value)?.destroy();
    open.set(socket, new ReadControl(socket, { queueBudget, onOverflow: () => socket.destroy() }));
    silent.add(socket);
    stopParserAtBody(socket);
    socket.once('close', () => forget(socket));
  });
  server.on('request', take);
  // Node would answer these by itself, however many come.
  server.on('checkContinue', take);
  server.on('checkExpectation', take);

  function take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const before = answering.get(socket);
    if (before !== undefined) {
      endAfter(before, socket);
      return;
    }
    silent.delete(socket);
    answering.set(socket, response);
    line.set(socket, () => serve(request, response));
    response.once('close', () => {
      answering.delete(socket);
      line.delete(socket);
      if (open.has(socket)) silent.add(socket);
    });
    // A body has no meaning here: what comes of it is dropped, and the connection with it.
    if (hasBody(request)) endAfter(response, socket);
    if (isTurnDue) return;
    isTurnDue = true;
    setImmediate(giveTurn);
  }

  function giveTurn(): void {
    const first = line.entries().next().value;
    if (first !== undefined) line.delete(first[0]);
    isTurnDue = line.size > 0;
    if (isTurnDue) setImmediate(giveTurn);
    first?.[1]();
  }

  function endAfter(response: ServerResponse, socket: Socket): void {
    const readControl = open.get(socket);
    readControl?.stop();
    readControl?.hold();
    if (!response.headersSent) response.setHeader('connection', 'close');
    else response.once('close', () => socket.destroySoon());
  }

  function forget(socket: Socket | undefined): Socket | undefined {
    if (socket === undefined) return undefined;
    open.delete(socket);
    silent.delete(socket);
    return socket;
  }
}
