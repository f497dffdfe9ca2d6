import {
  responseOf,
  reasons,
  type RefusalResponse,
  type Denial,
  type ProxyError,
  type Reason,
  type SessionResponse,
} from '../denial.js';
import { attemptHeaders } from '../egress/attempts.js';
import { proxyStatus } from './proxy-status.js';

/** Our own response to a request, ready to be written. */
export interface Problem {
  readonly status: number;
  /** Names and values in turn; without Content-Length. */
  readonly headers: readonly string[];
  /** ASCII, so that characters are bytes. */
  readonly body: string;
}

/** Methods that some route may have: a 405 names them (RFC 9110 §15.5.6), and they tell nothing of the routes. */
const allowedMethods = 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT';

/** From this status on we failed; below it we refused, and a refusal looks the same whatever its reason. */
const firstFailure = 500;

const bodies: ReadonlyMap<Reason, string> = new Map(reasons.map((reason) => [reason, bodyOf(responseOf(reason))]));

/**
 * What a 401 asks for: names and values of headers in turn, the same for every refusal of a listener (RFC 9110
 * §11.6.1).
 */
export type Challenges = () => readonly string[];

export const onlyBearer: Challenges = () => ['WWW-Authenticate', 'Bearer realm="sallyport"'];

/**
 * Answers a denial as a problem document (RFC 9457). What was wrong with a credential is not in it: every 401 and every
 * 403 is the same but for the request id. Whose session is refused gets the body of SuperTokens' SDK, for its frontends
 * act on that.
 */
export function problemOf(denial: Denial, requestId: string, challenges: Challenges = onlyBearer): Problem {
  const response = responseOf(denial.reason);
  const headers = [
    'Content-Type',
    denial.session === undefined ? 'application/problem+json' : 'application/json',
    'Cache-Control',
    'no-store',
    'X-Request-Id',
    requestId,
    'Proxy-Status',
    proxyStatus(proxyErrorOf(denial)),
  ];
  if (response.status === 401) headers.push(...challenges());
  if (response.status === 405) headers.push('Allow', allowedMethods);
  // RFC 6455 §4.4; 426 names what to upgrade to (RFC 9110 §15.5.22).
  if (response.status === 426) headers.push('Sec-WebSocket-Version', '13', 'Upgrade', 'websocket');
  const retryAfterS = retryAfterOf(denial);
  if (retryAfterS !== undefined) headers.push('Retry-After', String(retryAfterS));
  if (denial.attempts !== undefined) headers.push(...attemptHeaders(denial.attempts));
  if (denial.session !== undefined) return { status: response.status, headers, body: sessionBodyOf(denial.session) };
  if (denial.rateLimit !== undefined) {
    headers.push('RateLimit-Policy', denial.rateLimit.policy, 'RateLimit', denial.rateLimit.state);
  }
  const isPlain = denial.record === undefined && denial.detail === undefined;
  const body = isPlain ? bodies.get(denial.reason) : undefined;
  return { status: response.status, headers, body: body ?? bodyOf(response, denial) };
}

/** The `error` of `Proxy-Status`: of a failure as exactly as it is known, of refusals that of the reason. */
export function proxyErrorOf({ reason, error }: Denial): ProxyError {
  const response = responseOf(reason);
  return response.status >= firstFailure ? (error ?? response.error) : response.error;
}

/** Whole seconds for `Retry-After`; `undefined` where nothing asks for one. */
export function retryAfterOf({ reason, retryAfterS }: Denial): number | undefined {
  return retryAfterS ?? responseOf(reason).retryAfterS;
}

/** The `type` of a refusal's problem document (RFC 9457 §3.1.1). */
export function problemTypeOf(reason: Reason): string {
  return problemType(responseOf(reason).type);
}

function problemType(type: string | null): string {
  return type === null ? 'about:blank' : `urn:sallyport:${type}`;
}

/** The members in the order of docs/contract.md 4: clients compare the bytes. */
function bodyOf(
  { type, title, status }: RefusalResponse,
  { detail, record }: Pick<Denial, 'detail' | 'record'> = {},
): string {
  return JSON.stringify({
    type: problemType(type),
    title,
    status,
    ...(detail === undefined ? {} : { detail }),
    ...(record === undefined ? {} : { record }),
  });
}

/**
 * As the SDK writes it, but for what the claim is and what it would have to be: that is the policy's, and none of the
 * caller's.
 */
function sessionBodyOf(response: SessionResponse): string {
  if (response.message !== 'invalid claim') return JSON.stringify(response);
  return JSON.stringify({
    message: response.message,
    claimValidationErrors: response.claims.map((id) => ({ id, reason: { message: 'wrong value' } })),
  });
}
