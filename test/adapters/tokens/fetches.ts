/** Fetches that end when a test says so. */
import type { TokenSourceDeps } from '../../../src/adapters/tokens/fetch-state.js';
import { accept, refuse, type Result } from '../../../src/lib/result.js';
import type { FetchedToken, TokenFailure, TokenFetcher, TokenOutcome } from '../../../src/ports/tokens.js';

type Fetched = Result<FetchedToken, TokenFailure>;

export interface Fetches {
  readonly fetcher: TokenFetcher;
  /** Subject tokens of the fetches so far. */
  readonly asked: (string | null)[];
  readonly isClosed: () => boolean;
  /** Ends the oldest fetch under way. */
  readonly end: (fetched: Fetched) => Promise<void>;
  /** Ends it with an error that no fetch should end with. */
  readonly breakOff: (error: unknown) => Promise<void>;
  readonly deps: TokenSourceDeps;
  /** Lines of the log. */
  readonly lines: string[];
  /** Both clocks. */
  readonly advance: (ms: number) => void;
  /** The clock of the day alone, as in a machine that sleeps. */
  readonly sleep: (ms: number) => void;
  readonly nowMs: () => number;
}

export function fetches(maxWaiting?: number): Fetches {
  let monotonicMs = 1_000;
  let dayMs = 1_800_000_000_000;
  const open: { readonly resolve: (fetched: Fetched) => void; readonly reject: (error: unknown) => void }[] = [];
  const asked: (string | null)[] = [];
  const lines: string[] = [];
  let isClosed = false;
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const log = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
  return {
    fetcher: {
      fetch: (subjectToken) => {
        asked.push(subjectToken);
        return new Promise((resolve, reject) => open.push({ resolve, reject }));
      },
      close: () => {
        isClosed = true;
      },
    },
    asked,
    isClosed: () => isClosed,
    end: async (fetched) => {
      open.shift()?.resolve(fetched);
      await settled();
    },
    breakOff: async (error) => {
      open.shift()?.reject(error);
      await settled();
    },
    deps: {
      clock: { now: () => dayMs, monotonic: () => monotonicMs },
      random: () => 0,
      log: { info: log, warn: log },
      ...(maxWaiting === undefined ? {} : { maxWaiting }),
    },
    lines,
    advance: (ms) => {
      monotonicMs += ms;
      dayMs += ms;
    },
    sleep: (ms) => {
      dayMs += ms;
    },
    nowMs: () => dayMs,
  };
}

/** A token of 300 s unless told otherwise: renewed from 210 s on, given until 270 s. */
export function token(name: string, lifetimeMs = 300_000): Fetched {
  return accept({ token: name, lifetimeMs });
}

export function failure(
  problem: TokenFailure['problem'],
  retryAfterMs: number | null = null,
  mayBeOfSubject = false,
): Fetched {
  return refuse({ problem, reason: `it is ${problem}`, retryAfterMs, mayBeOfSubject });
}

/** The token's text, or the problem there is. */
export async function wordOf(outcome: TokenOutcome | Promise<TokenOutcome>): Promise<string> {
  const told = await outcome;
  return told.kind === 'token' ? told.token : `${told.problem} ${String(told.retryAfterS)}`;
}
