import type { Denial } from '../../decision/denial.js';

/** The caller of a request, who may be gone: what carries the request on speaks to it through this. */
export interface Caller {
  /** Whether nothing said from now on would be heard. */
  readonly isGone: () => boolean;
  /** Answers with a problem document or, where an answer has begun, breaks that off. */
  readonly refuse: (reason: Denial) => void;
  /** Refuses what was to be reserved first, and was not: there is no record of it. */
  readonly refuseUnreserved: (reason: Denial) => void;
  /** Refuses what was not sent on yet, or lets it go on with this body where the route is in shadow mode. */
  readonly refuseUnsent: (reason: Denial, body: Buffer) => void;
  /** A whole answer: the receiver's, or one that was kept. */
  readonly give: (answer: WholeAnswer) => void;
  /** The head of an answer whose body comes in parts. Names and values in turn. */
  readonly begin: (status: number, fields: string[]) => void;
  /** `false` where the caller does not keep up: the rest has to wait for `Onward.resume`. */
  readonly write: (chunk: Buffer) => boolean;
  readonly end: () => void;
  /** The receiver is asked. */
  readonly asked: () => void;
  /** Its answer is complete or given up. */
  readonly answered: () => void;
  /** A bug. */
  readonly fail: (error: unknown) => void;
}

export interface WholeAnswer {
  readonly status: number;
  /** Names and values in turn. */
  readonly fields: string[];
  readonly body: Buffer;
  readonly isReplayed: boolean;
}

/** A request on its way to the receiver, seen from the caller's side. */
export interface Onward {
  /** The caller keeps up again. */
  readonly resume: () => void;
  /** Nobody listens any more. */
  readonly leave: () => void;
}
