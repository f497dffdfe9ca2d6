import {
  beginLife,
  fullInvalidationBudget,
  judgeLife,
  takeInvalidation,
  type TokenLife,
} from '../../decision/egress/token-life.js';
import type { TokenOutcome } from '../../ports/tokens.js';
import type { FetchState, TokenSourceDeps } from './fetch-state.js';

/** The place of one token. */
export interface TokenSlot {
  /** @param subjectToken what a fetch is made with, where one is needed. It is not kept. */
  readonly get: (subjectToken: string | null) => TokenOutcome | Promise<TokenOutcome>;
  readonly invalidate: (token: string) => void;
  /** Of the token that can be given now; `null` where there is none. */
  readonly life: () => TokenLife | null;
  readonly clear: () => void;
}

interface Kept {
  /** One object for every request: nothing is made to hand a token out. */
  readonly outcome: Extract<TokenOutcome, { kind: 'token' }>;
  readonly life: TokenLife;
}

interface SlotOptions {
  /** Bounds the life of a token, milliseconds from now on. */
  readonly longestMs: () => number;
  /** Called with what a fetch came to, before those who wait are told. */
  readonly onFetched: (outcome: TokenOutcome) => void;
}

/** Keeps one token, renewed ahead of its end while it is in use: one fetch at a time, however many ask. */
export function createTokenSlot(
  state: FetchState,
  { longestMs, onFetched }: SlotOptions,
  { clock, random }: Pick<TokenSourceDeps, 'clock' | 'random'>,
): TokenSlot {
  let kept: Kept | null = null;
  let flight: Promise<TokenOutcome> | null = null;
  let budget = fullInvalidationBudget;

  /** The fetch that is under way, or one that begins. */
  function underWay(subjectToken: string | null): Promise<TokenOutcome> {
    flight ??= fetchToken(subjectToken).finally(() => {
      flight = null;
    });
    return flight;
  }

  async function fetchToken(subjectToken: string | null): Promise<TokenOutcome> {
    const asked = { monotonicMs: clock.monotonic(), dayMs: clock.now() };
    const boundMs = longestMs();
    const fetched = await state.fetch(subjectToken);
    if (!fetched.ok) {
      onFetched(fetched.error);
      return fetched.error;
    }
    const { token, lifetimeMs } = fetched.value;
    const outcome = { kind: 'token', token, scheme: 'Bearer' } as const;
    kept = { outcome, life: beginLife(Math.min(lifetimeMs, boundMs), asked, random()) };
    onFetched(outcome);
    return outcome;
  }

  return {
    get: (subjectToken) => {
      if (kept !== null) {
        const use = judgeLife(kept.life, clock.monotonic(), clock.now());
        if (use === 'fresh') return kept.outcome;
        if (use === 'due') {
          // The one in hand still serves: whoever needs the next one meets the failure, if it lasts.
          if (flight === null && state.refusal(subjectToken) === null) void underWay(subjectToken);
          return kept.outcome;
        }
        kept = null;
      }
      if (flight === null) {
        const refusal = state.refusal(subjectToken);
        if (refusal !== null) return refusal;
      }
      return state.join(() => underWay(subjectToken));
    },
    invalidate: (token) => {
      if (kept === null || kept.outcome.token !== token) return;
      const next = takeInvalidation(budget, clock.monotonic());
      if (next === null) return;
      budget = next;
      kept = null;
    },
    life: () => (kept === null || judgeLife(kept.life, clock.monotonic(), clock.now()) === 'over' ? null : kept.life),
    clear: () => {
      kept = null;
    },
  };
}
