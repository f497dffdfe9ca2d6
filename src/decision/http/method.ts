import { denial, type Denial } from '../denial.js';

/**
 * Methods that are none of a resource: CONNECT opens a tunnel past every later check, TRACE and TRACK echo credentials,
 * PRI starts an HTTP/2 connection (RFC 9113 §3.4).
 */
const refusedMethods: ReadonlySet<string> = new Set(['TRACE', 'TRACK', 'CONNECT', 'PRI']);

/** RFC 9110 §5.6.2 `token` without lower-case letters: methods are case-sensitive, and `get` is not GET. */
const upperCaseToken = /^[!#$%&'*+\-.^_`|~0-9A-Z]+$/;

/** Says why no request may have this method: `method_not_allowed`, `method_malformed`, or `null` where one may. */
export function readMethod(method: string): Denial | null {
  if (!upperCaseToken.test(method)) return denial('method_malformed');
  return refusedMethods.has(method) ? denial('method_not_allowed') : null;
}
