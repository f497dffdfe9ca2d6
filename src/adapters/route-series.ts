import type { Reason } from '../decision/denial.js';
import type { Outcome } from '../ports.js';
import { createHistogram, type Histogram } from './histogram.js';

/** Every way a request can end. */
export const outcomes = ['forwarded', 'replayed', 'denied', 'failed', 'shadow'] as const satisfies readonly Outcome[];

/** What is counted of one route. */
export interface RouteSeries {
  readonly requests: Readonly<Record<Outcome, number>>;
  /** Refusals that shadow mode let pass; only those that occurred. */
  readonly shadowDenials: ReadonlyMap<Reason, number>;
  readonly duration: Histogram;
  readonly overhead: Histogram;
  readonly addShadowDenial: (reason: Reason) => void;
  readonly add: (outcome: Outcome, durationMs: number, overheadMs: number) => void;
}

/** Starts at zero. Bounds are seconds, rising. */
export function createRouteSeries(durationBounds: readonly number[], overheadBounds: readonly number[]): RouteSeries {
  const requests: Record<Outcome, number> = { forwarded: 0, replayed: 0, denied: 0, failed: 0, shadow: 0 };
  const shadowDenials = new Map<Reason, number>();
  const duration = createHistogram(durationBounds);
  const overhead = createHistogram(overheadBounds);
  return {
    requests,
    shadowDenials,
    duration,
    overhead,
    addShadowDenial: (reason) => {
      shadowDenials.set(reason, (shadowDenials.get(reason) ?? 0) + 1);
    },
    add: (outcome, durationMs, overheadMs) => {
      requests[outcome] += 1;
      duration.observe(durationMs / 1000);
      overhead.observe(overheadMs / 1000);
    },
  };
}
