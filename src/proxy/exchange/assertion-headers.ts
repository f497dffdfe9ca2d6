import type { InForce } from './in-force.js';
import type { Admission } from './pipeline.js';

/**
 * The signed assertion for one request, a name and a value; none for nobody. Made when the request goes out: a body that was read whole
 * before that may have taken longer than an assertion holds.
 */
export function assertionFields({ principal, target }: Pick<Admission, 'principal' | 'target'>, method: string, { assertion }: InForce): readonly string[] {
  return principal === null || assertion === null ? [] : assertion({ principal, method, target: target.raw });
}
