import type { Duplex } from 'node:stream';
import { Client, type Dispatcher } from 'undici';
import { hasReadableBody } from '../../decision/http/response-headers.js';
import { BrokenAnswer } from './connection-errors.js';
import { undiciConnector, type Connector } from './connector.js';
import { Deadline } from './deadline.js';
import { InterimResponses } from './interim-responses.js';
import type { Link } from './socket.js';
import type { ConnectionRequest, RequestEvents, UpstreamConnection } from './upstream-connection.js';

/** Response heads of applications with many cookies fit; what is larger is a broken answer. */
const maxHeadBytes = 64 * 1024;

/**
 * A connection for one request to switch protocols, whose answer hands over the socket. It carries no other request,
 * whatever is answered.
 */
export class HandshakeConnection implements UpstreamConnection, Dispatcher.DispatchHandler {
  private readonly client: Client;
  private readonly interim = new InterimResponses();
  private readonly deadline = new Deadline(() => this.events?.onTimeout());
  private events: RequestEvents | null = null;
  private breakOff: ((error: Error) => void) | null = null;
  private goOn: (() => void) | null = null;
  /**
   * undici takes a reset, or an end of TCP beneath TLS, for the clean end of an answer that ends with its connection.
   */
  private hasFailed = false;

  constructor({ origin, connect }: Connector) {
    this.client = new Client(origin, {
      connect: undiciConnector((callback) =>
        connect((outcome) => {
          if (!(outcome instanceof Error)) this.watch(outcome);
          callback(outcome);
        }),
      ),
      pipelining: 1,
      maxHeaderSize: maxHeadBytes,
      // Whoever asked keeps time: undici's timers are coarse.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  send({ method, target, fields, body, upgrade }: ConnectionRequest, events: RequestEvents): void {
    this.events = events;
    this.client.dispatch({ method, path: target, headers: fields, body, upgrade: upgrade ?? null }, this);
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

  onConnect(abort: (error?: Error) => void): void {
    this.breakOff = abort;
    this.interim.expect();
    this.events?.onConnect();
  }

  onBodySent(): void {
    this.events?.onBodySent();
  }

  /** Called by undici when the last byte of the request was written, though its types do not say so. */
  onRequestSent(): void {
    this.events?.onRequestSent();
  }

  onHeaders(status: number, fields: Buffer[], resume: () => void): boolean {
    if (status < 200) return true;
    this.goOn = resume;
    const texts = fields.map(latin1);
    if (hasReadableBody(texts)) this.events?.onHead(status, texts);
    else this.breakOff?.(new BrokenAnswer('a transfer coding that is not undone'));
    return true;
  }

  onData(chunk: Buffer): boolean {
    return this.events?.onData(chunk) ?? true;
  }

  onComplete(): void {
    if (this.hasFailed) this.events?.onError(new BrokenAnswer('the connection was reset'));
    else this.events?.onComplete(false);
  }

  onError(error: unknown): void {
    this.events?.onError(error);
  }

  onUpgrade(_status: number, fields: Buffer[] | string[] | null, socket: Duplex): void {
    this.deadline.end();
    this.events?.onUpgrade((fields ?? []).map(latin1), socket);
  }

  private watch(link: Link): void {
    const { socket } = link;
    this.interim.watch(socket);
    socket
      .once('error', () => {
        this.hasFailed = true;
      })
      .once('end', () => {
        this.hasFailed ||= !link.endedItself();
      });
  }
}

function latin1(bytes: Buffer | string): string {
  return bytes.toString('latin1');
}
