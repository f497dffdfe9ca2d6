import type { ReservationRules } from '../../decision/route/policy.js';
import { noKeyReserved } from './idempotency-schema.js';
import type { RouteFile } from './routes.js';

/** What a route reserves; `null` where nothing is. */
export function compileReservation(route: RouteFile): ReservationRules | null {
  const file = route.idempotency ?? noKeyReserved;
  if (file.mode === 'none' && !route.single_use) return null;
  return {
    key: file.mode === 'none' ? null : file.mode,
    singleUse: route.single_use,
    operation: file.operation ?? route.name,
    retentionMs: file.retention,
    fields: [...new Set(file.fields.map((name) => name.toLowerCase()))],
    storeHeaders: new Set(file.store_headers.map((name) => name.toLowerCase())),
    releaseOn: new Set(file.release_on),
    receiver: file.receiver,
    // What a route refuses for its size is refused whether or not it is reserved.
    maxBodyBytes: Math.min(file.max_body, route.max_body),
    maxStoredResponseBytes: file.max_stored_response,
  };
}
