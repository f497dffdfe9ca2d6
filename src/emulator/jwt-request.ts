import { CompactSign } from 'jose';
import type { SigningKey } from './signing-keys.js';

/** What `POST /recipe/jwt` asks for. */
export interface JwtRequest {
  /** In upper case. */
  readonly algorithm: string;
  readonly jwksDomain: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Seconds, more than 0. */
  readonly validity: number;
  readonly useStaticSigningKey: boolean;
}

/** Why a call was refused, in the Core's words. */
export interface Refused {
  readonly refused: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Parses a JSON object. */
export function parseFields(body: Buffer): Fields | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Reads the fields in the Core's order, so that the same mistake gets the same text. */
export function readJwtRequest(fields: Fields): JwtRequest | Refused {
  const { algorithm, jwksDomain, payload, validity, useStaticSigningKey = true } = fields;
  if (typeof algorithm !== 'string') return invalid('algorithm');
  if (typeof jwksDomain !== 'string') return invalid('jwksDomain');
  if (!isObject(payload)) return invalid('payload');
  if (typeof validity !== 'number') return invalid('validity');
  const seconds = Math.trunc(validity);
  if (!Number.isSafeInteger(seconds)) return invalid('validity');
  // The Core says "or equal" and refuses 0 all the same.
  if (seconds <= 0) return { refused: 'validity must be greater than or equal to 0' };
  if (typeof useStaticSigningKey !== 'boolean') return invalid('useStaticSigningKey');
  return { algorithm: algorithm.toUpperCase(), jwksDomain, payload, validity: seconds, useStaticSigningKey };
}

/** Signs the payload. The caller's `iss`, `iat` and `exp` win over those of the request, as from Core 6.0 on. */
export function signJwt(request: JwtRequest, key: SigningKey, nowMs: number): Promise<string> {
  const issuedAt = Math.floor(nowMs / 1000);
  const claims = { iss: request.jwksDomain, iat: issuedAt, exp: issuedAt + request.validity, ...request.payload };
  return new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: key.keyId })
    .sign(key.privateKey);
}

function invalid(field: string): Refused {
  return { refused: `Field name '${field}' is invalid in JSON input` };
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
