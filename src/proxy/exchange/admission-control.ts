import { denial, type Denial } from '../../decision/denial.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { CallerLimits } from './rate-limiter.js';
import type { Admission } from '../auth/authorize-request.js';
import { holderOf, type Slot, type Slots } from './concurrency.js';

/** What a request holds while it is under way. */
export interface Places {
  /** Among the requests of all. */
  readonly seat: Slot;
  /** That, and the one among its caller's own. */
  readonly all: Slot;
}

/** The last step before a request is carried on: its caller's limits, and a place among all. */
export type Entrance = (
  admission: Pick<Admission, 'principal' | 'route'>,
) => Result<Places, Denial> | Promise<Result<Places, Denial>>;

/** Only what was judged comes here: who has no credential cannot hold a place that somebody with one needs. */
export function createEntrance(slots: Slots, limits: CallerLimits): Entrance {
  const take = (admission: Pick<Admission, 'principal' | 'route'>, leave: Slot | null): Result<Places, Denial> => {
    const seat = slots.take(holderOf(admission));
    if (seat === null) {
      leave?.();
      return refuse(denial('overloaded'));
    }
    if (leave === null) return accept({ seat, all: seat });
    const all = (): void => {
      leave();
      seat();
    };
    return accept({ seat, all });
  };
  return (admission) => {
    const { principal, route } = admission;
    // Nobody, on public routes and in shadow mode, has no limits of their own.
    if (principal === null || route.limits === null) return take(admission, null);
    const entered = limits.enter(principal, route.limits);
    if (entered instanceof Promise) return entered.then((found) => (found.ok ? take(admission, found.value) : found));
    return entered.ok ? take(admission, entered.value) : entered;
  };
}
