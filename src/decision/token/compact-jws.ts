import { isCanonicalBase64Url } from '../../lib/base64url.js';
import { ecdsaSequence } from './ecdsa-sequence.js';
import type { Algorithm } from './profiles.js';
import { denial, type Denial, type Reason } from '../denial.js';
import { memoize } from '../../lib/memo.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { defaultMaxDepth, parseStrictJson, type JsonObject } from '../../lib/strict-json.js';
import { constants, verify, type AsymmetricKeyDetails, type KeyObject, type VerifyKeyObjectInput } from 'node:crypto';

/** Longest token that is looked at: 8 KiB, half of the default header section. */
export const maxTokenBytes = 8192;

/** A token whose form is right. Nothing in it has been verified. */
export interface SignedToken {
  readonly keyId: string;
  /** As it was read: nothing in it was verified but what the reader of the header looked at. */
  readonly header: JsonObject;
  /** Header and payload as they came, with the dot between: the bytes that were signed. */
  readonly signingInput: Buffer;
  readonly signature: Buffer;
  /** Base64url of the claims, not decoded. Only `readPayload` opens it, and only after the signature held. */
  readonly encodedPayload: string;
}

/**
 * Takes a compact JWS (RFC 7515 §7.1) apart: three non-empty canonical base64url parts, at most 8 KiB. `readHeader`
 * answers the `kid` of a header that is right, or why it is not. The payload is judged by its characters alone.
 *
 * @param maxLength above which it is refused: a token that is not accepted may have to be recognised.
 */
export function parseCompactJws(
  token: string,
  readHeader: (header: JsonObject) => Result<string, Reason>,
  maxLength: number = maxTokenBytes,
): Result<SignedToken, Denial> {
  if (token.length > maxLength) return refuse(denial('token_malformed'));
  // Found by position: splitting a token of 8,192 dots would make 8,193 strings of it.
  const first = token.indexOf('.');
  const second = token.indexOf('.', first + 1);
  if (second < 0) return refuse(denial('token_malformed')); // so too where there is no first
  const encodedHeader = token.slice(0, first);
  const encodedPayload = token.slice(first + 1, second);
  const encodedSignature = token.slice(second + 1); // a third dot is no base64url
  const header = headerOf(encodedHeader);
  if (header === null || !isCanonicalBase64Url(encodedPayload) || !isCanonicalBase64Url(encodedSignature)) {
    return refuse(denial('token_malformed'));
  }

  const keyId = readHeader(header);
  if (!keyId.ok) return refuse(denial(keyId.error));
  return accept({
    keyId: keyId.value,
    header,
    signingInput: Buffer.from(token.slice(0, second), 'latin1'),
    signature: Buffer.from(encodedSignature, 'base64url'),
    encodedPayload,
  });
}

/** Opens the claims of a token whose signature held: a duplicate-free JSON object, else `token_malformed`. */
export function readPayload({ encodedPayload }: SignedToken): Result<JsonObject, Denial> {
  const payload = decodeObject(encodedPayload);
  return payload === null ? refuse(denial('token_malformed')) : accept(payload);
}

/**
 * The header of what may be a token, for its form only; `null` where there is none to be read.
 *
 * @param maxLength above which it is not looked at: a token that is not accepted may have to be recognised.
 */
export function peekHeader(token: string, maxLength: number = maxTokenBytes): JsonObject | null {
  const end = token.indexOf('.');
  if (end < 0 || token.length > maxLength) return null;
  return headerOf(token.slice(0, end));
}

/** Issuers write one header for each of their keys. */
const headerMemory = { maxNames: 64, maxLength: 512, areParts: true };

/** What an encoded header holds; `null` where it is no strict JSON object in its canonical spelling. */
const headerOf = memoize(
  (encoded: string) => (isCanonicalBase64Url(encoded) ? decodeObject(encoded) : null),
  headerMemory,
);

function decodeObject(encoded: string): JsonObject | null {
  const object = parseStrictJson(Buffer.from(encoded, 'base64url'), { maxDepth: defaultMaxDepth });
  return object.ok ? object.value : null;
}

/** What an algorithm asks of a key and a signature. */
interface SignatureForm {
  readonly keyType: 'rsa' | 'ec' | 'ed25519';
  /** `null` where the algorithm has its own. */
  readonly hash: 'sha256' | 'sha384' | 'sha512' | null;
  /** As Node.js names it. */
  readonly curve?: string;
  readonly isPss?: true;
  /** Bytes of a signature, where it is not the key that says so. */
  readonly bytes?: number;
}

