import { boundKey, readConfirmation } from '../binding/confirmation.js';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../../lib/strict-json.js';
import type { ClaimPath, ClaimRules } from './profiles.js';
import { maxPermissions } from './service-token.js';

/** What of an issuer's response about a token is kept, and about how many bytes of memory that takes. */
interface KeptClaims {
  readonly claims: JsonObject;
  readonly bytes: number;
}

/** Characters of a text, or of all texts of a list, that are kept: a JWT has no more. */
const maxKeptCharacters = 8_192;

/**
 * Of every response something is asked of these: by `verifyIntrospection`, by what is revoked, and `client_id` by
 * `explain`, for whoever looks for the caller's name.
 */
const usualMembers: readonly ClaimPath[] = [
  'iss',
  'aud',
  'token_type',
  'exp',
  'nbf',
  'iat',
  'jti',
  'sub',
  'client_id',
].map((name) => [name]);

/**
 * Memory of V8 in bytes, rounded up: an object without prototype is a table of names, a text has a header, and a list a
 * pointer for each of its members. Characters beyond Latin-1 take two.
 */
const objectBytes = 120;
const memberBytes = 56;
const textBytes = 40;
const characterBytes = 2;

/**
 * Keeps of a response what its issuer's rules ask for, so that whatever else an issuer sends takes no memory. What is
 * too long, or in no form that any rule takes, is kept as `null`, which no rule takes either: the response is refused
 * for the same reason as before, and one with more than 8 KiB of permissions as malformed.
 */
export function keepClaims(response: JsonObject, { subject, permissions, require }: ClaimRules): KeptClaims {
  const paths = [...usualMembers, subject, ...(permissions === null ? [] : [permissions])];
  const kept = newObject();
  let bytes = objectBytes;
  // Shorter ones first: what lies within an object is put into what was kept of it.
  for (const path of [...paths, ...require.map((rule) => rule.path)].sort((a, b) => a.length - b.length)) {
    bytes += keep(path, response, kept);
  }
  const cnf = response['cnf'];
  if (cnf !== undefined) {
    // Never kept in part: a member that is not known refuses the token, and must not get lost.
    kept['cnf'] = confirmationOf(cnf);
    bytes += confirmationBytes;
  }
  return { claims: kept, bytes };
}

/** Of two members at most, which are digests. */
const confirmationBytes = objectBytes + 2 * (memberBytes + textBytes + 43 * characterBytes);

/**
 * Stands for the members of `cnf` that are not known here. No known member has this name, so the token stays refused.
 */
const otherMembers = '';

function confirmationOf(cnf: JsonValue): JsonValue {
  const kept = newObject();
  const confirmation = readConfirmation(cnf);
  if (confirmation === null) {
    // Where `binding` is `none` nobody asks for a proof, and a `token_type` of `DPoP` stands beside its key even so.
    const key = boundKey(cnf);
    if (key === null) return null;
    kept['jkt'] = key;
    kept[otherMembers] = null;
    return kept;
  }
  if (confirmation.certificate !== null) kept['x5t#S256'] = confirmation.certificate;
  if (confirmation.key !== null) kept['jkt'] = confirmation.key;
  return kept;
}

type MutableObject = Record<string, JsonValue>;

/** Without a prototype, as all objects that were read. */
function newObject(): MutableObject {
  return Object.create(null) as MutableObject;
}

/** Copies what stands at the path, and says how many bytes more that takes. */
function keep(path: ClaimPath, from: JsonObject, to: MutableObject): number {
  const [name = '', ...inner] = path;
  const value = from[name];
  if (value === undefined) return 0;
  let bytes = 0;
  if (to[name] === undefined) {
    const small = reduced(value);
    to[name] = small.value;
    bytes = memberBytes + small.bytes;
  }
  const within = to[name];
  if (inner.length === 0 || !isJsonObject(value) || !isJsonObject(within)) return bytes;
  return bytes + keep(inner, value, within);
}

function reduced(value: JsonValue): { readonly value: JsonValue; readonly bytes: number } {
  if (typeof value === 'string') {
    return value.length <= maxKeptCharacters ? { value, bytes: sizeOf(value) } : { value: null, bytes: 0 };
  }
  if (isJsonArray(value)) return reducedList(value);
  return isJsonObject(value) ? { value: newObject(), bytes: objectBytes } : { value, bytes: 0 };
}

function reducedList(list: readonly JsonValue[]): { readonly value: JsonValue; readonly bytes: number } {
  const texts = list.slice(0, maxPermissions + 1).filter((item) => typeof item === 'string');
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  if (texts.length < list.length || texts.length > maxPermissions || characters > maxKeptCharacters) {
    return { value: null, bytes: 0 };
  }
  return { value: texts, bytes: texts.reduce((sum, text) => sum + sizeOf(text), textBytes) };
}

function sizeOf(text: string): number {
  return textBytes + characterBytes * text.length;
}
