/** Proofs of possession of a key (DPoP, RFC 9449 §4). Pure. */
import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { denial, type Denial, type Reason } from '../denial.js';
import { isCanonicalBase64Url } from '../../lib/base64url.js';
import { memoize } from '../../lib/memo.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { isJsonObject, parseStrictJson, type JsonObject } from '../../lib/strict-json.js';
import { isSlowToVerify, verifySignature } from '../token/compact-jws.js';
import { checkPublicJwk } from '../token/jwk.js';
import type { Algorithm } from '../token/profiles.js';
import { isNumericDate, isTokenId } from '../token/service-token.js';
import type { Proof } from './confirmation.js';
import { thumbprintOf } from './thumbprint.js';
import { namesTarget } from './target-uri.js';

/** What proofs are held to. */
export interface ProofRules {
  /** Under which clients reach this service, as `URL.origin` writes them. */
  readonly origins: ReadonlySet<string>;
  /** How old a proof may be. */
  readonly maxAgeMs: number;
  /** How far the client's clock may be from ours. */
  readonly clockSkewMs: number;
}

/** What has to be proved, and for what. */
interface ExpectedProof {
  readonly method: string;
  /** What precedes the query in the request target, as it was judged. */
  readonly path: string;
  /** The access token that came with the proof. */
  readonly token: string;
  /** `jkt`: the thumbprint of the key that the token is bound to. */
  readonly key: string;
  readonly nowMs: number;
  /** Whether a nonce is one of ours and not too old; `null` where none is asked for. */
  readonly isNonce: ((nonce: string) => boolean) | null;
}

/** RFC 9449 §4.2. */
const proofType = 'dpop+jwt';

/**
 * The names by which proofs say how they are signed (RFC 7518 §3.1, RFC 9864 §2.2), and what each is: all asymmetric,
 * and none that takes longer to verify than it takes to decide on a request.
 */
const algorithms: ReadonlyMap<string, Algorithm> = new Map([
  ['ES256', 'ES256'],
  ['Ed25519', 'EdDSA'],
  ['EdDSA', 'EdDSA'],
  ['PS256', 'PS256'],
  ['RS256', 'RS256'],
]);

/** The same, for the challenge (RFC 9449 §7.1). */
export const proofAlgorithms = [...algorithms.keys()].join(' ');

/** Others say how the proof is to be read, or what nobody here would look at. */
const knownMembers: ReadonlySet<string> = new Set(['typ', 'alg', 'jwk', 'kid']);

/** A proof is a kilobyte with the largest key. */
const maxProofLength = 4_096;

/** A key that signs proofs. */
interface ProofKey {
  readonly algorithm: Algorithm;
  /** RFC 7638, SHA-256, base64url. */
  readonly thumbprint: string;
  /** `null` where it is none, or one that is slow to verify with. Made when it is asked for. */
  readonly publicKey: () => KeyObject | null;
}

/** Each client has one key, and one header for all of its proofs; about a kilobyte each. */
const headerMemory = { maxNames: 1_024, maxLength: 1_024, areParts: true };

const keyOfHeader = memoize(readHeader, headerMemory);

/**
 * Holds a proof to RFC 9449 §4.3: its form and key, its signature, and what it is for. A refusal is `proof_malformed`;
 * `proof_mismatch` where it is for another key, token or request; `proof_untimely`; `proof_nonce`. Whether it was used
 * before is still to be asked: its id is the `jti`.
 */
export function verifyDpopProof(encoded: string, request: ExpectedProof, rules: ProofRules): Result<Proof, Denial> {
  const parts = partsOf(encoded);
  const key = parts === null ? null : keyOfHeader(parts.header);
  if (parts === null || key === null) return refused('proof_malformed');
  // A proof with another key, such as a thief's own, is refused before its signature is checked.
  if (key.thumbprint !== request.key) return refused('proof_mismatch');
  const publicKey = key.publicKey();
  if (publicKey === null || !verifySignature(parts, publicKey, key.algorithm)) return refused('proof_malformed');
  const claims = objectOf(parts.payload);
  return claims === null ? refused('proof_malformed') : readClaims(claims, request, rules);
}