/** RFC 7518 §3.3 to §3.5, RFC 8037 §3.1. */
const signatureForms: Readonly<Record<Algorithm, SignatureForm>> = {
  RS256: { keyType: 'rsa', hash: 'sha256' },
  RS384: { keyType: 'rsa', hash: 'sha384' },
  RS512: { keyType: 'rsa', hash: 'sha512' },
  PS256: { keyType: 'rsa', hash: 'sha256', isPss: true },
  PS384: { keyType: 'rsa', hash: 'sha384', isPss: true },
  PS512: { keyType: 'rsa', hash: 'sha512', isPss: true },
  ES256: { keyType: 'ec', hash: 'sha256', curve: 'prime256v1', bytes: 64 },
  ES384: { keyType: 'ec', hash: 'sha384', curve: 'secp384r1', bytes: 96 },
  ES512: { keyType: 'ec', hash: 'sha512', curve: 'secp521r1', bytes: 132 },
  EdDSA: { keyType: 'ed25519', hash: null, bytes: 64 },
};

/**
 * What `verify` of Node.js is asked about a signature. The key stands by itself where it can: with options beside it
 * Node.js 24 takes half as long again for each check.
 */
export interface SignatureCheck {
  readonly hash: string | null;
  readonly key: KeyObject | VerifyKeyObjectInput;
  readonly signature: Buffer;
}

/** A signature, and what it is said to have signed. */
export type Signed = Pick<SignedToken, 'signingInput' | 'signature'>;

/**
 * What `verify` has to be asked to tell whether the key made the token's signature by this algorithm, which is the
 * key's, whatever the token says. `null` where nothing has to be asked, for it did not. A key of another kind verifies
 * nothing: given a secret, or such a key, `verify` would throw or choose another algorithm by the key. ECDSA signatures
 * are two numbers of the curve's length (RFC 7518 §3.4) and no DER, RSA ones have the length of the modulus (RFC 8017
 * §8.1.2, §8.2.2); the salt of PSS is as long as the hash (RFC 7518 §3.5).
 */
export function signatureCheck({ signature }: Signed, key: KeyObject, algorithm: Algorithm): SignatureCheck | null {
  const { keyType, hash, curve, isPss, bytes } = signatureForms[algorithm];
  if (key.type !== 'public' || key.asymmetricKeyType !== keyType) return null;
  const { namedCurve, modulusLength = 0 } = detailsOf(key);
  if (signature.length !== (bytes ?? Math.ceil(modulusLength / 8)) || namedCurve !== curve) return null;
  if (isPss === true) {
    const padding = constants.RSA_PKCS1_PSS_PADDING;
    return { hash, key: { key, padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }, signature };
  }
  return { hash, key, signature: keyType === 'ec' ? ecdsaSequence(signature) : signature };
}

/** The same, asked at once. */
export function verifySignature(signed: Signed, key: KeyObject, algorithm: Algorithm = 'RS256'): boolean {
  const check = signatureCheck(signed, key, algorithm);
  return check !== null && verify(check.hash, signed.signingInput, check.key, check.signature);
}

/** Above it, and above the usual exponent, RSA takes more than 150 µs: it grows with the square of the bits. */
const fastModulusBits = 4096;
const usualExponent = 65_537n;

/**
 * Tells whether checking a signature takes more than 150 µs, right or wrong: so much that a stranger who sends wrong
 * ones would hold up everybody else, were it done at once. docs/issuers.md has what each takes; up to there a trip to
 * the thread pool costs as much as the check.
 */
export function isSlowToVerify(key: KeyObject, algorithm: Algorithm): boolean {
  if (algorithm === 'ES384' || algorithm === 'ES512') return true;
  const { modulusLength = 0, publicExponent = usualExponent } = detailsOf(key);
  return modulusLength > fastModulusBits || publicExponent > usualExponent;
}

/** Node.js 24 works them out each time. */
const knownDetails = new WeakMap<KeyObject, AsymmetricKeyDetails>();

function detailsOf(key: KeyObject): AsymmetricKeyDetails {
  const known = knownDetails.get(key);
  if (known !== undefined) return known;
  const details = key.asymmetricKeyDetails ?? {};
  knownDetails.set(key, details);
  return details;
}
