import { denial, type Denial } from '../../decision/denial.js';
import { takeSettled, thenSync } from '../maybe-promise.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Admission } from '../auth/authorize-request.js';
import { holderOf, type Slot, type Slots } from './concurrency.js';
import type { CallerLimits } from './rate-limiter.js';

/** What a request holds while it is in flight: a place among the requests of all, and one among its caller's own. */
export class Lease {
  private readonly globalPlace: Slot;
  private readonly callerPlace: Slot | null;
  private holders = 1;

  constructor(globalPlace: Slot, callerPlace: Slot | null) {
    this.globalPlace = globalPlace;
    this.callerPlace = callerPlace;
  }

  /** One more holds it, and has to release it. */
  retain(): void {
    this.holders += 1;
  }

  /** To be called once by each who holds it: the last one gives everything back. */
  release(): void {
    this.holders -= 1;
    if (this.holders > 0) return;
    this.callerPlace?.();
    this.globalPlace();
  }

  /** Gives back the place among the requests of all, and keeps the caller's. */
  releaseGlobal(): void {
    this.globalPlace();
  }
}

type Admitted = Pick<Admission, 'principal' | 'route'>;

/** The last step before a request is carried on: its caller's limits, and a place among all. */
export type AcquireLease = (admission: Admitted) => Result<Lease, Denial> | Promise<Result<Lease, Denial>>;

/** Only what was admitted comes here: who has no credential cannot hold a place that somebody with one needs. */
export function createAdmissionControl(slots: Slots, limits: CallerLimits): AcquireLease {
  const settle = (globalPlace: Slot | null, callerPlace: Slot | null): Result<Lease, Denial> => {
    if (globalPlace !== null) return accept(new Lease(globalPlace, callerPlace));
    callerPlace?.();
    return refuse(denial('overloaded'));
  };
  const take = (
    admission: Admitted,
    callerPlace: Slot | null,
  ): Result<Lease, Denial> | Promise<Result<Lease, Denial>> =>
    thenSync(slots.take(holderOf(admission)), (globalPlace) => settle(globalPlace, callerPlace));
  return (admission) => {
    const { principal, route } = admission;
    // Nobody, on public routes and in shadow mode, has no limits of their own.
    if (principal === null || route.limits === null) return take(admission, null);
    const entered = limits.enter(principal, route.limits);
    return thenSync(entered, (found) => (found.ok ? take(admission, found.value) : found));
  };
}

/** The request that a place is for. */
interface AdmittedRequest {
  /** Whether nobody waits for it any more. */
  readonly isGone: () => boolean;
  readonly refuse: (reason: Denial) => void;
  readonly fail: (error: unknown) => void;
}

/** Has a place taken for a request. What comes when its client has left is given back. */
export function takeLease(
  acquire: AcquireLease,
  admission: Admitted,
  request: AdmittedRequest,
  onLease: (lease: Lease) => void,
): void {
  takeSettled(
    acquire(admission),
    (acquired) => {
      if (!acquired.ok) request.refuse(acquired.error);
      else if (request.isGone()) acquired.value.release();
      else onLease(acquired.value);
    },
    request.fail,
  );
}
