/** The year, and so a date, is left to `Date`: only the form that RFC 9110 §5.6.7 has senders write is looked at. */
const httpDate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Reads `Retry-After` (RFC 9110 §10.2.3): milliseconds from now on, 0 or more; `null` where it says neither a number of
 * seconds nor a date.
 */
export function readRetryAfter(value: string, nowMs: number): number | null {
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  const at = httpDate.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
