/** docs/contract.md 3.5 and 3.6: what a service token is worth. RSA is done by hand, with big integers. */
import { createHash } from 'node:crypto';
import { readObject, type Json } from './model-json.js';
import { secondsOf, type Policy, type PolicyIssuer } from './model-policy.js';

/** The public half of a key: modulus and exponent. */
export interface PublicNumbers {
  readonly n: bigint;
  readonly e: bigint;
}

/** Whom a token speaks for. */
export interface Caller {
  readonly issuerName: string;
  readonly issuer: string;
  readonly subject: string;
  readonly permissions: readonly string[];
  readonly tokenId: string | null;
  readonly keyId: string;
  readonly issuedAtS: number | null;
}

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Who calls, by a token; `null` where it is worth nothing. Issuers do not share keys here: each key id has one. */
export function readCaller(
  token: string,
  policy: Policy,
  keys: ReadonlyMap<string, ReadonlyMap<string, PublicNumbers>>,
  nowMs: number,
): Caller | null {
  const parts = token.split('.');
  if (token.length > 8192 || parts.length !== 3) return null;
  const [header, payload, signature] = parts.map(decodePart);
  if (!header || !payload || !signature) return null;
  const members = readObject(header);
  if (members === null || [...members.keys()].some((name) => !['alg', 'kid', 'typ'].includes(name))) return null;
  const keyId = members.get('kid');
  if (members.get('alg') !== 'RS256' || typeof keyId !== 'string' || !isVisible(keyId, 256)) return null;
  if (members.has('typ') && members.get('typ') !== 'JWT') return null;
  const claims = readObject(payload);
  if (claims === null) return null;
  for (const [name, issuer] of Object.entries(policy.issuers)) {
    const key = keys.get(name)?.get(keyId);
    if (
      key === undefined ||
      !acceptsKey(issuer, keyId) ||
      !isSigned(`${parts[0] ?? ''}.${parts[1] ?? ''}`, signature, key)
    ) {
      continue;
    }
    const caller = readClaims(claims, name, issuer, keyId, nowMs);
    if (caller !== null) return caller;
  }
  return null;
}

/** docs/contract.md 3.6. */
export function isWithdrawn(
  { revoked }: Policy,
  caller: Pick<Caller, 'keyId' | 'subject' | 'tokenId' | 'issuedAtS'>,
): boolean {
  const tooOld =
    revoked.issuedBeforeS !== null && (caller.issuedAtS === null || caller.issuedAtS < revoked.issuedBeforeS);
  return (
    tooOld ||
    revoked.key_ids.includes(caller.keyId) ||
    revoked.subjects.includes(caller.subject) ||
    (caller.tokenId !== null && revoked.token_ids.includes(caller.tokenId))
  );
}

function readClaims(
  claims: ReadonlyMap<string, Json>,
  issuerName: string,
  issuer: PolicyIssuer,
  keyId: string,
  nowMs: number,
): Caller | null {
  const [exp, nbf, iat, sub, jti, permissions] = ['exp', 'nbf', 'iat', 'sub', 'jti', 'permissions'].map((name) =>
    claims.get(name),
  );
  const now = nowMs / 1000;
  const skew = secondsOf(issuer.clock_skew);
  const cap = secondsOf(issuer.max_lifetime);
  if (['sessionHandle', 'refreshTokenHash1', 'stt'].some((name) => claims.has(name))) return null;
  if (claims.get('iss') !== issuer.issuer || claims.get('aud') !== issuer.audience) return null;
  if (!isOneOf(claims.get('source'), issuer.source) || !isOneOf(claims.get('token_type'), issuer.token_type)) {
    return null;
  }
  if (!isInteger(exp) || now >= exp + skew || exp - now > cap + skew) return null;
  if (nbf !== undefined && (!isInteger(nbf) || nbf > now + skew)) return null;
  if (iat !== undefined && (!isInteger(iat) || iat > now + skew || exp - iat > cap)) return null;
  if (typeof sub !== 'string' || !isVisible(sub, 1024)) return null;
  if (jti !== undefined && (typeof jti !== 'string' || !isVisible(jti, 256))) return null;
  if (
    !Array.isArray(permissions) ||
    permissions.length > 1000 ||
    !permissions.every((permission) => typeof permission === 'string')
  ) {
    return null;
  }
  return {
    issuerName,
    issuer: issuer.issuer,
    subject: sub,
    permissions: permissions.filter(isScope),
    tokenId: jti ?? null,
    keyId,
    issuedAtS: iat ?? null,
  };
}

function acceptsKey({ key_ids: { accept, reject = [] } }: PolicyIssuer, keyId: string): boolean {
  const fits = (pattern: string): boolean =>
    pattern.endsWith('*') ? keyId.startsWith(pattern.slice(0, -1)) : keyId === pattern;
  return accept.some(fits) && !reject.some(fits);
}

/** Each byte string has one spelling: bits that stand for nothing are 0. */
export function decodePart(part: string): Buffer | null {
  if (part === '' || part.length % 4 === 1) return null;
  let bits = '';
  for (const letter of part) {
    const value = letters.indexOf(letter);
    if (value < 0) return null;
    bits += value.toString(2).padStart(6, '0');
  }
  const whole = bits.length - (bits.length % 8);
  if (bits.slice(whole).includes('1')) return null;
  return Buffer.from(
    Array.from({ length: whole / 8 }, (_, index) => Number.parseInt(bits.slice(8 * index, 8 * index + 8), 2)),
  );
}

/** RFC 8017 §9.2: what the signature to the power of e has to be, byte for byte. */
const digestPrefix = '3031300d060960864801650304020105000420';

export function isSigned(input: string, signature: Buffer, { n, e }: PublicNumbers): boolean {
  const length = Math.ceil(n.toString(16).length / 2);
  const number = BigInt(`0x${signature.toString('hex')}`);
  if (signature.length !== length || length < 256 || number >= n) return false;
  const tail = `00${digestPrefix}${createHash('sha256').update(input, 'latin1').digest('hex')}`;
  const expected = `0001${'ff'.repeat(length - 2 - tail.length / 2)}${tail}`;
  return power(number, e, n) === BigInt(`0x${expected}`);
}

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let result = 1n;
  for (const bit of exponent.toString(2)) {
    result = (result * result) % modulus;
    if (bit === '1') result = (result * base) % modulus;
  }
  return result;
}

function isOneOf(value: Json | undefined, wanted: string | readonly string[]): boolean {
  return typeof value === 'string' && (typeof wanted === 'string' ? value === wanted : wanted.includes(value));
}

function isInteger(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value);
}

export function isVisible(text: string, maxLength: number): boolean {
  return (
    text !== '' &&
    text.length <= maxLength &&
    Array.from(text).every((character) => character > ' ' && character <= '~')
  );
}

function isScope(value: Json): value is string {
  return typeof value === 'string' && isVisible(value, 8192) && !/["\\]/.test(value);
}
