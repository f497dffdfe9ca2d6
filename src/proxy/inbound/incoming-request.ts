import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Exchange } from '../exchange/exchange.js';
import type { UpgradeRequest } from '../websocket/upgrade-request.js';
import type { ClientConnection } from './client-connection.js';
import { LeanRequest } from '../node-internals/request.js';

/**
 * What the server makes of each request, with a place for its exchange. A WeakMap would do as well, but it keeps every
 * exchange alive through young collections, and the collector's work doubles.
 */
export class ClientRequest extends LeanRequest {
  exchange: Exchange | null = null;
  /** The target as it came; Fastify puts it here, and what its router is shown in the place of `url`. */
  originalUrl: string | undefined = undefined;
  /** Of a request to switch protocols, what came in one packet with its head; `null` of any other. */
  afterHead: Buffer | null = null;
}

/** The exchange of a request, where it is one of ours. */
export function exchangeOf(req: IncomingMessage): Exchange | null {
  return req instanceof ClientRequest ? req.exchange : null;
}

/** A request as Node hands it over. */
export interface ReceivedRequest {
  readonly req: IncomingMessage & {
    /** The target as it came. */
    readonly originalUrl: string | undefined;
    /** Whether more than the head is sent. */
    readonly comesWithBody: () => boolean;
  };
  readonly res: ServerResponse;
  readonly connection: ClientConnection;
  /** Where it asks for another protocol, and Node has left its connection to us. */
  readonly upgrade: UpgradeRequest | null;
}