function readClaims(
  { jti, htm, htu, iat, ath, nonce }: JsonObject,
  { method, path, token, nowMs, isNonce }: ExpectedProof,
  { origins, maxAgeMs, clockSkewMs }: ProofRules,
): Result<Proof, Denial> {
  if (!isTokenId(jti) || !isNumericDate(iat) || typeof htu !== 'string') return refused('proof_malformed');
  if (htm !== method || !namesTarget(htu, path, origins) || ath !== hash('sha256', token, 'base64url')) {
    return refused('proof_mismatch');
  }
  const endsAtMs = iat * 1_000 + maxAgeMs + clockSkewMs;
  if (iat * 1_000 > nowMs + clockSkewMs || nowMs >= endsAtMs) return refused('proof_untimely');
  if (isNonce !== null && !(typeof nonce === 'string' && isNonce(nonce))) return refused('proof_nonce');
  return accept({ id: jti, issuedAtS: iat, endsAtMs });
}

interface Parts {
  readonly header: string;
  readonly payload: string;
  readonly signingInput: Buffer;
  readonly signature: Buffer;
}

/** A compact JWS (RFC 7515 §7.1) taken apart; `null` where it is none. */
function partsOf(encoded: string): Parts | null {
  if (encoded.length > maxProofLength) return null;
  const first = encoded.indexOf('.');
  const second = encoded.indexOf('.', first + 1);
  if (second < 0) return null; // so too where there is no first
  const signature = encoded.slice(second + 1); // a third dot is no base64url
  const payload = encoded.slice(first + 1, second);
  if (!isCanonicalBase64Url(signature) || !isCanonicalBase64Url(payload)) return null;
  return {
    header: encoded.slice(0, first),
    payload,
    signingInput: Buffer.from(encoded.slice(0, second), 'latin1'),
    signature: Buffer.from(signature, 'base64url'),
  };
}

function readHeader(encoded: string): ProofKey | null {
  const header = isCanonicalBase64Url(encoded) ? objectOf(encoded) : null;
  if (header === null || !Object.keys(header).every((name) => knownMembers.has(name))) return null;
  const { typ, alg, jwk } = header;
  const algorithm = typeof alg === 'string' ? algorithms.get(alg) : undefined;
  if (typ !== proofType || algorithm === undefined || !isJsonObject(jwk)) return null;
  const checked = checkPublicJwk(withOurName(jwk), { algorithms: new Set([algorithm]), use: 'sig' });
  if (!checked.ok) return null;
  const { publicKey } = checked.value;
  let key: KeyObject | null | undefined;
  return {
    algorithm,
    thumbprint: thumbprintOf(publicKey),
    publicKey: () => (key ??= importKey(publicKey, algorithm)),
  };
}

/**
 * Puts our name of the algorithm in the place of the key's own, where it has one: a key may use any name of the list.
 */
function withOurName(jwk: JsonObject): JsonObject {
  const { alg } = jwk;
  return typeof alg === 'string' ? { ...jwk, alg: algorithms.get(alg) ?? alg } : jwk;
}

function importKey(jwk: Readonly<Record<string, string>>, algorithm: Algorithm): KeyObject | null {
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    return isSlowToVerify(key, algorithm) ? null : key;
  } catch {
    // A point that is not on its curve.
    return null;
  }
}

function objectOf(encoded: string): JsonObject | null {
  const read = parseStrictJson(Buffer.from(encoded, 'base64url'), { maxDepth: maxProofDepth });
  return read.ok ? read.value : null;
}

/** The header, and the key in it. */
const maxProofDepth = 4;

function refused(reason: Reason): Result<never, Denial> {
  return refuse(denial(reason));
}
