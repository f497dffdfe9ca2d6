import { InvalidArgumentError } from 'commander';
import type { z } from 'zod';
import { origin } from '../config/schema-addresses.js';
import { duration, port, time } from '../config/schema-scalars.js';

/** A port from 0 to 65535, as an argument. */
export function portArgument(value: string): number {
  return parsed(port(), /^\d{1,5}$/.test(value) ? Number(value) : value);
}

/** A duration as the config writes it, as an argument: milliseconds. */
export function durationArgument(least: string, most: string): (value: string) => number {
  const schema = duration(least, most);
  return (value) => parsed(schema, value);
}

/** A time as the config writes it (RFC 3339), as an argument: milliseconds since the epoch. */
export function timeArgument(value: string): number {
  return Date.parse(parsed(time(), value));
}

/** Where a receiving service is, as the config writes it, as an argument. */
export function originArgument(value: string): string {
  return parsed(origin(), value);
}

function parsed<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new InvalidArgumentError(`Allowed: ${result.error.issues[0]?.message ?? 'another value'}.`);
}

/** A share as a percentage, as an argument: 0 to 1. */
export function shareArgument(value: string): number {
  const share = /^\d{1,3}(?:\.\d{1,6})?%$/.test(value) ? Number(value.slice(0, -1)) / 100 : Number.NaN;
  if (share >= 0 && share <= 1) return share;
  throw new InvalidArgumentError('Allowed: a percentage from 0% to 100%, such as 2%.');
}
