import { denial, type Denial } from '../decision/denial.js';
import { accept, refuse, type Result } from '../decision/result.js';
import type { CallerLimits } from './caller-limits.js';
import type { Admission } from './pipeline.js';
import type { Slot, Slots } from './slots.js';

/** The last step before a request is carried on: its caller's limits, and a place among all. */
export type Entrance = (admission: Pick<Admission, 'principal' | 'route'>) => Result<Slot, Denial> | Promise<Result<Slot, Denial>>;

/** Only what was judged comes here: who has no credential cannot hold a place that somebody with one needs. */
export function createEntrance(slots: Slots, limits: CallerLimits): Entrance {
  const seat = (route: Admission['route'], leave: Slot | null): Result<Slot, Denial> => {
    const slot = slots.take(route.access);
    if (slot === null) {
      leave?.();
      return refuse(denial('overloaded'));
    }
    if (leave === null) return accept(slot);
    return accept(() => {
      leave();
      slot();
    });
  };
  return ({ principal, route }) => {
    // Nobody, on public routes and in shadow mode, has no limits of their own.
    if (principal === null || route.limits === null) return seat(route, null);
    const entered = limits.enter(principal, route.limits);
    if (entered instanceof Promise) return entered.then(found => (found.ok ? seat(route, found.value) : found));
    return entered.ok ? seat(route, entered.value) : entered;
  };
}
