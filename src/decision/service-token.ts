import { isCanonicalBase64Url } from './base64url.js';
import { denial, type Denial, type Reason } from './denial.js';
import { isKeyId } from './key-ids.js';
import { accept, refuse, type Result } from './result.js';
import { defaultMaxDepth, parseStrictJson, type JsonObject } from './strict-json.js';

/** Longest token that is looked at: 8 KiB, half of the default header section. */
export const maxTokenBytes = 8192;

/** A token whose form is right. Nothing in it has been verified. */
export interface ServiceToken {
  readonly keyId: string;
  /** Header and payload as they came, with the dot between: the bytes that were signed. */
  readonly signingInput: Buffer;
  readonly signature: Buffer;
  /** Base64url of the claims, not decoded. Only `readPayload` opens it, and only after the signature held. */
  readonly encodedPayload: string;
}

/** `crit`, `b64`, `jku`, `jwk`, `x5c`, `x5u` and kin change how a token is read or bring a key along: none is allowed. */
const headerMembers: ReadonlySet<string> = new Set(['alg', 'kid', 'typ']);

/**
 * Takes a compact JWS (RFC 7515 §7.1) apart: three non-empty canonical base64url parts, at most 8 KiB, and a header of
 * `alg` RS256, `kid` and perhaps `typ`. A refusal is `token_malformed`, `algorithm_refused` or `key_id_refused`. The
 * payload is judged by its characters alone.
 */
export function parseServiceToken(token: string): Result<ServiceToken, Denial> {
  if (token.length > maxTokenBytes) return refuse(denial('token_malformed'));
  // Found by position: splitting a token of 8,192 dots would make 8,193 strings of it.
  const first = token.indexOf('.');
  const second = token.indexOf('.', first + 1);
  if (second < 0) return refuse(denial('token_malformed')); // so too where there is no first
  const encodedHeader = token.slice(0, first);
  const encodedPayload = token.slice(first + 1, second);
  const encodedSignature = token.slice(second + 1); // a third dot is no base64url
  if (![encodedHeader, encodedPayload, encodedSignature].every(isCanonicalBase64Url)) return refuse(denial('token_malformed'));

  const header = parseStrictJson(Buffer.from(encodedHeader, 'base64url'), { maxDepth: defaultMaxDepth });
  if (!header.ok) return refuse(denial('token_malformed'));
  const keyId = readHeader(header.value);
  if (!keyId.ok) return refuse(denial(keyId.error));
  return accept({
    keyId: keyId.value,
    signingInput: Buffer.from(token.slice(0, second), 'latin1'),
    signature: Buffer.from(encodedSignature, 'base64url'),
    encodedPayload,
  });
}

/** Opens the claims of a token whose signature held: a duplicate-free JSON object, else `token_malformed`. */
export function readPayload(token: ServiceToken): Result<JsonObject, Denial> {
  const payload = parseStrictJson(Buffer.from(token.encodedPayload, 'base64url'), { maxDepth: defaultMaxDepth });
  return payload.ok ? payload : refuse(denial('token_malformed'));
}

/** The `kid`, where the header is one that we accept. */
function readHeader(header: JsonObject): Result<string, Reason> {
  const { alg, kid, typ } = header;
  if (alg !== 'RS256') return refuse('algorithm_refused');
  if (!isKeyId(kid)) return refuse('key_id_refused');
  if (typ !== undefined && typ !== 'JWT') return refuse('token_malformed');
  if (!Object.keys(header).every((name) => headerMembers.has(name))) return refuse('token_malformed');
  return accept(kid);
}
