import { noBackOff, backOffAfter, retryAfterSeconds } from '../../decision/egress/token-life.js';
import { refuse, type Result } from '../../lib/result.js';
import type { Clock, Log } from '../../ports/system.js';
import type {
  FetchedToken,
  TokenFailure,
  TokenFetcher,
  TokenOutcome,
  TokenProblem,
  TokenSourceStatus,
} from '../../ports/tokens.js';
import { createSuspects } from './suspects.js';

/** What sources are made with. */
export interface TokenSourceDeps {
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** Requests that may wait for a token at once; 1,000 unless given. */
  readonly maxWaiting?: number;
}

/** Each holds a request, so that their bound is one of memory. */
const defaultMaxWaiting = 1_000;

/** Bounds how many requests wait. */
interface WaitingRoom {
  /** Waits for what is under way, or begins it, where not too many wait. */
  readonly join: (begin: () => Promise<TokenOutcome>) => TokenOutcome | Promise<TokenOutcome>;
  readonly waiting: () => number;
}

/** Makes one with nobody in it. */
export function waitingRoom(maxWaiting = defaultMaxWaiting): WaitingRoom {
  let waiting = 0;
  return {
    join: (begin) => {
      if (waiting >= maxWaiting) return busy;
      waiting += 1;
      return begin().finally(() => {
        waiting -= 1;
      });
    },
    waiting: () => waiting,
  };
}

/** Callers' own tokens that are refused in a row, beyond which it may not be their fault. */
const manyRefused = 10;

/** The log tells of callers' own tokens at most this often, milliseconds: one for each kind of problem. */
const tellEveryMs = 60_000;

/** The fetches of one source: what came of the last one, who waits, and whether its issuer is left alone. */
export interface FetchState {
  /** Why nothing is to be fetched now, for this caller's own token; `null` where something may. */
  readonly refusal: (subjectToken: string | null) => TokenOutcome | null;
  /** Fetches once. Never rejects. */
  readonly fetch: (subjectToken: string | null) => Promise<Result<FetchedToken, TokenOutcome>>;
  readonly join: WaitingRoom['join'];
  readonly status: () => Pick<TokenSourceStatus, 'lastError' | 'fetches' | 'waiting'>;
  readonly close: () => void;
}

const closed: TokenOutcome = {
  kind: 'unavailable',
  problem: 'closed',
  reason: 'the source was closed',
  retryAfterS: 1,
};

const busy: TokenOutcome = {
  kind: 'unavailable',
  problem: 'busy',
  reason: 'too many requests wait for a token',
  retryAfterS: 1,
};

/** Says that there is no token, and asks to come again after so many milliseconds. */
export function unavailable(problem: TokenProblem, reason: string, afterMs: number): TokenOutcome {
  return { kind: 'unavailable', problem, reason, retryAfterS: retryAfterSeconds(afterMs) };
}

/** Begins with nothing known. `name` is the source's in the config, for the log. */
export function createFetchState(name: string, fetcher: TokenFetcher, deps: TokenSourceDeps): FetchState {
  const { clock, random, log } = deps;
  const room = waitingRoom(deps.maxWaiting);
  const suspects = createSuspects(deps);
  let backOff = noBackOff;
  let failure: TokenFailure | null = null;
  /** Why there is no token, as the log said it last; `null` once one was had. */
  let told: string | null = null;
  /** When the log told of a caller's own token last, by problem. */
  const toldOfOneAtMs = new Map<TokenProblem, number>();
  let lastError: TokenProblem | null = null;
  let fetches = 0;
  let refusedInRow = 0;
  let isClosed = false;

  async function fetchOnce(subjectToken: string | null): Promise<Result<FetchedToken, TokenFailure>> {
    try {
      return await fetcher.fetch(subjectToken);
    } catch (error) {
      // What an issuer sends must not end the process, even where it meets a mistake of ours.
      const reason = `unexpected ${error instanceof Error ? error.name : 'error'}`;
      return refuse({ problem: 'bad_response', reason, retryAfterMs: null, mayBeOfSubject: true });
    }
  }

  function fail(next: TokenFailure, subjectToken: string | null): TokenOutcome {
    lastError = next.problem;
    // A caller's own token says nothing of the issuer. Where none is taken, somebody has to look: by RFC 8693 §2.2.2 a
    // client that may not exchange is told the same.
    if (next.problem === 'subject') {
      refusedInRow += 1;
      if (refusedInRow === manyRefused) {
        log.warn('no caller’s own token is taken by the issuer', {
          source: name,
          in_a_row: manyRefused,
          error: next.reason,
        });
      }
      tellOfOne(next);
      suspects.answered(subjectToken);
      return unavailable('subject', next.reason, 0);
    }
    if (next.mayBeOfSubject === true && subjectToken !== null) {
      const { waitMs, isOfAll } = suspects.fail(next, subjectToken);
      if (!isOfAll) {
        tellOfOne(next);
        return unavailable(next.problem, next.reason, waitMs);
      }
    }
    if (told !== next.reason) {
      log.warn('no token could be had', { source: name, problem: next.problem, error: next.reason });
      told = next.reason;
    }
    const nowMs = clock.monotonic();
    backOff = backOffAfter(backOff, next.retryAfterMs, nowMs, random());
    failure = next;
    return unavailable(next.problem, next.reason, backOff.untilMs - nowMs);
  }

  function tellOfOne({ problem, reason }: TokenFailure): void {
    const nowMs = clock.monotonic();
    if (nowMs < (toldOfOneAtMs.get(problem) ?? -Infinity) + tellEveryMs) return;
    toldOfOneAtMs.set(problem, nowMs);
    // Callers with tokens that are no good are an everyday matter.
    const level = problem === 'subject' ? 'info' : 'warn';
    log[level]('no token could be had for a caller’s own', { source: name, problem, error: reason });
  }

  function succeed(subjectToken: string | null): void {
    lastError = null;
    refusedInRow = 0;
    backOff = noBackOff;
    failure = null;
    suspects.succeed(subjectToken);
    if (told === null) return;
    told = null;
    log.info('tokens can be had again', { source: name });
  }

  /** How long nothing is fetched for this caller, and why; `null` where something may be. */
  function resting(subjectToken: string | null): { readonly failure: TokenFailure; readonly untilMs: number } | null {
    const all = failure === null ? null : { failure, untilMs: backOff.untilMs };
    const own = subjectToken === null ? null : suspects.resting(subjectToken);
    return own !== null && own.untilMs > (all?.untilMs ?? -Infinity) ? own : all;
  }

  return {
    refusal: (subjectToken) => {
      if (isClosed) return closed;
      const rest = resting(subjectToken);
      if (rest === null) return null;
      const leftMs = rest.untilMs - clock.monotonic();
      return leftMs > 0 ? unavailable(rest.failure.problem, rest.failure.reason, leftMs) : null;
    },
    fetch: async (subjectToken) => {
      const fetched = await fetchOnce(subjectToken);
      fetches += 1;
      if (isClosed) return refuse(closed);
      if (!fetched.ok) return refuse(fail(fetched.error, subjectToken));
      succeed(subjectToken);
      return fetched;
    },
    join: room.join,
    status: () => ({ lastError, fetches, waiting: room.waiting() }),
    close: () => {
      isClosed = true;
      fetcher.close();
    },
  };
}
