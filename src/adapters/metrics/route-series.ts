import { failureReasons, type FailureReason, type Reason } from '../../decision/denial.js';
import type { Outcome } from '../../ports/observability.js';
import { createHistogram, type Histogram } from './histogram.js';

/** Every way a request can end. */
export const outcomes = ['forwarded', 'replayed', 'denied', 'failed', 'shadow'] as const satisfies readonly Outcome[];

/** What a caller was answered, by the first digit of the status; `none` where it was answered nothing. */
export const statusClasses = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/**
 * Outcomes and classes that are there from the start, at zero: what has just begun has no rate yet, and alerts ask for
 * these. The others begin with their first request.
 */
const expected: readonly (readonly [Outcome, (typeof statusClasses)[number]])[] = [
  ['forwarded', '2xx'],
  ['forwarded', '4xx'],
  ['forwarded', '5xx'],
  ['replayed', '2xx'],
  ['denied', '4xx'],
  ['failed', '5xx'],
  ['shadow', '2xx'],
];

/** Requests that ended in one way and were answered with one class. */
export interface RequestCount {
  readonly outcome: Outcome;
  readonly code: (typeof statusClasses)[number];
  readonly count: number;
}

/** What is counted of one route. */
export interface RouteSeries {
  readonly requests: () => readonly RequestCount[];
  /** By reason; only those that occurred. So are those that shadow mode let pass. */
  readonly denials: ReadonlyMap<Reason, number>;
  readonly shadowDenials: ReadonlyMap<Reason, number>;
  /** Every one of them, from the start: the first may be one too many. */
  readonly failures: ReadonlyMap<FailureReason, number>;
  readonly duration: Histogram;
  readonly overhead: Histogram;
  readonly addDenial: (reason: Reason) => void;
  readonly addShadowDenial: (reason: Reason) => void;
  readonly addFailure: (reason: FailureReason) => void;
  /** `status` is 0 where nothing was answered. */
  readonly add: (outcome: Outcome, status: number, durationMs: number, overheadMs: number) => void;
}

/** Starts at zero. Bounds are seconds, rising. `expectedDenials` are there from the start. */
export function createRouteSeries(
  durationBounds: readonly number[],
  overheadBounds: readonly number[],
  expectedDenials: readonly Reason[] = [],
): RouteSeries {
  // One number for each outcome and class, so that a request costs an addition.
  const counts = new Float64Array(outcomes.length * statusClasses.length);
  const denials = new Map(expectedDenials.map((reason) => [reason, 0]));
  const shadowDenials = new Map<Reason, number>();
  const failures = new Map<FailureReason, number>(failureReasons.map((reason) => [reason, 0]));
  const duration = createHistogram(durationBounds);
  const overhead = createHistogram(overheadBounds);
  return {
    requests: () =>
      outcomes.flatMap((outcome) =>
        statusClasses.flatMap((code, classIndex) => {
          const count = counts[placeOf(outcome, classIndex)] ?? 0;
          const isExpected = expected.some(([one, other]) => one === outcome && other === code);
          return count > 0 || isExpected ? [{ outcome, code, count }] : [];
        }),
      ),
    denials,
    shadowDenials,
    failures,
    duration,
    overhead,
    addDenial: (reason) => increment(denials, reason),
    addShadowDenial: (reason) => increment(shadowDenials, reason),
    addFailure: (reason) => increment(failures, reason),
    add: (outcome, status, durationMs, overheadMs) => {
      const place = placeOf(outcome, Math.floor(status / 100));
      counts[place] = (counts[place] ?? 0) + 1;
      duration.observe(durationMs / 1000);
      overhead.observe(overheadMs / 1000);
    },
  };
}

const indexOf: Readonly<Record<Outcome, number>> = { forwarded: 0, replayed: 1, denied: 2, failed: 3, shadow: 4 };

/** Where this way to end and this class are counted: a status that there is not (RFC 9110 §15) counts as none. */
function placeOf(outcome: Outcome, statusClass: number): number {
  return indexOf[outcome] * statusClasses.length + (statusClass < statusClasses.length ? statusClass : 0);
}

function increment<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
