import { IncomingMessage } from 'node:http';
import type { Exchange } from './exchange.js';

/**
 * What the server makes of each request, with a place for its exchange. A WeakMap would do as well, but it keeps every
 * exchange alive through young collections, and the collector's work doubles.
 */
export class CallerRequest extends IncomingMessage {
  exchange: Exchange | null = null;
  private asksForUpgrade: unknown = null;

  /**
   * Node sets it where Connection and Upgrade ask for another protocol, and asks it whether to give the connection up. An
   * offer of HTTP/2 may be ignored: such a request is one like any other, with its body.
   */
  get upgrade(): boolean {
    return this.asksForUpgrade === true && (this.method === 'CONNECT' || /websocket/i.test(this.headers.upgrade ?? ''));
  }

  set upgrade(asked: unknown) {
    this.asksForUpgrade = asked;
  }
}

/** The exchange of a request, where it is one of ours. */
export function exchangeOf(req: IncomingMessage): Exchange | null {
  return req instanceof CallerRequest ? req.exchange : null;
}
