import { parseCompactJws, type SignedToken } from './compact-jws.js';
import type { Denial, Reason } from '../denial.js';
import { isKeyId } from './kid-filter.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { JsonObject } from '../../lib/strict-json.js';

/**
 * `crit`, `b64`, `jku`, `jwk`, `x5c`, `x5u` and kin change how a token is read or bring a key along: none is allowed.
 */
export const serviceHeaderMembers: ReadonlySet<string> = new Set(['alg', 'kid', 'typ']);

/** The only signature algorithm, for service tokens and sessions alike. */
export const tokenAlgorithm = 'RS256';

/** The only `typ`, where a service token has one. */
export const tokenType = 'JWT';

/**
 * Takes a service token apart: a compact JWS with a header of `alg` RS256, `kid` and perhaps `typ`. A refusal is
 * `token_malformed`, `algorithm_refused` or `key_id_refused`.
 */
export function parseServiceToken(token: string): Result<SignedToken, Denial> {
  return parseCompactJws(token, readHeader);
}

/** The `kid`, where the header is one that we accept. */
function readHeader(header: JsonObject): Result<string, Reason> {
  const { alg, kid, typ } = header;
  if (alg !== tokenAlgorithm) return refuse('algorithm_refused');
  if (!isKeyId(kid)) return refuse('key_id_refused');
  if (typ !== undefined && typ !== tokenType) return refuse('token_malformed');
  if (!Object.keys(header).every((name) => serviceHeaderMembers.has(name))) return refuse('token_malformed');
  return accept(kid);
}
