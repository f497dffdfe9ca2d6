/** The fields of an answer that say how long it may be kept (RFC 9111 §5), as they came; `null` where absent. */
export interface CacheFields {
  readonly cacheControl: string | null;
  readonly age: string | null;
  readonly expires: string | null;
  readonly date: string | null;
}

/** What the operator allows, whatever an answer says. Milliseconds. */
export interface LifetimeBounds {
  readonly minAgeMs: number;
  readonly maxAgeMs: number;
}

/** RFC 9111 §1.2.2: what does not fit counts as this many seconds. */
const maxDeltaSeconds = 2 ** 31;

/** One directive of `Cache-Control`: a token, and a token or a quoted string behind `=` (RFC 9111 §5.2). */
const directive = /(?:^|,)[ \t]*([!#$%&'*+.^_`|~\w-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~\w-]*)))?[ \t]*(?=,|$)/g;

/** RFC 9110 §5.6.7, the one form that is still made. */
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Milliseconds for which an answer that just came stays fresh in a private cache (RFC 9111 §4.2), or `null` when it does
 * not say. What cannot be read counts as stale: 0. `s-maxage` is for shared caches and is not looked at, and
 * `must-revalidate` is not either: how long stale keys serve is the operator's to say.
 */
export function freshnessMs(fields: CacheFields): number | null {
  const directives = readDirectives(fields.cacheControl ?? '');
  if (directives.has('no-store') || directives.has('no-cache')) return 0;
  const maxAge = directives.get('max-age');
  if (maxAge !== undefined) {
    // Of several, the strictest (RFC 9111 §4.2.1 leaves the choice).
    const allowedS = Math.min(...maxAge.map((value) => deltaSeconds(value) ?? 0));
    const spentS = deltaSeconds(fields.age?.split(',')[0]?.trim() ?? '') ?? 0;
    return Math.max(0, allowedS - spentS) * 1000;
  }
  if (fields.expires === null) return null;
  const expires = dateMs(fields.expires);
  const date = dateMs(fields.date);
  return expires === null || date === null ? 0 : Math.max(0, expires - date);
}

/** Milliseconds for which keys are kept before they are fetched anew: what the answer said, within the bounds. */
export function lifetimeMs(freshness: number | null, bounds: LifetimeBounds): number {
  return freshness === null ? bounds.maxAgeMs : Math.min(Math.max(freshness, bounds.minAgeMs), bounds.maxAgeMs);
}

function readDirectives(value: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const [, name = '', quoted, bare] of value.matchAll(directive)) {
    const values = found.get(name.toLowerCase()) ?? [];
    values.push(quoted ?? bare ?? '');
    found.set(name.toLowerCase(), values);
  }
  return found;
}

function deltaSeconds(value: string): number | null {
  return /^\d+$/.test(value) ? Math.min(Number(value), maxDeltaSeconds) : null;
}

function dateMs(value: string | null): number | null {
  if (value === null || !httpDate.test(value)) return null;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? null : ms;
}
