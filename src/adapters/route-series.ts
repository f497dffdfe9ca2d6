import type { Outcome } from '../ports.js';
import { createHistogram, type Histogram } from './histogram.js';

/** Every way a request can end. */
export const outcomes = ['forwarded', 'replayed', 'denied', 'failed', 'shadow'] as const satisfies readonly Outcome[];

/** What is counted of one route. */
export interface RouteSeries {
  readonly requests: Readonly<Record<Outcome, number>>;
  readonly duration: Histogram;
  readonly overhead: Histogram;
  readonly add: (outcome: Outcome, durationMs: number, overheadMs: number) => void;
}

/** Starts at zero. Bounds are seconds, rising. */
export function createRouteSeries(durationBounds: readonly number[], overheadBounds: readonly number[]): RouteSeries {
  const requests: Record<Outcome, number> = { forwarded: 0, replayed: 0, denied: 0, failed: 0, shadow: 0 };
  const duration = createHistogram(durationBounds);
  const overhead = createHistogram(overheadBounds);
  return {
    requests,
    duration,
    overhead,
    add: (outcome, durationMs, overheadMs) => {
      requests[outcome] += 1;
      duration.observe(durationMs / 1000);
      overhead.observe(overheadMs / 1000);
    },
  };
}
