import type { Denial } from '../../decision/denial.js';
import type { Limits, Rate } from '../../decision/route/policy.js';
import type { Principal } from '../../decision/token/principal.js';
import { limitDenial, limitKey, type LimitKey } from '../../decision/route/rate-limit.js';
import { thenSync } from '../maybe-promise.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Clock, Log } from '../../ports/system.js';
import type { InFlightCounter, LimitsState, RateCounter, SharedRateCounter } from '../../ports/limits.js';
import type { Slot } from './concurrency.js';

type Entry = Result<Slot, Denial>;

/** Holds each caller to its limits. */
export interface CallerLimits {
  /**
   * A place among the caller's requests in flight, to be given back; or why there is none. At once, unless the store is
   * asked.
   */
  readonly enter: (principal: Principal, limits: Limits) => Result<Slot, Denial> | Promise<Result<Slot, Denial>>;
  /** How what is shared is counted. */
  readonly state: () => Omit<LimitsState, 'shared'>;
}

interface CallerLimitsDeps {
  readonly local: RateCounter;
  readonly inFlight: InFlightCounter;
  /** `null` where there is no store that others see. */
  readonly shared: SharedRateCounter | null;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

const noStore = 'no store was opened at the start';

/**
 * How long every call to the store has to succeed before the store is said to count again, milliseconds. Failures that
 * come and go are logged as one.
 */
export const steadyAfterMs = 2_000;

/**
 * Counts requests by caller: those in flight, and the rate here or in the store. Where the store does not answer, each
 * process counts by itself, and a caller may use its whole limit at each of them. Limits are there to protect the
 * service; refusing everybody would not protect it.
 */
export function createCallerLimits({ local, inFlight, shared, clock, log }: CallerLimitsDeps): CallerLimits {
  let problem: string | null = shared === null ? noStore : null;
  let failedAtMs = 0;
  let isTold = false;

  function waitFor(key: LimitKey, rate: Rate): number | Promise<number> {
    if (!rate.shared) return local.take(key, rate);
    if (shared === null) {
      tell(noStore);
      return local.take(key, rate);
    }
    return shared.take(key, rate).then((taken) => {
      tell(taken.ok ? null : taken.error.reason);
      return taken.ok ? taken.value : local.take(key, rate);
    });
  }

  /** Logs once when the store stops counting, and once when it counts again for good. */
  function tell(now: string | null): void {
    if (now !== null) failedAtMs = clock.monotonic();
    else if (problem !== null && clock.monotonic() - failedAtMs < steadyAfterMs) return;
    problem = now;
    if ((now !== null) === isTold) return;
    isTold = now !== null;
    if (now === null) log.info('shared limits are counted together again');
    else log.warn('shared limits are counted by each process alone: the store does not count them', { reason: now });
  }

  function count(key: LimitKey, limits: Limits, leave: Slot | null): Entry | Promise<Entry> {
    if (leave === null) return refuse(limitDenial('in_flight', limits, 0));
    if (limits.rate === null) return accept(leave);
    const conclude = (waitMs: number): Entry => {
      if (waitMs === 0) return accept(leave);
      leave();
      return refuse(limitDenial('rate', limits, waitMs));
    };
    return thenSync(waitFor(key, limits.rate), conclude);
  }

  return {
    enter: (principal, limits) => {
      const key = limitKey(principal, limits);
      const leave =
        limits.maxInFlight === null ? nothing : inFlight.enter(`${key.principal}.${key.scope}`, limits.maxInFlight);
      return thenSync(leave, (left) => count(key, limits, left));
    },
    state: () => ({ isShared: problem === null, problem }),
  };
}

function nothing(): void {
  // No place was taken.
}
