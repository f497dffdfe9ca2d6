/**
 * docs/introspection.md, RFC 7662 and RFC 9701: about which tokens an issuer is asked, and what its answer is worth.
 * From their words alone.
 */
import type { Field } from '../model-fields.js';
import { readObject, type Json } from '../model-json.js';
import { bytesOf, secondsOf, type Policy, type PolicyIntrospection, type PolicyIssuer } from '../model-policy.js';
import { decodePart, isVisible } from '../model-text.js';
import {
  boundTo,
  holdsInTime,
  isInteger,
  isOneOf,
  namesService,
  permissionsOf,
  valueAt,
  type Caller,
} from '../profiles/model-claims.js';
import type { ModelKeys } from '../profiles/model-keys.js';
import { fitsHeader } from '../profiles/model-profiles.js';
import { isSignedBy, type ModelKey } from '../profiles/model-signatures.js';

type Members = ReadonlyMap<string, Json>;

/** What an issuer sends when it is asked. */
export interface Answer {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: Buffer;
  /** Whether all of it came, as HTTP has it, and within `timeout`. */
  readonly isWhole: boolean;
}

/** What an issuer says of an opaque token when it is asked. */
export type Oracle = (token: string, issuerName: string) => Answer;

/** An issuer that is asked, by its name in the config. */
export interface AskedIssuer {
  readonly name: string;
  readonly issuer: PolicyIssuer;
  readonly introspection: PolicyIntrospection;
}

/** "Which tokens the issuer is asked about": all but those of three parts whose first one may be a header. */
export function isOpaque(token: string): boolean {
  const parts = token.split('.');
  if (parts.length !== 3) return true;
  // Blanks may precede a JSON text (RFC 8259 §2).
  return !Buffer.from(parts[0] ?? '', 'base64')
    .toString('latin1')
    .trimStart()
    .startsWith('{');
}

/** Whose opaque token it may be; `null` where nobody is asked. */
export function askedAbout(token: string, { issuers }: Pick<Policy, 'issuers'>): AskedIssuer | null {
  for (const [name, issuer] of Object.entries(issuers)) {
    const { introspection } = issuer;
    if (introspection !== undefined && token.startsWith(introspection.token_prefix ?? '')) {
      return { name, issuer, introspection };
    }
  }
  return null;
}

/** Who calls with an opaque token, or with what it is refused. */
export function callerBy(
  answer: Answer,
  asked: AskedIssuer,
  keys: ReadonlyMap<string, ModelKeys>,
  nowMs: number,
): Caller | 401 | 503 {
  const said = readAnswer(answer, asked, keys.get(asked.name) ?? null, nowMs);
  if (said === 'none') return 503;
  return said === 'inactive' ? 401 : (readMembers(said, asked, nowMs) ?? 401);
}

/** "When the issuer cannot be asked": what is an answer, and what it says where the token is active. */
export function readAnswer(
  { status, fields, body, isWhole }: Answer,
  { issuer, introspection }: AskedIssuer,
  keys: ModelKeys,
  nowMs: number,
): Members | 'inactive' | 'none' {
  if (!isWhole || status !== 200 || body.length > bytesOf(introspection.max_bytes ?? '64KiB')) return 'none';
  const codings = valuesOf(fields, 'content-encoding');
  if (codings.some((coding) => coding !== 'identity')) return 'none';
  const isJson = introspection.answer !== 'jwt';
  const [type, ...more] = valuesOf(fields, 'content-type');
  const wanted = isJson ? 'application/json' : 'application/token-introspection+jwt';
  if (type === undefined || more.length > 0 || type.split(';')[0]?.trim().toLowerCase() !== wanted) return 'none';
  const members = isJson
    ? readObject(body)
    : readSigned(body.toString('latin1'), issuer, introspection.client_id, keys, nowMs);
  const active = members?.get('active');
  if (members === null || typeof active !== 'boolean') return 'none';
  return active ? members : 'inactive';
}

function valuesOf(fields: readonly Field[], name: string): readonly string[] {
  return fields.filter(([known]) => known.toLowerCase() === name).map(([, value]) => value);
}

