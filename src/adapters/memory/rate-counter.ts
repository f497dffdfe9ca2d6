import { type LimitKey, takeRequest } from '../../decision/route/rate-limit.js';
import type { Rate } from '../../decision/route/policy.js';
import type { Clock } from '../../ports/system.js';
import type { RateCounter } from '../../ports/limits.js';

/**
 * Callers whose buckets are remembered at once, some 200 bytes each; the one that asked least recently is forgotten
 * first.
 */
const maxRateCallers = 100_000;

/** Counts in this process: how long to wait is known at once. */
interface LocalRates extends RateCounter {
  readonly take: (key: LimitKey, rate: Rate) => number;
  readonly size: () => number;
}

/** Counts in this process. A bucket that is full again needs no memory: each call looks at the oldest two. */
export function createRateCounter(clock: Pick<Clock, 'monotonic'>, maxCallers = maxRateCallers): LocalRates {
  /** When each bucket is full; in the order of the last request. */
  const buckets = new Map<string, number>();

  function forget(nowMs: number): void {
    let looks = 2;
    for (const [name, fullAtMs] of buckets) {
      if (looks === 0) break;
      looks -= 1;
      if (fullAtMs <= nowMs || buckets.size > maxCallers) buckets.delete(name);
    }
  }

  return {
    take: (key, rate) => {
      const nowMs = clock.monotonic();
      const name = nameOf(key);
      const { waitMs, fullAtMs } = takeRequest(buckets.get(name) ?? null, rate, nowMs);
      buckets.delete(name);
      buckets.set(name, fullAtMs);
      forget(nowMs);
      return waitMs;
    },
    size: () => buckets.size,
  };
}

function nameOf({ principal, scope }: LimitKey): string {
  return `${principal}.${scope}`;
}
