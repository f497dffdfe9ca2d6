/** What limits by caller need from outside: types only. */
import type { Rate } from '../decision/route/policy.js';
import type { LimitKey } from '../decision/route/rate-limit.js';
import type { Result } from '../lib/result.js';
import type { StoreFailure } from './idempotency.js';

/** Counts requests of callers in this process, or in all that serve beside it. Never rejects. */
export interface RateCounter {
  /** Milliseconds that the caller has to wait; 0 where its request is counted and may go on. */
  readonly take: (key: LimitKey, rate: Rate) => number | Promise<number>;
}

/** Counts requests that are under way, likewise. Never rejects. */
export interface InFlightCounter {
  /** A place among at most `max` of this name, which is given back by a call; `null` where there is none. */
  readonly enter: (name: string, max: number) => (() => void) | null | Promise<(() => void) | null>;
}

/** Counts them together with other proxies. It ends within its deadline, and never rejects. */
export interface SharedRateCounter {
  readonly take: (key: LimitKey, rate: Rate) => Promise<Result<number, StoreFailure>>;
}

/** How limits are counted, for `/status` and metrics. */
export interface LimitsState {
  /** Whether some limit is one for all proxies, and whether it is counted so now. */
  readonly shared: boolean;
  readonly isShared: boolean;
  /** Why each process counts by itself what should be shared; `null` where none does. */
  readonly problem: string | null;
}
