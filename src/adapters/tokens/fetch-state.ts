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

/** The fetches of one source: what came of the last one, who waits, and whether its issuer is left alone. */
export interface FetchState {
  /** Why nothing is to be fetched now; `null` where something may. */
  readonly refusal: () => TokenOutcome | null;
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
  let backOff = noBackOff;
  let failure: TokenFailure | null = null;
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
      return refuse({ problem: 'bad_response', reason, retryAfterMs: null });
    }
  }

  function fail(next: TokenFailure): TokenOutcome {
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
      return unavailable('subject', next.reason, 0);
    }
    const nowMs = clock.monotonic();
    backOff = backOffAfter(backOff, next.retryAfterMs, nowMs, random());
    if (failure?.reason !== next.reason) {
      log.warn('no token could be had', { source: name, problem: next.problem, error: next.reason });
    }
    failure = next;
    return unavailable(next.problem, next.reason, backOff.untilMs - nowMs);
  }

  function succeed(): void {
    lastError = null;
    refusedInRow = 0;
    backOff = noBackOff;
    if (failure === null) return;
    failure = null;
    log.info('tokens can be had again', { source: name });
  }

  return {
    refusal: () => {
      if (isClosed) return closed;
      const leftMs = failure === null ? 0 : backOff.untilMs - clock.monotonic();
      return failure !== null && leftMs > 0 ? unavailable(failure.problem, failure.reason, leftMs) : null;
    },
    fetch: async (subjectToken) => {
      const fetched = await fetchOnce(subjectToken);
      fetches += 1;
      if (isClosed) return refuse(closed);
      if (!fetched.ok) return refuse(fail(fetched.error));
      succeed();
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
