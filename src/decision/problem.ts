import { answerOf, reasons, type Answer, type Denial, type Reason } from './denial.js';
import { proxyStatus } from './proxy-status.js';

/** Our own answer to a request, ready to be written (contract section 4). */
export interface Problem {
  readonly status: number;
  /** Names and values in turn; without Content-Length. */
  readonly fields: readonly string[];
  /** ASCII, so that characters are bytes. */
  readonly body: string;
}

/** Methods that some route may have: a 405 names them (RFC 9110 §15.5.6), and they tell nothing of the routes. */
const allowedMethods = 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT';

/** From this status on we failed; below it we refused, and a refusal looks the same whatever its reason. */
const firstFailure = 500;

const bodies: ReadonlyMap<Reason, string> = new Map(reasons.map(reason => [reason, bodyOf(answerOf(reason))]));

/**
 * Answers a denial as a problem document (RFC 9457). What was wrong with a credential is not in it: every 401 and every 403
 * is the same but for the request id.
 */
export function problemOf(denial: Denial, requestId: string): Problem {
  const answer = answerOf(denial.reason);
  const error = answer.status >= firstFailure ? denial.error ?? answer.error : answer.error;
  const fields = [
    'Content-Type', 'application/problem+json', 'Cache-Control', 'no-store', 'X-Request-Id', requestId,
    'Proxy-Status', proxyStatus(error),
  ];
  if (answer.status === 401) fields.push('WWW-Authenticate', 'Bearer realm="sallyport"');
  if (answer.status === 405) fields.push('Allow', allowedMethods);
  const retryAfterS = denial.retryAfterS ?? answer.retryAfterS;
  if (retryAfterS !== undefined) fields.push('Retry-After', String(retryAfterS));
  const body = denial.record === undefined ? bodies.get(denial.reason) : undefined;
  return { status: answer.status, fields, body: body ?? bodyOf(answer, denial.record) };
}

/** The members in the order of the contract: clients compare the bytes. */
function bodyOf({ type, title, status }: Answer, record?: string): string {
  return JSON.stringify({ type: type === null ? 'about:blank' : `urn:sallyport:${type}`, title, status, ...(record === undefined ? {} : { record }) });
}
