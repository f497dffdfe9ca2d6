import { isCanonicalBase64Url } from '../../lib/base64url.js';
import { isKeyId } from './kid-filter.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { isJsonArray, type JsonObject, type JsonValue } from '../../lib/strict-json.js';

/** What a key set says of a key that may verify service tokens. */
interface KeyDescription {
  readonly keyId: string;
  readonly modulusBits: number;
}

/** RFC 7518 §3.3 asks for 2048. */
const minModulusBits = 2048;

/** Each doubling makes a verification four times dearer, and callers choose how often it is done. */
const maxModulusBits = 8192;

/** OpenSSL's own bound for larger moduli; 65537 has 17, and a long exponent only makes verification dear. */
const maxExponentBits = 64;

/** Base64url characters of a number that is read at all; the longest modulus needs 1,368. */
const maxNumberLength = 4096;

/** RFC 7518 §6.3.2, §6.4.1. */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const;

/**
 * Checks one member of a key set (RFC 7517 §4, RFC 7518 §6.3) as a key for RS256: `kty` RSA, a modulus of 2048 to 8192
 * bits, an odd exponent above 2, a `kid`, and `alg`, `use` and `key_ops`, where present, that mean verifying RS256. The
 * refusal is in words for operators. Import only `kty`, `n` and `e` of a key that passed.
 */
export function checkJwk(jwk: JsonObject): Result<KeyDescription, string> {
  const { kty, kid, alg, use, key_ops: operations } = jwk;
  if (kty !== 'RSA') return refuse('kty is not RSA');
  if (!isKeyId(kid)) return refuse('kid is not 1 to 256 visible ASCII characters');
  if (alg !== undefined && alg !== 'RS256') return refuse('alg is not RS256');
  if (use !== undefined && use !== 'sig') return refuse('use is not sig');
  if (operations !== undefined && !(isJsonArray(operations) && operations.includes('verify'))) {
    return refuse('key_ops do not include verify');
  }
  if (privateMembers.some((name) => jwk[name] !== undefined)) {
    return refuse('the private key is published: anyone can sign with it');
  }

  const modulus = readUnsigned(jwk['n']);
  if (modulus === null) return refuse('n is not a base64url number');
  const exponent = readUnsigned(jwk['e']);
  if (exponent === null) return refuse('e is not a base64url number');
  const modulusBits = bitLength(modulus);
  if (modulusBits < minModulusBits || modulusBits > maxModulusBits) {
    return refuse(
      `the modulus has ${String(modulusBits)} bits; allowed: ${String(minModulusBits)} to ${String(maxModulusBits)}`,
    );
  }
  if (!isOdd(modulus)) return refuse('the modulus is even');
  // With an exponent of 1 every signature is its own message: anyone can sign.
  if (exponent <= 2n || !isOdd(exponent)) return refuse('the exponent is not odd and above 2');
  if (bitLength(exponent) > maxExponentBits) {
    return refuse(`the exponent has more than ${String(maxExponentBits)} bits`);
  }
  if (isRocaModulus(modulus)) return refuse('the modulus is one of a broken generator (CVE-2017-15361)');
  return accept({ keyId: kid, modulusBits });
}

/**
 * Base64urlUInt (RFC 7518 §2), as the Core's Java writes it too: padded, and with a zero octet before a first bit that
 * is set. Unlike a token's, these bytes come from the issuer, so a second spelling gives nobody anything.
 */
function readUnsigned(value: JsonValue | undefined): bigint | null {
  if (typeof value !== 'string' || value.length > maxNumberLength) return null;
  const digits = value.replace(/={1,2}$/, '');
  return isCanonicalBase64Url(digits) ? BigInt(`0x${Buffer.from(digits, 'base64url').toString('hex')}`) : null;
}

function bitLength(value: bigint): number {
  return value.toString(2).length;
}

function isOdd(value: bigint): boolean {
  return (value & 1n) === 1n;
}

/**
 * Modulo each of these, the primes of the flawed generator are powers of 65537, and so their products (Nemec et al.,
 * CCS 2017, §2).
 */
const primes = [
  3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113,
  127, 131, 137, 139, 149, 151, 157, 163, 167,
] as const;

const fingerprints = primes.map((prime) => ({ prime: BigInt(prime), residues: powersOf65537(prime) }));

/**
 * Tells whether an RSA modulus bears the fingerprint of CVE-2017-15361 (ROCA): its private key can be computed from it.
 * About one sound modulus in 240 million bears it by chance, and refusing that one costs a rotation.
 */
export function isRocaModulus(modulus: bigint): boolean {
  return fingerprints.every(({ prime, residues }) => residues.has(Number(modulus % prime)));
}

/** The subgroup that 65537 generates modulo a prime. */
function powersOf65537(prime: number): ReadonlySet<number> {
  const powers = new Set<number>();
  for (let power = 1; !powers.has(power); power = (power * (65537 % prime)) % prime) powers.add(power);
  return powers;
}
