import { systemClock, systemTimers } from '../adapters/system/clock.js';
import type { ReservationSeries } from '../adapters/metrics/reservations.js';
import type { CompiledConfig } from '../config/types.js';
import type { Log } from '../ports/system.js';
import type { ReservationParts, StoreState } from '../ports/idempotency.js';
import type { SharedRateCounter } from '../ports/limits.js';
import type { RevocationSource } from '../ports/revocations.js';
import { openStore } from './store.js';
import { createUnknownOutcomes } from './doubtful-writes.js';

/** The store while the proxy runs, and what is counted of it. */
export interface Reservations {
  readonly parts: ReservationParts;
  /** Counts requests together with other proxies; `null` where nobody else sees the store. */
  readonly rates: SharedRateCounter | null;
  /** What is revoked through the store; `null` where nobody else sees it. */
  readonly revocations: RevocationSource | null;
  /** Whether protected routes wait until that was read once. */
  readonly requiresRevocations: boolean;
  readonly state: () => StoreState;
  /** What lasts and makes the store unfit; `null` where nothing is, or nothing is known yet. */
  readonly lastingProblem: () => Promise<string | null>;
  /** After the last settlement. */
  readonly close: () => Promise<void>;
}

/**
 * Opens the store that a config names; `null` where it names none.
 *
 * @param issuersInForce asked again and again: a reload may bring tokens that live longer.
 */
export function openReservations(
  settings: CompiledConfig['store'],
  storeCa: () => string | null,
  issuersInForce: () => CompiledConfig['issuers'],
  series: ReservationSeries,
  log: Log,
): Reservations | null {
  if (settings === null) {
    series.setReadings({ store: () => null, oldestUnknownMs: () => null });
    return null;
  }
  const maxTokenLifetimeMs = (): number =>
    Math.max(0, ...issuersInForce().map(({ rules }) => (rules.maxLifetimeS + rules.clockSkewS) * 1000));
  const { store, rates, share, revocations, replicas, settleTimeoutMs, lastingProblem } = openStore(settings, storeCa, {
    log,
    maxTokenLifetimeMs,
  });
  const unknowns = createUnknownOutcomes({ store, clock: systemClock, timers: systemTimers });
  series.setReadings({ store: store.state, oldestUnknownMs: unknowns.oldestMs });
  const metrics: ReservationParts['metrics'] = {
    ...series,
    unknownOutcome: (recordId) => {
      series.unknownOutcome(recordId);
      unknowns.add(recordId);
    },
  };
  return {
    parts: { store, metrics, share, replicas, settleTimeoutMs },
    rates,
    revocations,
    requiresRevocations: settings.kind === 'redis' && !settings.startsWithoutRevocations,
    state: store.state,
    lastingProblem,
    close: async () => {
      unknowns.close();
      await store.close();
    },
  };
}
