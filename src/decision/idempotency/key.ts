import type { KeyRequirement } from '../route/policy.js';
import { denial, type Denial } from '../denial.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** Longest key, unquoted. */
export const maxKeyCharacters = 255;

const quote = 0x22;
const backslash = 0x5c;

/**
 * Reads the value of `Idempotency-Key`: a Structured-Field string without parameters (RFC 8941 §3.3.3) or a bare token
 * of `[A-Za-z0-9._:/+=~@-]`; `"abc"` and `abc` are one key.
 *
 * @param value the header as received, `null` where the request has none.
 * @param isHttp2 whether a malformed header would have been dropped before.
 * @returns the unquoted key of 1 to 255 characters, `null` where there is none and none is needed, or
 *   `idempotency_key_missing` or `idempotency_key_malformed`.
 */
export function readIdempotencyKey(
  value: string | null,
  mode: KeyRequirement,
  isHttp2: boolean,
): Result<string | null, Denial> {
  if (value === null) {
    const isNeeded = mode === 'required' || (mode === 'optional' && isHttp2);
    return isNeeded ? refuse(denial('idempotency_key_missing')) : accept(null);
  }
  const key = value.startsWith('"') ? unquote(value) : bare(value);
  if (key === null || key.length === 0 || key.length > maxKeyCharacters) {
    return refuse(denial('idempotency_key_malformed'));
  }
  return accept(key);
}

function bare(value: string): string | null {
  return /^[A-Za-z0-9._:/+=~@-]*$/.test(value) ? value : null;
}

/** Only `\"` and `\\` are escapes; only 0x20 to 0x7e may stand in a string; nothing may follow it. */
function unquote(value: string): string | null {
  let key = '';
  let index = 1;
  for (; index < value.length; index += 1) {
    let code = value.charCodeAt(index);
    if (code === quote) break;
    if (code === backslash) {
      index += 1;
      code = value.charCodeAt(index);
      if (code !== quote && code !== backslash) return null;
    } else if (code < 0x20 || code > 0x7e) {
      return null;
    }
    key += String.fromCharCode(code);
  }
  return index === value.length - 1 ? key : null;
}
