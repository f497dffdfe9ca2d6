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
  /**
   * Whether a target did not take it: `now`, so that who asks waits for another one, or `before`, so that another one
   * was not to be had since.
   */
  refused: 'not' | 'now' | 'before';
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
      if (kept?.refused === 'now') kept.refused = 'before';
      return inHand() ?? fetched.error;
    }
    const { token, lifetimeMs } = fetched.value;
    const outcome = { kind: 'token', token, scheme: 'Bearer' } as const;
    kept = { outcome, life: beginLife(Math.min(lifetimeMs, boundMs), asked, random()), refused: 'not' };
    onFetched(outcome);
    return outcome;
  }

  /** The token that is kept, whoever refused it: one target may be wrong, and there may be no other for long. */
  function inHand(): Kept['outcome'] | null {
    return kept === null || judgeLife(kept.life, clock.monotonic(), clock.now()) === 'over' ? null : kept.outcome;
  }

  return {
    get: (subjectToken) => {
      if (kept !== null) {
        const use = judgeLife(kept.life, clock.monotonic(), clock.now());
        if (use === 'fresh' && kept.refused === 'not') return kept.outcome;
        if (use !== 'over' && kept.refused !== 'now') {
          // The one in hand still serves: whoever needs the next one meets the failure, if it lasts.
          if (flight === null && state.refusal(subjectToken) === null) void underWay(subjectToken);
          return kept.outcome;
        }
        if (use === 'over') kept = null;
      }
      if (flight === null) {
        const refusal = state.refusal(subjectToken);
        if (refusal !== null) return inHand() ?? refusal;
      }
      const outcome = state.join(() => underWay(subjectToken));
      return outcome instanceof Promise ? outcome : (inHand() ?? outcome);
    },
    invalidate: (token) => {
      if (kept === null || kept.outcome.token !== token || kept.refused === 'now') return;
      const next = takeInvalidation(budget, clock.monotonic());
      if (next === null) return;
      budget = next;
      kept.refused = 'now';
    },
    life: () => (inHand() === null ? null : (kept?.life ?? null)),
    clear: () => {
      kept = null;
    },
  };
}
