import type { ReservationMetrics } from '../../src/ports/idempotency.js';

/** Counts nothing; a test puts what it looks at in the place of one or the other. */
export const silentReservationMetrics: ReservationMetrics = {
  reservation: () => undefined,
  storeCall: () => undefined,
  unknownOutcome: () => undefined,
  replicaShortfall: () => undefined,
  shareExceeded: () => undefined,
  offeredAgain: () => undefined,
};
