import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestHead } from '../../decision/http/request-head.js';
import type { UpgradeRequest } from '../websocket/upgrade-request.js';
import type { ClientConnection, PipelinedRequest } from './client-connection.js';
import type { BodySource, ReceivedRequest, ResponseWriter, ResponseWriterHost } from './received-request.js';
import { Pieces, restingReads } from '../resting-reads.js';
import { Http1ResponseWriter } from './response-writer.js';
import { LeanRequest } from '../node-internals/request.js';

/** What serves a request. */
export interface RequestHandler extends PipelinedRequest {
  /** A bug. */
  readonly fail: (error: unknown) => void;
}

/**
 * What the server makes of each request, with a place for its exchange. A WeakMap would do as well, but it keeps every
 * exchange alive through young collections, and the collector's work doubles.
 */
export class ClientRequest extends LeanRequest {
  exchange: RequestHandler | null = null;
  /** The target as it came; Fastify puts it here, and what its router is shown in the place of `url`. */
  originalUrl: string | undefined = undefined;
  /** Of a request to switch protocols, what came in one packet with its head; `null` of any other. */
  afterHead: Buffer | null = null;
}

/** The exchange of a request, where it is one of ours. */
export function exchangeOf(req: IncomingMessage): RequestHandler | null {
  return req instanceof ClientRequest ? req.exchange : null;
}

/** A request of HTTP/1.1, as Node hands it over. */
export class Http1Request implements ReceivedRequest {
  readonly head: RequestHead;
  readonly connection: ClientConnection;
  readonly upgrade: UpgradeRequest | null;
  private readonly req: ClientRequest;
  private readonly res: ServerResponse;

  constructor(req: ClientRequest, res: ServerResponse, connection: ClientConnection, upgrade: UpgradeRequest | null) {
    this.req = req;
    this.res = res;
    this.connection = connection;
    this.upgrade = upgrade;
    this.head = {
      method: req.method ?? '',
      target: req.originalUrl ?? '',
      httpVersion: req.httpVersion,
      rawHeaders: req.rawHeaders,
    };
  }

  begin(onOver: () => void, onError: (error: unknown) => void): boolean {
    const { res, connection, upgrade } = this;
    upgrade?.begin();
    if (res.socket === null) {
      // Node gave the connection up with the response before: what is sent on now could not be answered.
      connection.abort();
      return false;
    }
    res.on('close', onOver).on('error', onError);
    return true;
  }

  createWriter(host: ResponseWriterHost): ResponseWriter {
    const { req, res, connection, upgrade } = this;
    return new Http1ResponseWriter({ req, res, connection, upgrade }, host);
  }

  body(): BodySource {
    const { req, res } = this;
    const pieces = new Pieces(restingReads, req.socket, () => req.complete);
    return {
      stream: req,
      onRead: (bytes, idleLimitMs) => pieces.took(bytes, idleLimitMs),
      brokenBy: 'body_broken',
      isComplete: () => req.complete,
      trailers: () => req.rawTrailers,
      sendContinue: () => res.writeContinue(),
    };
  }
}
