/** Writes a time in UTC by RFC 3339, with milliseconds; `otherwise` where the number is no time that has a date. */
export function timestamp(epochMs: number, otherwise = 'not known'): string {
  const date = new Date(epochMs);
  return Number.isNaN(date.getTime()) ? otherwise : date.toISOString();
}
