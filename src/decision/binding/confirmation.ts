/** What a token is bound to (`cnf`, RFC 7800 §3), and what its issuer's tokens have to be. Pure. */
import type { Reason } from '../denial.js';
import { isCanonicalBase64Url } from '../../lib/base64url.js';
import { isJsonObject, type JsonValue } from '../../lib/strict-json.js';

/**
 * What becomes of `cnf` of one issuer's tokens. `none`: it says nothing, and every token counts for whoever sends it.
 * `accept`: what it says is asked for. `require`: a token without it is refused.
 */
export const bindingNames = ['none', 'accept', 'require'] as const;

export type Binding = (typeof bindingNames)[number];

/** What has to be proved before a token counts: all that is not `null`, and one is not. */
export interface Confirmation {
  /** `x5t#S256` (RFC 8705 §3.1): SHA-256 of the DER of the certificate of the caller, base64url. */
  readonly certificate: string | null;
  /** `jkt` (RFC 9449 §6.1): SHA-256 thumbprint (RFC 7638) of the key of the caller, base64url. */
  readonly key: string | null;
}

/** A proof of a key, of whatever kind, that holds. Whether it was used before is still to be asked. */
export interface Proof {
  /** Unique among the proofs of one key: visible ASCII, 1 to 256 characters. */
  readonly id: string;
  /** Seconds since the epoch. */
  readonly issuedAtS: number;
  /** Milliseconds since the epoch: from then on it is refused for its age. */
  readonly endsAtMs: number;
}

/** Members of `cnf` that are known here. What another one asks for nobody would check. */
const members: ReadonlySet<string> = new Set(['x5t#S256', 'jkt']);

/** SHA-256 in base64url without padding. */
const digestLength = 43;

/** Reads `cnf`; `null` where it has another member, or none, or one that is no digest. */
export function readConfirmation(cnf: JsonValue): Confirmation | null {
  if (!isJsonObject(cnf)) return null;
  const names = Object.keys(cnf);
  if (names.length === 0 || !names.every((name) => members.has(name))) return null;
  const { jkt = null, ['x5t#S256']: thumbprint = null } = cnf;
  if (!names.every((name) => isDigest(cnf[name]))) return null;
  return {
    certificate: typeof thumbprint === 'string' ? thumbprint : null,
    key: typeof jkt === 'string' ? jkt : null,
  };
}

/** The key that `cnf` names, whatever else it says; `null` where it names none. */
export function boundKey(cnf: JsonValue | undefined): string | null {
  const key = isJsonObject(cnf) ? cnf['jkt'] : undefined;
  return isDigest(key) ? key : null;
}

/**
 * What has to be proved of a token with this `cnf`: `null` where nothing has to be, or why the token is refused.
 *
 * @param cnf `undefined` where the token has none.
 */
export function requiredProof(cnf: JsonValue | undefined, binding: Binding): Confirmation | Reason | null {
  if (binding === 'none') return null;
  if (cnf === undefined) return binding === 'require' ? 'binding_missing' : null;
  return readConfirmation(cnf) ?? 'binding_unknown';
}

function isDigest(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value.length === digestLength && isCanonicalBase64Url(value);
}
