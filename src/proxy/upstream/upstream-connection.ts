import type { Duplex, Readable } from 'node:stream';
import type { Link } from './socket.js';

/** A request as it goes out on one connection. */
export interface ConnectionRequest {
  readonly method: string;
  /** The request target, byte for byte as it goes out. */
  readonly target: string;
  /** Names and values in turn. A streamed body without `Content-Length` goes out chunked. */
  readonly fields: string[];
  readonly body: Readable | Buffer | null;
  /** Protocol to switch to, where one is asked for. */
  readonly upgrade?: string;
}

/** Hears how one request goes. It ends in exactly one `onComplete`, `onError` or `onUpgrade`. */
export interface RequestEvents {
  /** It is about to be written: the last moment to `abort` with nothing sent. */
  readonly onConnect: () => void;
  /** Some of its body was written. */
  readonly onBodySent: () => void;
  /** The last byte of it was written. */
  readonly onRequestSent: () => void;
  /** The final response head; names and values in turn. */
  readonly onHead: (status: number, fields: string[]) => void;
  /** `false` stops the receiver until `resume`. */
  readonly onData: (chunk: Buffer) => boolean;
  /** The answer is whole. `isReusable` tells whether another request may follow on the connection. */
  readonly onComplete: (isReusable: boolean) => void;
  /** The limit that was set has passed. */
  readonly onTimeout: () => void;
  readonly onError: (error: unknown) => void;
  readonly onUpgrade: (fields: readonly string[], socket: Duplex) => void;
}

/** One connection to the receiver. */
export interface UpstreamConnection {
  /** `isLast` tells the receiver that no other request follows on the connection. */
  readonly send: (request: ConnectionRequest, events: RequestEvents, isLast: boolean) => void;
  /** Sets the time limit of the request under way, milliseconds, in place of the one before. */
  readonly setLimit: (limitMs: number) => void;
  readonly liftLimit: () => void;
  /** Lets the body go on after `onData` said `false`. */
  readonly resume: () => void;
  /** Breaks off the request under way, which then ends in `onError`. */
  readonly abort: (error: Error) => void;
  /** Ends it at once. */
  readonly close: () => void;
}

/** What a connection tells whoever keeps it. */
export interface ConnectionHost {
  /** It carries no other request, and the receiver was told or said so: to be left to end it. */
  readonly onFarewell: (link: Link) => void;
  /** It ended while it was idle. */
  readonly onGone: (connection: UpstreamConnection) => void;
}
