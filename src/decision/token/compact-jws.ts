import { isCanonicalBase64Url } from '../../lib/base64url.js';
import { denial, type Denial, type Reason } from '../denial.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { defaultMaxDepth, parseStrictJson, type JsonObject } from '../../lib/strict-json.js';
import { verify, type KeyObject } from 'node:crypto';

/** Longest token that is looked at: 8 KiB, half of the default header section. */
export const maxTokenBytes = 8192;

/** A token whose form is right. Nothing in it has been verified. */
export interface SignedToken {
  readonly keyId: string;
  /** Header and payload as they came, with the dot between: the bytes that were signed. */
  readonly signingInput: Buffer;
  readonly signature: Buffer;
  /** Base64url of the claims, not decoded. Only `readPayload` opens it, and only after the signature held. */
  readonly encodedPayload: string;
}

/**
 * Takes a compact JWS (RFC 7515 §7.1) apart: three non-empty canonical base64url parts, at most 8 KiB. `readHeader`
 * answers the `kid` of a header that is right, or why it is not. The payload is judged by its characters alone.
 */
export function parseCompactJws(
  token: string,
  readHeader: (header: JsonObject) => Result<string, Reason>,
): Result<SignedToken, Denial> {
  if (token.length > maxTokenBytes) return refuse(denial('token_malformed'));
  // Found by position: splitting a token of 8,192 dots would make 8,193 strings of it.
  const first = token.indexOf('.');
  const second = token.indexOf('.', first + 1);
  if (second < 0) return refuse(denial('token_malformed')); // so too where there is no first
  const encodedHeader = token.slice(0, first);
  const encodedPayload = token.slice(first + 1, second);
  const encodedSignature = token.slice(second + 1); // a third dot is no base64url
  if (![encodedHeader, encodedPayload, encodedSignature].every(isCanonicalBase64Url)) {
    return refuse(denial('token_malformed'));
  }

  const header = decodeObject(encodedHeader);
  if (header === null) return refuse(denial('token_malformed'));
  const keyId = readHeader(header);
  if (!keyId.ok) return refuse(denial(keyId.error));
  return accept({
    keyId: keyId.value,
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

/** The header of what may be a token, for its form only; `null` where there is none to be read. */
export function peekHeader(token: string): JsonObject | null {
  const end = token.indexOf('.');
  if (end < 0 || token.length > maxTokenBytes) return null;
  const encoded = token.slice(0, end);
  return isCanonicalBase64Url(encoded) ? decodeObject(encoded) : null;
}

function decodeObject(encoded: string): JsonObject | null {
  const object = parseStrictJson(Buffer.from(encoded, 'base64url'), { maxDepth: defaultMaxDepth });
  return object.ok ? object.value : null;
}

/**
 * Tells whether the key made the token's signature: RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 §3.3), whatever the token
 * says. Any key but a public RSA one verifies nothing: given a secret, or a key of another kind, `verify` would throw
 * or choose another algorithm by the key. Synchronous on purpose: 23 µs, where a trip to the thread pool costs 100.
 */
export function verifySignature(token: Pick<SignedToken, 'signingInput' | 'signature'>, key: KeyObject): boolean {
  if (key.type !== 'public' || key.asymmetricKeyType !== 'rsa') return false;
  return verify('sha256', token.signingInput, key, token.signature);
}
