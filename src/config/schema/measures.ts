/** Quantities with a unit, and moments, as texts: without the schema's library, which takes long to load. */

/** How a quantity is written, and what it comes to. */
export interface Measure {
  /** What is right, in words. */
  readonly allowed: string;
  /** The form alone; the bounds are not in it. */
  readonly pattern: RegExp;
  /** The quantity, `null` where the text is none or out of bounds. */
  readonly read: (text: string) => number | null;
}

const second = 1_000;
const durationUnits: Readonly<Record<string, number>> = {
  ms: 1,
  s: second,
  m: 60 * second,
  h: 3_600 * second,
  d: 86_400 * second,
};
const sizeUnits: Readonly<Record<string, number>> = { B: 1, KiB: 1_024, MiB: 1_024 ** 2, GiB: 1_024 ** 3 };

/** Milliseconds, written as a whole number with a unit: `250ms`, `5s`, `15m`, `24h`, `7d`. */
export function durationMeasure(least: string, most: string): Measure {
  return measure('a duration', ['250ms', '5s', '15m', '24h', '7d'], durationUnits, least, most);
}

/** Bytes, written as a whole number with a unit: `512B`, `64KiB`, `1MiB`. */
export function sizeMeasure(least: string, most: string): Measure {
  return measure('a size', ['512B', '64KiB', '1MiB'], sizeUnits, least, most);
}

function measure(
  what: string,
  examples: readonly string[],
  units: Readonly<Record<string, number>>,
  least: string,
  most: string,
): Measure {
  const pattern = new RegExp(`^([0-9]{1,12})(${Object.keys(units).join('|')})$`);
  const amount = (text: string): number => {
    const [, digits, unit] = pattern.exec(text) ?? [];
    return Number(digits) * (units[unit ?? ''] ?? Number.NaN);
  };
  const [from, to] = [amount(least), amount(most)];
  const read = (text: string): number | null => {
    const value = amount(text);
    return value >= from && value <= to ? value : null;
  };
  const fitting = examples.filter((example) => read(example) !== null).join(', ');
  return { allowed: `${what} from ${least} to ${most}, such as ${fitting}`, pattern, read };
}

/** What `readTime` takes, in words. */
export const timeForm = 'a time such as 2026-01-31T12:00:00Z';

const rfc3339 =
  /^([0-9]{4}-[0-9]{2}-[0-9]{2})T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\.[0-9]+)?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$/;

/**
 * Reads a moment with its offset from UTC (RFC 3339 section 5.6): milliseconds since the epoch, `null` where the text
 * is none.
 */
export function readTime(text: string): number | null {
  const day = rfc3339.exec(text)?.[1] ?? '';
  const midnight = new Date(`${day}T00:00:00Z`);
  // `Date` takes February 30 for March 2.
  const isDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
  return isDay ? Date.parse(text) : null;
}
