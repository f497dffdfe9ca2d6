import type { InForce } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';

/**
 * The signed assertion for one request, a name and a value; none for nobody. Made when the request goes out: a body
 * that was read whole before that may have taken longer than an assertion holds.
 */
export function assertionFields(
  { principal, target }: Pick<Admission, 'principal' | 'target'>,
  method: string,
  { assertion }: InForce,
): readonly string[] {
  return principal === null || assertion === null ? [] : assertion({ principal, method, target: target.raw });
}
