import { KeyObject } from 'node:crypto';
import { importJWK } from 'jose';
import { accept, refuse, type Result } from '../../lib/result.js';
import {
  defaultMaxDepth,
  isJsonArray,
  isJsonObject,
  parseStrictJson,
  type JsonObject,
  type JsonProblem,
} from '../../lib/strict-json.js';
import { checkJwk } from '../../decision/token/jwk.js';
import type { VerificationKey } from '../../ports/auth.js';

/** The keys of a set that can verify service tokens. */
export interface KeySet {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** The others, with the reason, in words. */
  readonly skipped: readonly string[];
}

const jsonProblems: Readonly<Record<JsonProblem, string>> = {
  encoding: 'is not UTF-8',
  too_deep: 'nests too deep',
  syntax: 'is not JSON',
  not_an_object: 'is not a JSON object',
  duplicate_member: 'names a member twice',
  not_representable: 'holds a string or a number that cannot be represented',
};

/**
 * Reads a JSON Web Key Set (RFC 7517 §5). Keys for other purposes are passed over, as RFC 7517 asks. Refuses, in words,
 * what is broken, and two different keys under one `kid`, since nobody could say which of them is meant.
 */
export async function readKeySet(bytes: Uint8Array): Promise<Result<KeySet, string>> {
  const parsed = parseStrictJson(bytes, { maxDepth: defaultMaxDepth });
  if (!parsed.ok) return refuse(`the key set ${jsonProblems[parsed.error]}`);
  const listed = parsed.value['keys'];
  if (!isJsonArray(listed)) return refuse('the key set has no array "keys"');
  const keys = new Map<string, VerificationKey>();
  const skipped: string[] = [];
  for (const [index, jwk] of listed.entries()) {
    if (!isJsonObject(jwk)) return refuse(`keys[${String(index)}] is not an object`);
    const read = await readKey(jwk);
    if (!read.ok) {
      skipped.push(`keys[${String(index)}]: ${read.error}`);
      continue;
    }
    const { keyId, key } = read.value;
    const same = keys.get(keyId);
    if (same !== undefined && !same.key.equals(key)) return refuse(`two different keys have the kid ${keyId}`);
    keys.set(keyId, read.value);
  }
  return accept({ keys, skipped });
}

async function readKey(jwk: JsonObject): Promise<Result<VerificationKey, string>> {
  const checked = checkJwk(jwk);
  if (!checked.ok) return checked;
  const { n, e } = jwk;
  if (typeof n !== 'string' || typeof e !== 'string') return refuse('n or e is not a string');
  try {
    const imported = await importJWK({ kty: 'RSA', n, e }, 'RS256');
    if (imported instanceof Uint8Array) return refuse('not a public key');
    return accept({ keyId: checked.value.keyId, key: KeyObject.from(imported) });
  } catch {
    return refuse('the key cannot be imported');
  }
}
