/** docs/issuers.md, "Keys and algorithms": which keys of a set count, and what each verifies. From its words alone. */
import { readObject, type Json } from '../model-json.js';
import type { PolicyIssuer } from '../model-policy.js';
import { decodePart, isVisible } from '../model-text.js';
import { curves, isOnCurve } from './model-curves.js';
import { algorithmsOf } from './model-profiles.js';
import { isOfLowOrder, numberOf, readEdPoint, type ModelKey } from './model-signatures.js';

type Members = ReadonlyMap<string, Json>;

/** The keys of an issuer by their ids; `null` where they cannot be had. */
export type ModelKeys = ReadonlyMap<string, ModelKey> | null;

/** A key set (RFC 7517 §5) as it is fetched. What is none, and two keys of one id, is an outage. */
export function readKeysSlowly(text: string, issuer: PolicyIssuer): ModelKeys {
  const listed = readObject(Buffer.from(text))?.get('keys');
  if (!Array.isArray(listed)) return null;
  const keys = new Map<string, ModelKey>();
  for (const jwk of listed as readonly Json[]) {
    if (!(jwk instanceof Map)) return null;
    const members = jwk as Members;
    const keyId = members.get('kid');
    const key = readKey(members, issuer);
    if (key === null || typeof keyId !== 'string' || !isVisible(keyId, 256)) continue;
    const same = keys.get(keyId);
    if (same !== undefined && spelledOut(same) !== spelledOut(key)) return null;
    keys.set(keyId, key);
  }
  return keys;
}

/** One key; `null` where it verifies nothing. */
export function readKey(jwk: Members, issuer: Pick<PolicyIssuer, 'profile' | 'algorithms'>): ModelKey | null {
  const algorithm = algorithmOf(jwk, issuer);
  const [use, operations] = [jwk.get('use'), jwk.get('key_ops')];
  if (algorithm === null) return null;
  if (issuer.profile === 'spiffe' ? use !== 'jwt-svid' : use !== undefined && use !== 'sig') return null;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return null;
  if (['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'].some((name) => jwk.has(name))) return null;
  if (jwk.get('kty') === 'RSA') return readRsa(jwk, algorithm);
  return jwk.get('kty') === 'EC' ? readPoint(jwk, algorithm) : readEdwards(jwk, algorithm);
}

/** A key verifies one algorithm: the one it names, or the only one of the issuer's that fits it. */
function algorithmOf(jwk: Members, issuer: Pick<PolicyIssuer, 'profile' | 'algorithms'>): string | null {
  const fitting = algorithmsOf(issuer).filter((algorithm) => fits(jwk, algorithm));
  const named = jwk.get('alg');
  if (named === undefined) return fitting.length === 1 ? (fitting[0] ?? null) : null;
  return fitting.find((algorithm) => algorithm === named) ?? null;
}

const curveOf: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };

function fits(jwk: Members, algorithm: string): boolean {
  if (/^[RP]S/.test(algorithm)) return jwk.get('kty') === 'RSA';
  if (algorithm === 'EdDSA') return jwk.get('kty') === 'OKP' && jwk.get('crv') === 'Ed25519';
  return jwk.get('kty') === 'EC' && jwk.get('crv') === curveOf[algorithm];
}

function readRsa(jwk: Members, algorithm: string): ModelKey | null {
  const [n, e] = [octetsOf(jwk.get('n')), octetsOf(jwk.get('e'))];
  if (n === null || e === null) return null;
  const numbers = { n: numberOf(n), e: numberOf(e) };
  const bits = numbers.n.toString(2).length;
  const isOdd = (number: bigint): boolean => number % 2n === 1n;
  if (bits < 2048 || bits > 8192 || !isOdd(numbers.n) || !isOdd(numbers.e) || numbers.e < 3n) return null;
  return { kind: 'rsa', algorithm, ...numbers };
}

function readPoint(jwk: Members, algorithm: string): ModelKey | null {
  const curve = curves.find(({ name }) => name === jwk.get('crv'));
  const [x, y] = [octetsOf(jwk.get('x')), octetsOf(jwk.get('y'))];
  if (curve === undefined || x?.length !== curve.bytes || y?.length !== curve.bytes) return null;
  const point = { x: numberOf(x), y: numberOf(y) };
  return isOnCurve(curve, point.x, point.y) ? { kind: 'ec', algorithm, ...point } : null;
}

function readEdwards(jwk: Members, algorithm: string): ModelKey | null {
  const octets = octetsOf(jwk.get('x'));
  if (octets?.length !== 32) return null;
  // What spells no point is a key that nothing was signed with.
  const point = readEdPoint(octets);
  return point !== null && isOfLowOrder(point) ? null : { kind: 'ed', algorithm, octets };
}

function octetsOf(value: Json | undefined): Buffer | null {
  return typeof value === 'string' ? decodePart(value) : null;
}

function spelledOut(key: ModelKey): string {
  return JSON.stringify(key, (_name, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}
