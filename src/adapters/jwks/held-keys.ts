import { lifetimeMs, staleAllowanceMs, type KeepingRules } from '../../decision/http/http-freshness.js';
import type { KeyLookup } from '../../ports/auth.js';
import type { LoadedKeys } from './load.js';

/** The key set in hand. Times are those of the monotonic clock. */
export interface HeldKeys extends KeepingRules {
  readonly keys: ReadonlyMap<string, HeldKey>;
  readonly loadedAtMs: number;
}

export interface HeldKey {
  /** Made once, since most requests ask for the same. */
  readonly found: Extract<KeyLookup, { kind: 'found' }>;
  /** When the key was seen first. */
  readonly sinceMs: number;
}

/** The settings that say for how long keys serve. */
export interface AgeLimits {
  readonly minAgeMs: number;
  readonly maxAgeMs: number;
  /** `null` where the operator leaves it to what the source says. */
  readonly maxStaleMs: number | null;
}

/** Takes a loaded set in the place of the one before. */
export function holdKeys(before: HeldKeys | null, loaded: LoadedKeys, nowMs: number): HeldKeys {
  const keys = new Map<string, HeldKey>();
  for (const [keyId, key] of loaded.keys) {
    const known = before?.keys.get(keyId);
    const isSame = known !== undefined && known.found.key.key.equals(key.key);
    keys.set(keyId, isSame ? known : { found: { kind: 'found', key }, sinceMs: nowMs });
  }
  return { keys, loadedAtMs: nowMs, freshnessMs: loaded.freshnessMs, mustRevalidate: loaded.mustRevalidate };
}

/** Until when the set is as good as new. */
export function freshUntilMs(held: HeldKeys, limits: AgeLimits): number {
  return held.loadedAtMs + lifetimeMs(held.freshnessMs, limits);
}

/** Until when its keys serve at all, where the source is out of reach. */
export function usableUntilMs(held: HeldKeys, limits: AgeLimits): number {
  return freshUntilMs(held, limits) + staleAllowanceMs(limits.maxStaleMs, held.mustRevalidate);
}

/**
 * How much of the time past its lifetime is over for which it serves: 0 within its lifetime, 1 at the end and later.
 */
export function stalePartOf(held: HeldKeys, limits: AgeLimits, nowMs: number): number {
  const overMs = nowMs - freshUntilMs(held, limits);
  if (overMs <= 0) return 0;
  return Math.min(1, overMs / Math.max(1, usableUntilMs(held, limits) - freshUntilMs(held, limits)));
}

/** Ids of the keys that left. */
export function withdrawnFrom(before: HeldKeys | null, after: HeldKeys): readonly string[] {
  return before === null ? [] : [...before.keys.keys()].filter((keyId) => !after.keys.has(keyId));
}

/** Tells whether two sets name the same keys. */
export function sameKeys(a: HeldKeys | null, b: HeldKeys): boolean {
  return a !== null && a.keys.size === b.keys.size && [...b.keys].every(([keyId, key]) => a.keys.get(keyId) === key);
}
