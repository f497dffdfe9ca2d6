import { KeyObject } from 'node:crypto';
// Of the whole package a start would load eight times as much.
import { importJWK } from 'jose/key/import';
import { accept, refuse, type Result } from '../../lib/result.js';
import {
  defaultMaxDepth,
  isJsonArray,
  isJsonObject,
  parseStrictJson,
  type JsonObject,
  type JsonProblem,
} from '../../lib/strict-json.js';
import type { KeyRules } from '../../decision/token/profiles.js';
import { checkJwk } from '../../decision/token/jwk.js';
import type { VerificationKey, KeyLookup } from '../../ports/auth.js';
import { lifetimeMs, staleAllowanceMs, type KeepingRules } from '../../decision/http/http-freshness.js';
import type { LoadedKeys } from './key-source.js';

/** The keys of a set that can verify service tokens. */
export interface KeySet {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** The others, with the reason, in words. */
  readonly skipped: readonly string[];
}

/** Words that follow a name of the document. */
export const jsonProblems: Readonly<Record<JsonProblem, string>> = {
  encoding: 'is not UTF-8',
  too_deep: 'nests too deep',
  syntax: 'is not JSON',
  not_an_object: 'is not a JSON object',
  duplicate_member: 'names a member twice',
  not_representable: 'holds a string or a number that cannot be represented',
};

/**
 * Reads a JSON Web Key Set (RFC 7517 §5) by what an issuer's keys are held to. Keys for other purposes are passed over,
 * as RFC 7517 asks. Refuses, in words, what is broken, and two different keys under one `kid`, since nobody could say
 * which of them is meant.
 */
export async function readKeySet(bytes: Uint8Array, rules: KeyRules): Promise<Result<KeySet, string>> {
  const parsed = parseStrictJson(bytes, { maxDepth: defaultMaxDepth });
  if (!parsed.ok) return refuse(`the key set ${jsonProblems[parsed.error]}`);
  const listed = parsed.value['keys'];
  if (!isJsonArray(listed)) return refuse('the key set has no array "keys"');
  const keys = new Map<string, VerificationKey>();
  const skipped: string[] = [];
  for (const [index, jwk] of listed.entries()) {
    if (!isJsonObject(jwk)) return refuse(`keys[${String(index)}] is not an object`);
    const read = await readKey(jwk, rules);
    if (!read.ok) {
      skipped.push(`keys[${String(index)}]: ${read.error}`);
      continue;
    }
    const { keyId, key } = read.value;
    const same = keys.get(keyId);
    if (same !== undefined && !(same.algorithm === read.value.algorithm && same.key.equals(key))) {
      return refuse(`two different keys have the kid ${keyId}`);
    }
    keys.set(keyId, read.value);
  }
  return accept({ keys, skipped });
}

async function readKey(jwk: JsonObject, rules: KeyRules): Promise<Result<VerificationKey, string>> {
  const checked = checkJwk(jwk, rules);
  if (!checked.ok) return checked;
  const { keyId, algorithm, publicKey } = checked.value;
  try {
    const imported = await importJWK(publicKey, algorithm);
    if (imported instanceof Uint8Array) return refuse('not a public key');
    return accept({ keyId, algorithm, key: KeyObject.from(imported) });
  } catch {
    return refuse('the key cannot be imported');
  }
}

/** The key set in hand. Times are those of the monotonic clock. */
export interface HeldKeys extends KeepingRules {
  readonly keys: ReadonlyMap<string, HeldKey>;
  readonly loadedAtMs: number;
}

interface HeldKey {
  /** Made once, since most requests ask for the same. */
  readonly found: Extract<KeyLookup, { kind: 'found' }>;
  /** When the key was seen first. */
  readonly sinceMs: number;
}

/** The settings that say for how long keys serve. */
interface AgeLimits {
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
    const isSame =
      known !== undefined && known.found.key.algorithm === key.algorithm && known.found.key.key.equals(key.key);
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
