import { problemTypeOf } from '../http/problem-details.js';
import { safeMethods } from '../http/request-head.js';

/** What became of one attempt to have a request carried out. */
export type AttemptOutcome =
  /** No connection, or none whose peer is the target: nothing of the request was sent. */
  | { readonly kind: 'not_sent' }
  /** Something was sent, and no response came, or none in time. */
  | { readonly kind: 'no_response' }
  | {
      readonly kind: 'response';
      readonly status: number;
      /** Whether `Proxy-Status` (RFC 9209) names a Sallyport before the target, whose word on what happened counts. */
      readonly isSallyports: boolean;
      /** Of a problem document (RFC 9457 §3.1.1); `null` where it is none. */
      readonly problemType: string | null;
      /** Milliseconds, of `Retry-After` (RFC 9110 §10.2.3); `null` where it has none that can be read. */
      readonly retryAfterMs: number | null;
      /** Of a 401 that gives a nonce for the next proof (RFC 9449 §9). */
      readonly nonce?: string;
    };

/** A request, and what was done for it so far. */
export interface AttemptedRequest {
  readonly method: string;
  /** Whether it has an idempotency key, the same in each attempt. */
  readonly hasKey: boolean;
  /** Whether it has no body, or one that is held to be sent again. */
  readonly isRepeatable: boolean;
  /** Whether it opens a WebSocket: whoever wants one asks again, so that its token and its proof alone are mended. */
  readonly isHandshake: boolean;
  /**
   * Attempts so far that count, 1 and more: not those that brought another token or nonce, nor those that only asked
   * whether an earlier one is over.
   */
  readonly attempts: number;
  /** Milliseconds since the first began. */
  readonly elapsedMs: number;
  /** Whether a token was already had anew for it. */
  readonly hasNewToken: boolean;
  /**
   * The nonce of the last proof, `null` where it had none; left out where there was no proof, or a nonce was taken up
   * already.
   */
  readonly provedNonce?: string | null;
}

/** How often, and how long. */
export interface RetryLimits {
  /** All of them, the first included; 1 and more. */
  readonly attempts: number;
  /** Milliseconds from the beginning of the first within which the last begins. */
  readonly withinMs: number;
}

/**
 * Why a request is not sent again.
 * - `final`: it was answered
 * - `in_doubt`: it may have been carried out, and no key keeps a second attempt from doing so again
 * - `body_not_held`: its body was too large, or there was no room to hold it
 * - `attempts`, `time`, `budget`: what the target's settings allow is used up
 */
export type NoRetryReason = 'final' | 'in_doubt' | 'body_not_held' | 'attempts' | 'time' | 'budget';

type RetryVerdict =
  | { readonly kind: 'pass'; readonly reason: NoRetryReason }
  | {
      readonly kind: 'retry';
      readonly afterMs: number;
      /** The target did not take the token. */
      readonly needsNewToken: boolean;
      /** It asked for a proof with a nonce that it gave. */
      readonly needsNonce: boolean;
      /**
       * Whether it counts as one of `attempts`, and towards the budget; retries that do not are bounded in other ways.
       */
      readonly counts: boolean;
    };

/** Before the second attempt, doubled before each further one; milliseconds, of which a random part is waited. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;

/** Where a response asks to wait without saying for how long. */
const usualWaitMs = 1_000;

/**
 * The least wait for an attempt under way, whatever the response asks for: nothing else bounds how often it is asked
 * about.
 */
const leastWaitMs = 100;

/** Of a write whose first attempt is under way. */
const inProgress = problemTypeOf('idempotency_in_progress');

/** Statuses of what was refused, whoever says so: its token, its rate, or all for now. */
const refusals: ReadonlySet<number> = new Set([401, 425, 429, 503]);

/** What an outcome says of the request. */
type Meaning = 'final' | 'not_applied' | 'in_doubt' | 'under_way' | 'unauthorized' | 'nonce_asked';

/**
 * Decides whether a request is sent again (RFC 9110 §9.2.2): where it certainly was not applied; where nobody knows, if
 * it is safe or its key keeps it from being applied twice; and never after a final response. Pure.
 *
 * @param random at least 0 and less than 1.
 * @param isInBudget whether the target's budget of retries has room.
 */
