import { isCanonicalBase64Url } from '../../lib/base64url.js';
import { isKeyId } from './kid-filter.js';
import type { Algorithm, KeyRules } from './profiles.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { isJsonArray, type JsonObject, type JsonValue } from '../../lib/strict-json.js';

/** What is known of a key that may verify what was signed. */
interface PublicKeyDescription {
  /** The only one that it verifies. */
  readonly algorithm: Algorithm;
  /** The members that make the public key, and no other: what is imported. */
  readonly publicKey: Readonly<Record<string, string>>;
}

/** What a key set says of a key that may verify service tokens. */
interface KeyDescription extends PublicKeyDescription {
  readonly keyId: string;
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
 * Checks one member of a key set (RFC 7517 §4, RFC 7518 §6, RFC 8037 §2) as a key for one of the issuer's algorithms:
 * `kty`, `crv` and `alg` fix which. A `kid`, `use` and `key_ops` that mean verifying, no private member; RSA with a
 * modulus of 2048 to 8192 bits and an odd exponent above 2, EC and Ed25519 with coordinates of the curve's length, of
 * which low-order points are refused. The refusal is in words for operators. Whether a point is on its curve is seen
 * when the key is imported.
 */
export function checkJwk(jwk: JsonObject, rules: KeyRules): Result<KeyDescription, string> {
  const kind = kindOf(jwk, rules);
  if (!kind.ok) return kind;
  const { kid } = jwk;
  if (!isKeyId(kid)) return refuse('kid is not 1 to 256 visible ASCII characters');
  const described = describe(jwk, kind.value, rules);
  if (!described.ok) return described;
  const { algorithm, publicKey } = described.value;
  return accept({ keyId: kid, algorithm, publicKey });
}

/** The same of a key that comes with what it signed, and has no name (RFC 9449 §4.2). */
export function checkPublicJwk(jwk: JsonObject, rules: KeyRules): Result<PublicKeyDescription, string> {
  const kind = kindOf(jwk, rules);
  return kind.ok ? describe(jwk, kind.value, rules) : kind;
}

function describe(jwk: JsonObject, kind: KeyKind, rules: KeyRules): Result<PublicKeyDescription, string> {
  const algorithm = algorithmOf(jwk, kind, rules);
  if (!algorithm.ok) return algorithm;
  const purpose = purposeProblem(jwk, rules);
  if (purpose !== null) return refuse(purpose);
  const publicKey = kind.readPublicKey(jwk);
  return publicKey.ok ? accept({ algorithm: algorithm.value, publicKey: publicKey.value }) : refuse(publicKey.error);
}

/** One kind of key, and what it can verify. */
interface KeyKind {
  readonly kty: 'RSA' | 'EC' | 'OKP';
  /** `null` for RSA, which has none. */
  readonly crv: string | null;
  readonly algorithms: readonly Algorithm[];
  readonly readPublicKey: (jwk: JsonObject) => Result<Readonly<Record<string, string>>, string>;
}

const keyKinds: readonly KeyKind[] = [
  {
    kty: 'RSA',
    crv: null,
    algorithms: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
    readPublicKey: readRsaKey,
  },
  { kty: 'EC', crv: 'P-256', algorithms: ['ES256'], readPublicKey: (jwk) => readEcKey(jwk, 'P-256', 32) },
  { kty: 'EC', crv: 'P-384', algorithms: ['ES384'], readPublicKey: (jwk) => readEcKey(jwk, 'P-384', 48) },
  { kty: 'EC', crv: 'P-521', algorithms: ['ES512'], readPublicKey: (jwk) => readEcKey(jwk, 'P-521', 66) },
  { kty: 'OKP', crv: 'Ed25519', algorithms: ['EdDSA'], readPublicKey: readEdwardsKey },
];

/** The kind of a key, where one of the issuer's algorithms goes with it. */
function kindOf({ kty, crv }: JsonObject, { algorithms }: KeyRules): Result<KeyKind, string> {
  const usable = keyKinds.filter((kind) => kind.algorithms.some((algorithm) => algorithms.has(algorithm)));
  const types = [...new Set(usable.map((kind) => kind.kty))];
  if (!types.some((type) => type === kty)) return refuse(`kty is not ${types.join(' or ')}`);
  const found = usable.find((kind) => kind.kty === kty && (kind.crv === null || kind.crv === crv));
  const curves = usable.flatMap((kind) => (kind.kty === kty ? (kind.crv ?? []) : []));
  return found === undefined ? refuse(`crv is not ${curves.join(' or ')}`) : accept(found);
}

/** The one that `alg` names, and without `alg` the only one that is left: else nobody could say which is meant. */
function algorithmOf({ alg }: JsonObject, { algorithms }: KeyKind, rules: KeyRules): Result<Algorithm, string> {
  const possible = algorithms.filter((algorithm) => rules.algorithms.has(algorithm));
  const [first] = possible;
  if (alg === undefined && first !== undefined && possible.length === 1) return accept(first);
  if (alg === undefined) return refuse(`alg is missing, and ${possible.join(' and ')} are allowed`);
  const named = possible.find((algorithm) => algorithm === alg);
  return named === undefined ? refuse(`alg is not ${possible.join(' or ')}`) : accept(named);
}

function purposeProblem(jwk: JsonObject, rules: KeyRules): string | null {
  const { use, key_ops: operations } = jwk;
  // A bundle has keys for certificates beside those for tokens: only `use` tells them apart.
  if (use !== rules.use && !(rules.use === 'sig' && use === undefined)) return `use is not ${rules.use}`;
  if (operations !== undefined && !(isJsonArray(operations) && operations.includes('verify'))) {
    return 'key_ops do not include verify';
  }
  return privateMembers.some((name) => jwk[name] !== undefined)
    ? 'the private key is published: anyone can sign with it'
    : null;
}

function readRsaKey({ n, e }: JsonObject): Result<Readonly<Record<string, string>>, string> {
  const modulus = readUnsigned(n);
  if (typeof n !== 'string' || modulus === null) return refuse('n is not a base64url number');
  const exponent = readUnsigned(e);
  if (typeof e !== 'string' || exponent === null) return refuse('e is not a base64url number');
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
  return accept({ kty: 'RSA', n, e });
}

function readEcKey({ x, y }: JsonObject, crv: string, bytes: number): Result<Readonly<Record<string, string>>, string> {
  if (typeof x !== 'string' || readOctets(x, bytes) === null) {
    return refuse(`x is not ${String(bytes)} base64url bytes`);
  }
  if (typeof y !== 'string' || readOctets(y, bytes) === null) {
    return refuse(`y is not ${String(bytes)} base64url bytes`);
  }
  return accept({ kty: 'EC', crv, x, y });
}

function readEdwardsKey({ x }: JsonObject): Result<Readonly<Record<string, string>>, string> {
  const octets = typeof x === 'string' ? readOctets(x, 32) : null;
  if (typeof x !== 'string' || octets === null) return refuse('x is not 32 base64url bytes');
  if (isLowOrderPoint(octets)) return refuse('x is a point of low order: anyone can sign for it');
  return accept({ kty: 'OKP', crv: 'Ed25519', x });
}

/** RFC 7518 §6.2.1.2, RFC 8037 §2: all of the curve's bytes, leading zeros too. */
function readOctets(value: string, bytes: number): Buffer | null {
  if (!isCanonicalBase64Url(value)) return null;
  const octets = Buffer.from(value, 'base64url');
  return octets.length === bytes ? octets : null;
}

/** The prime of Curve25519. */
const edwardsPrime = 2n ** 255n - 19n;

/** One of the two y of the points of order 8; the other is its negative. */
const yOfOrder8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022n;

/** Of the eight points whose order divides 8. */
const lowOrderYs: ReadonlySet<bigint> = new Set([0n, 1n, edwardsPrime - 1n, yOfOrder8, edwardsPrime - yOfOrder8]);

/**
 * Tells whether a public key is a point for which one signature holds for every message (Ed25519 as RFC 8032 §5.1.7 has
 * it multiplies by no cofactor, and still such a key leaves eight cases), or no proper spelling of a y at all.
 */
function isLowOrderPoint(octets: Buffer): boolean {
  const y = BigInt(`0x${Buffer.from(octets).reverse().toString('hex')}`) & (2n ** 255n - 1n);
  return y >= edwardsPrime || lowOrderYs.has(y);
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
