import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Client, type Dispatcher } from 'undici';
import { undiciConnector, type Connector } from './connector.js';
import { Deadline } from './deadline.js';
import { InterimResponses } from './interim-responses.js';
import type { ConnectionRequest, RequestEvents, UpstreamConnection } from './upstream-connection.js';

/** Response heads of applications with many cookies fit; what is larger is a broken answer. */
const maxHeadBytes = 64 * 1024;

/** What undici tells, in part although its types do not say so. */
interface HandshakeEvents extends Dispatcher.DispatchHandler {
  readonly onRequestSent: () => void;
}

/**
 * A connection for one request to switch protocols, whose answer hands over the socket. It carries no other request,
 * whatever is answered.
 */
export class HandshakeConnection implements UpstreamConnection {
  private readonly client: Client;
  private readonly interim = new InterimResponses();
  private readonly deadline = new Deadline(() => this.events?.onTimeout());
  private events: RequestEvents | null = null;
  private breakOff: ((error: Error) => void) | null = null;
  private goOn: (() => void) | null = null;
  /** undici takes a reset for the clean end of an answer that ends with its connection. */
  private hasFailed = false;

  constructor({ origin, connect }: Connector) {
    this.client = new Client(origin, {
      connect: undiciConnector((callback) => {
        connect((outcome) => {
          if (!(outcome instanceof Error)) this.watch(outcome);
          callback(outcome);
        });
      }),
      pipelining: 1,
      maxHeaderSize: maxHeadBytes,
      // Whoever asked keeps time: undici's timers are coarse.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  send({ method, target, fields, body, upgrade }: ConnectionRequest, events: RequestEvents): void {
    this.events = events;
    this.client.dispatch({ method, path: target, headers: fields, body, upgrade: upgrade ?? null }, this.handlerOf(events));
  }

  setLimit(limitMs: number): void {
    this.deadline.set(limitMs);
  }

  liftLimit(): void {
    this.deadline.lift();
  }

  resume(): void {
    this.goOn?.();
  }

  abort(error: Error): void {
    this.breakOff?.(error);
  }

  close(): void {
    this.deadline.end();
    void this.client.destroy();
  }

  private watch(socket: Socket): void {
    this.interim.watch(socket);
    socket.once('error', () => {
      this.hasFailed = true;
    });
  }

  private handlerOf(events: RequestEvents): HandshakeEvents {
    return {
      onConnect: (abort) => {
        this.breakOff = abort;
        this.interim.expect();
        events.onConnect();
      },
      onBodySent: () => {
        events.onBodySent();
      },
      // The last byte of the request was written.
      onRequestSent: () => {
        events.onRequestSent();
      },
      onHeaders: (status, fields, resume) => {
        if (status < 200) return true;
        this.goOn = resume;
        events.onHead(status, fields.map(latin1));
        return true;
      },
      onData: chunk => events.onData(chunk),
      onComplete: () => {
        if (this.hasFailed) events.onError(new Error('reset'));
        else events.onComplete(false);
      },
      onError: (error) => {
        events.onError(error);
      },
      onUpgrade: (_status, fields, socket: Duplex) => {
        this.deadline.end();
        events.onUpgrade((fields ?? []).map(latin1), socket);
      },
    };
  }
}

function latin1(bytes: Buffer | string): string {
  return bytes.toString('latin1');
}
