/** Values of arguments, in the forms that the config has. Without the schema's library: help is to come at once. */
import { InvalidArgumentError } from 'commander';
import { isOrigin, originForm } from '../config/schema/addresses.js';
import { durationMeasure, readTime, timeForm } from '../config/schema/measures.js';

/** A port from 0 to 65535. */
export function portArgument(value: string): number {
  return numberArgument(0, 65_535)(value);
}

/** A whole number. */
export function numberArgument(least: number, most: number): (value: string) => number {
  return (value) => {
    const number = /^[0-9]{1,9}$/.test(value) ? Number(value) : Number.NaN;
    return number >= least && number <= most
      ? number
      : refused(`a whole number from ${String(least)} to ${String(most)}`);
  };
}

/** A duration as the config writes it: milliseconds. */
export function durationArgument(least: string, most: string): (value: string) => number {
  const { allowed, read } = durationMeasure(least, most);
  return (value) => read(value) ?? refused(allowed);
}

/** A time as the config writes it (RFC 3339): milliseconds since the epoch. */
export function timeArgument(value: string): number {
  return readTime(value) ?? refused(timeForm);
}

/** Where an upstream is, as the config writes it. */
export function originArgument(value: string): string {
  return isOrigin(value) ? value : refused(originForm);
}

/** A share as a percentage: 0 to 1. */
export function shareArgument(value: string): number {
  const share = /^[0-9]{1,3}(?:\.[0-9]{1,6})?%$/.test(value) ? Number(value.slice(0, -1)) / 100 : Number.NaN;
  return share >= 0 && share <= 1 ? share : refused('a percentage from 0% to 100%, such as 2%');
}

function refused(allowed: string): never {
  throw new InvalidArgumentError(`Allowed: ${allowed}.`);
}
