import { denial, type Denial } from '../denial.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** The longest `response_timeout` of a route, milliseconds: a longer deadline would never be the nearer one. */
export const longestGrpcTimeoutMs = 86_400_000;

const pattern = /^([0-9]{1,8})([HMSmun])$/;

/** Milliseconds of each unit: hours, minutes, seconds, milli-, micro- and nanoseconds. */
const unitMs: ReadonlyMap<string, number> = new Map([
  ['H', 3_600_000],
  ['M', 60_000],
  ['S', 1_000],
  ['m', 1],
  ['u', 1e-3],
  ['n', 1e-6],
]);

/**
 * Reads `grpc-timeout`: 1 to 8 digits and a unit. Servers differ in what they do with another value: those of Go and
 * Node.js refuse the call with INTERNAL, those on gRPC core wait on. It is refused here, as INTERNAL too: who sets
 * a deadline counts on one.
 *
 * @param values every header of that name; one value is what counts.
 * @returns whole milliseconds, rounded up, 0 to 86,400,000; `null` where there is no deadline.
 */
export function readGrpcTimeout(values: readonly string[]): Result<number | null, Denial> {
  const [value] = values;
  if (value === undefined) return accept(null);
  const [, digits, unit] = pattern.exec(value) ?? [];
  const ms = unit === undefined ? undefined : unitMs.get(unit);
  if (values.length > 1 || ms === undefined) return refuse(denial('field_malformed'));
  return accept(Math.min(longestGrpcTimeoutMs, Math.ceil(Number(digits) * ms)));
}
