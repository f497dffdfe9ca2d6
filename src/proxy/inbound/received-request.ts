import type { Readable } from 'node:stream';
import type { Denial } from '../../decision/denial.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { Peer } from '../auth/authorize-request.js';
import type { UpgradableResponse, UpgradeRequest } from '../websocket/upgrade-request.js';
import type { PipelinedRequest } from './client-connection.js';

/** The connection that a request came on, as far as its exchange needs it. */
export interface RequestConnection {
  readonly peer: Peer;
  /** A request of it was let through for somebody. */
  readonly markAuthenticated: () => void;
  /** Whether one was. */
  readonly hasAuthenticated: () => boolean;
  /** The request is answered, or nobody is left to answer to. `nowMs` is of the monotonic clock. */
  readonly finish: (request: PipelinedRequest, nowMs: number) => void;
}

/** A request as its connection hands it over, whichever version of HTTP it came in. */
export interface ReceivedRequest {
  readonly head: RequestHead;
  readonly connection: RequestConnection;
  /** Where it asks for another protocol, and Node has left its connection to us. */
  readonly upgrade: UpgradeRequest | null;
  /**
   * Its turn on the connection has come.
   *
   * @param onOver called once, when its response is over, or its connection.
   * @returns `false` where it could not be answered any more; nothing is called then.
   */
  readonly begin: (onOver: () => void, onError: (error: unknown) => void) => boolean;
  readonly createWriter: (host: ResponseWriterHost) => ResponseWriter;
  /** Its body, asked for where one comes. */
  readonly body: () => BodySource;
}

/** A body on its way from a caller. */
export interface BodySource {
  readonly stream: Readable;
  /** What its end before its time says. */
  readonly brokenBy: 'body_broken' | 'caller_gone';
  /** Whether all of it came: a stream that was broken off ends as well. */
  readonly isComplete: () => boolean;
  /** Names and values in turn, where it is complete and had some. */
  readonly trailers: () => readonly string[];
  /** Tells a caller that waits for it to send it. */
  readonly sendContinue: () => void;
  /** Told of what was read of it, and how long its caller may send nothing, milliseconds. */
  readonly onRead?: (bytes: number, idleLimitMs: number) => void;
}

/** A response that is complete before any of it is sent. */
export interface WholeResponse {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: Buffer;
  /** Names and values in turn; `null` where there are none. */
  readonly trailers: readonly string[] | null;
  /** Whether it was kept from an earlier request. */
  readonly isReplayed: boolean;
}

export interface ResponseWriterHost {
  /** Whether every response closes its connection. */
  readonly isShuttingDown: () => boolean;
  /** What a 401 asks for: names and values in turn. */
  readonly challenges: () => readonly string[];
  /** The caller has as long to take some of the response as the upstream has to send some; milliseconds. */
  readonly writeTimeoutMs: () => number;
  /** The caller leaves the rest in its connection. */
  readonly onWriteTimeout: () => void;
  /** A caller that did not keep up does so again. */
  readonly onWritable: () => void;
}

/** A request that whoever asked about it may forward. */
export interface AllowedRequest {
  /** What it is to be forwarded with, as the sidecar would: names and values in turn. */
  readonly forwarded: readonly string[];
  /** What its caller is to be told beside the response: names and values in turn. */
  readonly response: readonly string[];
  readonly requestId: string;
  readonly activeConfig: ActiveConfig;
}

/** What one caller is answered: the upstream's response as it comes, or a refusal of ours. */
export interface ResponseWriter extends UpgradableResponse {
  /** Whether the whole request was received. */
  readonly isReceived: () => boolean;
  /** What the caller was sent, 0 where nothing was. */
  readonly status: () => number;
  /** How the caller was told that its gRPC call ended, 0 to 16; `null` where it is none, or was not told. */
  readonly grpcStatus: () => number | null;
  /** Whether everything was handed to the system. */
  readonly isDelivered: () => boolean;
  /** Answers with a refusal. `isBodyRead` tells whether somebody asked for the body of the request. */
  readonly refuse: (reason: Denial, requestId: string, isBodyRead: boolean) => void;
  /** Answers that it may be forwarded; only where nothing is forwarded here. */
  readonly allow?: (allowed: AllowedRequest) => void;
  /** Begins the upstream's response; `true` when that is already the whole of it, which then ends as in `end`. */
  readonly begin: (status: number, headers: string[]) => boolean;
  /** `false` when the client does not keep up: `onWritable` says when it does. */
  readonly write: (chunk: Buffer) => boolean;
  /** Ends the response; `trailers` are names and values in turn. */
  readonly end: (trailers: readonly string[] | null) => void;
  /** Begins a whole response, of which only the end is left to say then. */
  readonly sendWhole: (status: number, headers: string[], body: Buffer) => void;
  /** Breaks it off, so that nobody takes what was sent for the whole. */
  readonly abort: () => void;
  /**
   * Breaks off a response that has begun, with the reason where the protocol has a place for it after the body.
   */
  readonly breakOff: (reason: Denial, requestId: string) => void;
  /** The caller took what was written, where Node does not say so itself. */
  readonly onDrain: () => void;
}