/** RFC 9701 §5: `token_introspection` of a JWT that this issuer made for this client, and now. */
function readSigned(
  text: string,
  issuer: PolicyIssuer,
  clientId: string,
  keys: ModelKeys,
  nowMs: number,
): Members | null {
  const parts = text.split('.');
  const [header, claims, signature] = parts.map(decodePart);
  if (text.length > 8192 || parts.length !== 3 || !header || !claims || !signature) return null;
  const [head, said] = [readObject(header), readObject(claims)];
  if (head === null || said === null) return null;
  if (!fitsHeader(head, { ...issuer, token_typ: ['token-introspection+jwt'] })) return null;
  const keyId = head.get('kid');
  const key = typeof keyId === 'string' ? keys?.get(keyId) : undefined;
  if (key === undefined || key.algorithm !== head.get('alg')) return null;
  if (said.get('iss') !== issuer.issuer || !namesService(said.get('aud'), [clientId])) return null;
  if (!isOfNow(said, secondsOf(issuer.clock_skew ?? '5s'), nowMs / 1000)) return null;
  const members = said.get('token_introspection');
  if (!(members instanceof Map) || !isSignedOnce(key, parts.slice(0, 2).join('.'), signature)) return null;
  return members as Members;
}

/** By key, what was signed and how: an answer is judged for each of its callers, and a signature takes milliseconds. */
const checked = new WeakMap<ModelKey, Map<string, boolean>>();

function isSignedOnce(key: ModelKey, input: string, signature: Buffer): boolean {
  const known = checked.get(key) ?? new Map<string, boolean>();
  checked.set(key, known);
  const name = `${input}.${signature.toString('hex')}`;
  const found = known.get(name) ?? isSignedBy(key, input, signature);
  known.set(name, found);
  return found;
}

/** Made in the second in which it was asked for; `exp` and `nbf` need not be there, and count (RFC 7519 §4.1). */
function isOfNow(claims: Members, skew: number, now: number): boolean {
  const [iat, exp, nbf] = ['iat', 'exp', 'nbf'].map((name) => claims.get(name));
  if (!isInteger(iat) || iat < Math.floor(now - skew) || iat > now + skew) return false;
  if (exp !== undefined && (!isInteger(exp) || now >= exp + skew)) return false;
  return nbf === undefined || (isInteger(nbf) && nbf <= now + skew);
}

/** "What an answer has to say", line by line; `null` where it does not. */
export function readMembers(
  members: Members,
  { name, issuer, introspection }: AskedIssuer,
  nowMs: number,
): Caller | null {
  const [iss, aud, type, cnf, iat, jti] = ['iss', 'aud', 'token_type', 'cnf', 'iat', 'jti'].map((one) =>
    members.get(one),
  );
  if (iss !== undefined && iss !== issuer.issuer) return null;
  if (aud === undefined ? introspection.require_aud !== false : !isMeantForUs(aud, issuer)) return null;
  if (type !== undefined && !isTokenType(type, cnf)) return null;
  const confirmation = boundTo(cnf, issuer);
  if (confirmation === null || !holdsInTime(members, issuer, nowMs / 1000)) return null;
  const required = Object.entries(issuer.claims?.require ?? {});
  if (required.some(([path, wanted]) => !isOneOf(valueAt(members, path), wanted))) return null;
  if (jti === undefined ? introspection.has_jti === true : typeof jti !== 'string' || !isVisible(jti, 256)) return null;
  const subject = valueAt(members, issuer.claims?.subject ?? 'sub');
  const permissions = permissionsOf(members, issuer);
  if (typeof subject !== 'string' || !isVisible(subject, 1024) || permissions === null) return null;
  if (isTooLong(members, issuer)) return null;
  return {
    issuerName: name,
    // No key vouches for it.
    keyId: '',
    issuer: issuer.issuer ?? '',
    subject,
    permissions: permissions.filter((one) => isVisible(one, 8192) && !/["\\]/.test(one)),
    tokenId: typeof jti === 'string' ? jti : null,
    issuedAtS: typeof iat === 'number' ? iat : null,
    confirmation,
  };
}

function isMeantForUs(aud: Json, { audience }: PolicyIssuer): boolean {
  return namesService(aud, typeof audience === 'string' ? [audience] : audience);
}

/** RFC 6749 §5.1: without regard to case. RFC 9449 §6.2: a DPoP token is one that `cnf` binds to a key. */
function isTokenType(type: Json, cnf: Json | undefined): boolean {
  if (typeof type !== 'string') return false;
  const name = type.toLowerCase();
  return name === 'bearer' || (name === 'dpop' && cnf instanceof Map && isThumbprint((cnf as Members).get('jkt')));
}

/** RFC 9449 §6.1: a SHA-256 in base64url. */
function isThumbprint(value: Json | undefined): boolean {
  return typeof value === 'string' && decodePart(value)?.length === 32;
}

/** More than 8 KiB of permissions, blanks of a text included. */
function isTooLong(members: Members, issuer: PolicyIssuer): boolean {
  const value = valueAt(members, issuer.claims?.permissions ?? 'scope');
  const texts = Array.isArray(value) ? (value as readonly Json[]) : [value];
  return texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0) > 8192;
}
