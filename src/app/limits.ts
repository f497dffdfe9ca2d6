import { systemClock } from '../adapters/system/clock.js';
import { createRateCounter } from '../adapters/memory/rate-counter.js';
import type { CompiledConfig } from '../config/types.js';
import type { LimitsState, SharedRateCounter } from '../ports/limits.js';
import type { Log } from '../ports/system.js';
import { createCallerLimits, type CallerLimits } from '../proxy/exchange/rate-limiter.js';

/** Limits by caller while the proxy runs. */
interface OpenLimits {
  readonly callers: CallerLimits;
  /** `null` where no route in force has limits. */
  readonly state: () => LimitsState | null;
}

/** @param routesInForce asked again and again: a reload may bring limits. */
export function openLimits(
  rates: SharedRateCounter | null,
  routesInForce: () => CompiledConfig['routes'],
  log: Log,
): OpenLimits {
  const callers = createCallerLimits({ local: createRateCounter(systemClock), shared: rates, clock: systemClock, log });
  return {
    callers,
    state: () => {
      const limits = routesInForce().flatMap((route) => route.limits ?? []);
      if (limits.length === 0) return null;
      const shared = limits.some(({ rate }) => rate?.shared === true);
      return shared ? { shared, ...callers.state() } : { shared, isShared: false, problem: null };
    },
  };
}
