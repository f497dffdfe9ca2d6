import type { Limits } from '../../decision/route/policy.js';
import type { LimitsFile } from './limits-schema.js';

/** What a caller may ask for; `route` names what counts for itself. */
export function compileLimits(file: LimitsFile | null, route: string | null): Limits | null {
  if (file === null) return null;
  const { requests_per_second: perSecond, burst, max_in_flight: maxInFlight, shared } = file;
  return {
    rate: perSecond === null ? null : { perSecond, burst: burst ?? Math.ceil(perSecond), shared },
    maxInFlight,
    route,
  };
}
