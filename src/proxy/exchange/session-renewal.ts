import type { Principal } from '../../decision/token/principal.js';
import { withRenewedSession } from '../../decision/session/headers.js';
import type { Clock } from '../../ports/system.js';
import type { InForce } from '../auth/active-config.js';

/**
 * Hands a new access token back with an answer. After whatever is kept of the answer was kept: it is this caller's
 * alone.
 */
export function handBack(fields: string[], principal: Principal | null, { sessions }: InForce, clock: Clock): string[] {
  const renewed = principal?.session?.renewed ?? null;
  return renewed === null || sessions === null
    ? fields
    : withRenewedSession(fields, renewed, sessions.settings.cookie, clock.now());
}
