/** The headers of a response that say how long it may be kept (RFC 9111 §5), as they came; `null` where absent. */
export interface CacheHeaders {
  readonly cacheControl: string | null;
  readonly age: string | null;
  readonly expires: string | null;
  readonly date: string | null;
}

/** What the operator allows, whatever a response says. Milliseconds. */
interface LifetimeBounds {
  readonly minAgeMs: number;
  readonly maxAgeMs: number;
}

/** For how long a response may be kept, by its own word. */
export interface KeepingRules {
  /** Milliseconds for which it stays fresh, or `null` when it does not say. */
  readonly freshnessMs: number | null;
  /** Whether it must not be used past that without asking again. */
  readonly mustRevalidate: boolean;
}

/**
 * Milliseconds for which keys serve past their lifetime while their source is out of reach, where the operator does not
 * say: a restart of the issuer takes less than the first, most outages of a network less than the second.
 */
const staleUnderMustRevalidateMs = 300_000;
const staleOtherwiseMs = 3_600_000;

/**
 * Longest wait of a request for a key that may be new, milliseconds: with the defaults the cool-down and a fetch. Where
 * the next fetch is not allowed within that, nobody waits for it.
 */
export const longestKeyWaitMs = 10_000;

/** RFC 9111 §1.2.2: what does not fit counts as this many seconds. */
const maxDeltaSeconds = 2 ** 31;

/** One directive of `Cache-Control`: a token, and a token or a quoted string behind `=` (RFC 9111 §5.2). */
const directive =
  /(?:^|,)[ \t]*([!#$%&'*+.^_`|~\w-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~\w-]*)))?[ \t]*(?=,|$)/g;

/** RFC 9110 §5.6.7, the one form that is still made. */
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Reads how a private cache may keep a response that just came. What cannot be read of its age counts as stale: 0
 * (RFC 9111 §4.2). `must-revalidate` (§5.2.2.2), `no-cache` (§5.2.2.4) and `no-store` (§5.2.2.5) forbid its use past
 * that, as §4.2.4 says. `s-maxage` and `proxy-revalidate` are for shared caches and are not looked at.
 */
export function keepingRules(headers: CacheHeaders): KeepingRules {
  const directives = readDirectives(headers.cacheControl ?? '');
  const mustAlwaysAsk = directives.has('no-store') || directives.has('no-cache');
  return {
    freshnessMs: mustAlwaysAsk ? 0 : freshnessMs(directives.get('max-age'), headers),
    mustRevalidate: mustAlwaysAsk || directives.has('must-revalidate'),
  };
}

function freshnessMs(maxAge: readonly string[] | undefined, headers: CacheHeaders): number | null {
  if (maxAge !== undefined) {
    // Of several, the strictest (RFC 9111 §4.2.1 leaves the choice).
    const allowedS = Math.min(...maxAge.map((value) => deltaSeconds(value) ?? 0));
    const spentS = deltaSeconds(headers.age?.split(',')[0]?.trim() ?? '') ?? 0;
    return Math.max(0, allowedS - spentS) * 1000;
  }
  if (headers.expires === null) return null;
  const expires = dateMs(headers.expires);
  const date = dateMs(headers.date);
  return expires === null || date === null ? 0 : Math.max(0, expires - date);
}

/** Milliseconds for which keys are kept before they are fetched anew: what the response said, within the bounds. */
export function lifetimeMs(freshness: number | null, bounds: LifetimeBounds): number {
  return freshness === null ? bounds.maxAgeMs : Math.min(Math.max(freshness, bounds.minAgeMs), bounds.maxAgeMs);
}

/**
 * Milliseconds for which keys serve past their lifetime while their source is out of reach. The operator's word, where
 * given, is the one that counts.
 */
export function staleAllowanceMs(maxStaleMs: number | null, mustRevalidate: boolean): number {
  return maxStaleMs ?? (mustRevalidate ? staleUnderMustRevalidateMs : staleOtherwiseMs);
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
