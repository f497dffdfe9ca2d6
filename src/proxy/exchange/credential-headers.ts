import type { Principal } from '../../decision/token/principal.js';
import { withRenewedSession } from '../../decision/session/headers.js';
import type { AllowedRequest } from '../inbound/received-request.js';
import type { Clock } from '../../ports/system.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';

/**
 * Returns the signed assertion for one request, a name and a value; none for nobody. Made when the request goes out: a
 * body that was read whole before that may have taken longer than an assertion holds.
 */
export function assertionHeaders(
  { principal, target }: Pick<Admission, 'principal' | 'target'>,
  method: string,
  { assertion }: ActiveConfig,
): readonly string[] {
  return principal === null || assertion === null ? [] : assertion({ principal, method, target: target.raw });
}

/**
 * Adds a renewed access token to the headers of a response. To be called after whatever is kept of it was kept:
 * the token is this caller's alone.
 */
export function withRenewedToken(
  headers: string[],
  principal: Principal | null,
  { sessions }: ActiveConfig,
  clock: Clock,
): string[] {
  const renewed = principal?.session?.renewed ?? null;
  return renewed === null || sessions === null
    ? headers
    : withRenewedSession(headers, renewed, sessions.settings.cookie, clock.now());
}

/** Returns what whoever asked about a request is told where it may forward it. */
export function allowedRequest(
  admission: Admission,
  method: string,
  activeConfig: ActiveConfig,
  clock: Clock,
): AllowedRequest {
  const { forwarded, principal, requestId } = admission;
  return {
    forwarded: [...forwarded, ...assertionHeaders(admission, method, activeConfig)],
    response: withRenewedToken([], principal, activeConfig, clock),
    requestId,
    activeConfig,
  };
}
