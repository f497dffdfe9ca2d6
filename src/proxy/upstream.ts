import type { Readable } from 'node:stream';
import type { Denial } from '../decision/denial.js';

/** The receiving service, as one version of the config names it. */
export interface Upstream {
  /**
   * Sends one request, once: whatever fails, nothing is sent again. Where every connection is busy it waits in line, no
   * longer than connecting may take. Ends in exactly one `ended` or `failed` of the receiver, unless it is cancelled.
   */
  readonly send: (request: UpstreamRequest, answer: AnswerSink) => UpstreamCall;
  /** Says that a reload replaced it: what is under way or in line goes on, and each connection closes when it is idle. */
  readonly retire: () => void;
  /** Breaks off whatever is still under way and closes every connection. */
  readonly close: () => Promise<void>;
  readonly counts: () => UpstreamCounts;
}

export interface UpstreamRequest {
  readonly method: string;
  /** The request target, byte for byte as it goes out. */
  readonly target: string;
  /** Names and values in turn. A body without `Content-Length` goes out chunked. */
  readonly fields: readonly string[];
  readonly body: Readable | null;
  /** Milliseconds from the end of the request to the end of the response head. */
  readonly responseTimeoutMs: number;
}

/** Takes the receiver's answer as it comes. */
export interface AnswerSink {
  /** The final response head; 1xx ones are dropped. `rawHeaders` has names and values in turn. */
  readonly head: (status: number, rawHeaders: readonly string[]) => void;
  /** Some of the body. `false` stops the receiver until `resume`. */
  readonly body: (chunk: Buffer) => boolean;
  /** The answer is complete. */
  readonly ended: () => void;
  /** There is no answer, or the rest of it will not come. */
  readonly failed: (denial: Denial) => void;
}

/** A request under way. */
export interface UpstreamCall {
  /** Lets the body go on after `AnswerSink.body` said `false`. */
  readonly resume: () => void;
  /** Takes it out of the line or breaks it off. The sink hears nothing more. */
  readonly cancel: () => void;
}

export interface UpstreamCounts {
  /** Requests that have a connection. */
  readonly active: number;
  /** Requests that wait for one. */
  readonly waiting: number;
}
