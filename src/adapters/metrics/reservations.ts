import type { HistogramFamily } from '../../ports/tracing.js';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { ReservationMetrics, ReservationResult, StoreOperation, StoreState } from '../../ports/idempotency.js';
import { createHistogram, type Histogram } from './histogram.js';

/** What is read from the running proxy at each scrape. */
interface ReservationReadings {
  /** `null` where no store is configured. */
  readonly store: () => StoreState | null;
  /** Milliseconds since the oldest write of this process that is still in doubt; `null` where there is none. */
  readonly oldestUnknownMs: () => number | null;
}

export interface ReservationSeries extends ReservationMetrics {
  readonly setReadings: (readings: ReservationReadings) => void;
  /** The histogram, in Prometheus' text format. */
  readonly durations: () => HistogramFamily;
}

/** Every way a reservation can go. */
const results = [
  'acquired',
  'replayed',
  'in_progress',
  'mismatch',
  'unknown',
  'token_replayed',
  'unavailable',
  'released',
  'completed',
  'tombstone',
  'repaired',
  'fenced',
] as const satisfies readonly ReservationResult[];

const operations = ['reserve', 'complete', 'release', 'mark'] as const satisfies readonly StoreOperation[];

/** Seconds: a store next door answers within a millisecond, and deadlines are some hundred. */
const durationBuckets = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Counts reservations, and what an operator has to know of them. Every series is there from the start, at zero. */
export function createReservationSeries(registry: Registry): ReservationSeries {
  const registers = [registry];
  const counts = Object.fromEntries(results.map((result) => [result, 0])) as Record<ReservationResult, number>;
  const durations = Object.fromEntries(
    operations.map((operation) => [operation, createHistogram(durationBuckets)]),
  ) as Record<StoreOperation, Histogram>;
  let unknowns = 0;
  let shortfalls = 0;
  let exceeded = 0;
  let offeredAgain = 0;
  let readings: ReservationReadings = { store: () => null, oldestUnknownMs: () => null };

  new Counter({
    name: 'sallyport_reservations_total',
    help: 'Reservations and their settlements by result.',
    labelNames: ['result'],
    registers,
    collect() {
      this.reset();
      for (const result of results) this.inc({ result }, counts[result]);
    },
  });
  const total = (name: string, help: string, value: () => number, aggregator: 'sum' | 'max' = 'sum'): void => {
    new Counter({
      name,
      help,
      aggregator,
      registers,
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  };
  total(
    'sallyport_duplicate_dispatches_total',
    'Writes that ran twice: another attempt owned the reservation when the first one ended.',
    () => counts.fenced,
  );
  total(
    'sallyport_lost_reservations_total',
    'Reservations that the store had lost when their write ended.',
    () => counts.repaired,
  );
  total(
    'sallyport_unknown_outcomes_total',
    'Writes of which it was not known whether they were applied.',
    () => unknowns,
  );
  total(
    'sallyport_replica_shortfalls_total',
    'Writes refused because too few replicas confirmed their reservation.',
    () => shortfalls,
  );
  total(
    'sallyport_store_share_exceeded_total',
    'Answers that were not kept: their caller had used up its share of the store.',
    () => exceeded,
  );
  total(
    'sallyport_settlements_offered_again_total',
    'Settlements of the last seconds that were offered to the store again after a fail-over.',
    () => offeredAgain,
  );
  total(
    'sallyport_store_failovers_total',
    'Times that a primary of the store was replaced, restarted or emptied, or that its clock stepped.',
    () => readings.store()?.failovers ?? 0,
    // Each worker sees the same one.
    'max',
  );
  new Gauge({
    name: 'sallyport_unknown_outcome_oldest_age_seconds',
    help: 'Age of the oldest write of this process that is in doubt; 0 without one.',
    aggregator: 'max',
    registers,
    collect() {
      this.set((readings.oldestUnknownMs() ?? 0) / 1000);
    },
  });
  new Gauge({
    name: 'sallyport_store_up',
    help: 'Whether the store takes reservations; absent where none is configured.',
    aggregator: 'min',
    registers,
    collect() {
      const state = readings.store();
      if (state === null) this.remove();
      else this.set(state.up ? 1 : 0);
    },
  });

  return {
    reservation: (result) => {
      counts[result] += 1;
    },
    storeCall: (operation, durationMs, exemplar) => {
      durations[operation].observe(durationMs / 1000, exemplar);
    },
    unknownOutcome: () => {
      unknowns += 1;
    },
    shareExceeded: () => {
      exceeded += 1;
    },
    replicaShortfall: () => {
      shortfalls += 1;
    },
    offeredAgain: (count) => {
      offeredAgain += count;
    },
    setReadings: (next) => {
      readings = next;
    },
    durations: () => ({
      name: 'sallyport_store_duration_seconds',
      help: 'From a call of the store to its reply, or to the end of waiting for one.',
      label: 'operation',
      series: operations.map((operation) => [operation, durations[operation]] as const),
    }),
  };
}