export function judgeAttempt(
  outcome: AttemptOutcome,
  request: AttemptedRequest,
  limits: RetryLimits,
  { random, isInBudget }: { readonly random: number; readonly isInBudget: boolean },
): RetryVerdict {
  const meaning = asksForNonce(outcome, request) ? 'nonce_asked' : meaningOf(outcome);
  if (meaning === 'final') return pass('final');
  // A second refusal is not the token's fault.
  if (meaning === 'unauthorized' && request.hasNewToken) return pass('final');
  const needsNewToken = meaning === 'unauthorized';
  const needsNonce = meaning === 'nonce_asked';
  if (request.isHandshake && !needsNewToken && !needsNonce) return pass('final');
  if (meaning === 'in_doubt' && !request.hasKey && !safeMethods.has(request.method)) return pass('in_doubt');
  if (!request.isRepeatable) return pass('body_not_held');
  const counts = meaning === 'not_applied' || meaning === 'in_doubt';
  if (counts && request.attempts >= limits.attempts) return pass('attempts');
  const afterMs = needsNewToken || needsNonce ? 0 : pauseMs(outcome, request.attempts, random);
  if (request.elapsedMs + afterMs > limits.withinMs) return pass('time');
  if (counts && !isInBudget) return pass('budget');
  return { kind: 'retry', afterMs, needsNewToken, needsNonce, counts };
}

/** Whether it gives a nonce that the last proof did not have: then nothing was said of the token (RFC 9449 §9). */
export function asksForNonce(outcome: AttemptOutcome, { provedNonce }: Pick<AttemptedRequest, 'provedNonce'>): boolean {
  if (provedNonce === undefined || outcome.kind !== 'response' || outcome.nonce === undefined) return false;
  return outcome.nonce !== provedNonce;
}

/** Whether an attempt that ended so may have been carried out. Of a safe request that is no matter. */
export function leavesDoubt(outcome: AttemptOutcome, method: string): boolean {
  return meaningOf(outcome) === 'in_doubt' && !safeMethods.has(method);
}

/**
 * Whether what became of the last attempt tells what became of the request, where an earlier attempt may have been
 * carried out. A refusal tells of the attempt that it refuses, and of none before: whoever is told that it was not
 * applied would ask again. What a Sallyport says of the key (409, 422) is about all of them.
 */
export function settlesDoubt(outcome: AttemptOutcome): boolean {
  if (outcome.kind !== 'response') return false;
  const { status, isSallyports } = outcome;
  if (status === 409 || status === 422) return true;
  return !refusals.has(status) && !(isSallyports && status >= 400);
}

function meaningOf(outcome: AttemptOutcome): Meaning {
  if (outcome.kind === 'not_sent') return 'not_applied';
  if (outcome.kind === 'no_response') return 'in_doubt';
  const { status, isSallyports, problemType, retryAfterMs } = outcome;
  switch (status) {
    case 401:
      return 'unauthorized';
    case 409:
      return isSallyports && problemType === inProgress ? 'under_way' : 'final';
    // RFC 8470 §5.2: it was not processed.
    case 425:
      return 'not_applied';
    case 429:
      return retryAfterMs === null ? 'final' : 'not_applied';
    case 502:
    case 504:
      return 'in_doubt';
    // From anybody but a Sallyport, it may come after the work was done.
    case 503:
      return isSallyports ? 'not_applied' : 'final';
    default:
      return 'final';
  }
}

/**
 * The wait that the response asks for, if any, and a random part of a pause that doubles, which spreads callers. What a
 * 502 or 504 asks for is not waited for: it comes from a server before the target, that knows nothing of the target.
 */
function pauseMs(outcome: AttemptOutcome, attempts: number, random: number): number {
  const ceilingMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (attempts - 1));
  if (outcome.kind !== 'response' || outcome.status === 502 || outcome.status === 504) return random * ceilingMs;
  const isUnderWay = outcome.status === 409;
  const askedMs = Math.max(outcome.retryAfterMs ?? (isUnderWay ? usualWaitMs : 0), isUnderWay ? leastWaitMs : 0);
  return askedMs + random * ceilingMs;
}

function pass(reason: NoRetryReason): RetryVerdict {
  return { kind: 'pass', reason };
}
