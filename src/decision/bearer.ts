import { maxTokenBytes } from './compact-jws.js';
import { denial, type Denial } from './denial.js';
import { accept, refuse, type Result } from './result.js';

const scheme = /^bearer /i;

/** RFC 6750 §2.1 `b64token`. A comma is no part of it, so two fields that something joined into one are refused. */
const token = /^[A-Za-z0-9._~+/-]+=*$/;

/**
 * Reads the token of an `Authorization` field: scheme `Bearer` in any case (RFC 9110 §11.1), exactly one space, then
 * 1 byte to 8 KiB of token characters. No field is `credential_missing`; anything else, other schemes too, is
 * `credential_malformed`.
 */
export function readBearer(authorization: string | null): Result<string, Denial> {
  if (authorization === null) return refuse(denial('credential_missing'));
  if (!scheme.test(authorization)) return refuse(denial('credential_malformed'));
  const value = authorization.slice('bearer '.length);
  if (value.length > maxTokenBytes || !token.test(value)) return refuse(denial('credential_malformed'));
  return accept(value);
}
