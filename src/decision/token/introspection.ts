/** Tokens that only their issuer can read: which they are, and what its response about one has to say (RFC 7662). */
import { boundKey } from '../binding/confirmation.js';
import { denial, type Denial, type Reason } from '../denial.js';
import type { IssuerRules } from '../route/policy.js';
import { refuse, type Result } from '../../lib/result.js';
import type { JsonObject, JsonValue } from '../../lib/strict-json.js';
import { isVisibleAscii } from '../../lib/text.js';
import { maxSubjectLength } from './principal.js';
import { namesAudience, permissionsOf, unmetRequirements, valueAt, withConfirmation } from './profile-claims.js';
import { isTokenId, readTimes, type ServiceClaims } from './service-token.js';

/** What of an issuer's rules and settings a response is held to. */
export interface IntrospectionRules extends Pick<
  IssuerRules,
  'expectedIssuer' | 'audiences' | 'claims' | 'clockSkewS' | 'maxLifetimeS' | 'binding'
> {
  /** Whether a response has to name an audience; one that does has to name ours. */
  readonly requiresAudience: boolean;
  /** Whether a response has to name a token id. */
  readonly requiresTokenId: boolean;
}

/**
 * Whether only its issuer can read a token. A token of three parts, the first of which could be taken for the header of
 * a JWT, is not opaque, however broken it is: a token is judged by its signature or by its issuer's word, never by
 * both.
 */
export function isOpaque(token: string): boolean {
  const first = token.indexOf('.');
  const second = token.indexOf('.', first + 1);
  if (first < 0 || second < 0 || token.includes('.', second + 1)) return true;
  return !/^\s*\{/.test(Buffer.from(token.slice(0, first), 'base64').toString('latin1'));
}

/**
 * Holds a response with `active: true` to its issuer's rules (RFC 7662 §2.2). `exp` has to be there: without it nobody
 * could say how long the token is worth anything.
 */
export function verifyIntrospection(
  response: JsonObject,
  rules: IntrospectionRules,
  nowMs: number,
): Result<ServiceClaims, Denial> {
  const mismatch = findMismatch(response, rules);
  if (mismatch !== null) return refuse(denial(mismatch));
  const times = readTimes(response, rules, nowMs);
  if (!times.ok) return times;
  const { jti } = response;
  const subject = valueAt(response, rules.claims.subject);
  const permissions = permissionsOf(response, rules.claims.permissions);
  if (!isVisibleAscii(subject, maxSubjectLength) || permissions === null) return refuse(denial('claim_malformed'));
  if (jti === undefined ? rules.requiresTokenId : !isTokenId(jti)) return refuse(denial('claim_malformed'));
  const claims = { subject, permissions, tokenId: typeof jti === 'string' ? jti : null, ...times.value };
  return withConfirmation(claims, response['cnf'], rules.binding);
}

/** What kind of token it is, by whom and for whom. */
function findMismatch(response: JsonObject, rules: IntrospectionRules): Reason | null {
  const { iss, aud, token_type: tokenType, cnf } = response;
  if (iss !== undefined && iss !== rules.expectedIssuer) return 'issuer_mismatch';
  if (aud === undefined ? rules.requiresAudience : !namesAudience(aud, rules.audiences)) return 'audience_mismatch';
  if (tokenType !== undefined && !isTokenType(tokenType, cnf)) return 'token_type_mismatch';
  return unmetRequirements(response, rules.claims).length > 0 ? 'claim_mismatch' : null;
}

/** `DPoP` (RFC 9449 §6.2) says that the token is bound to a key, which `cnf` then has to name. */
function isTokenType(type: JsonValue, cnf: JsonValue | undefined): boolean {
  if (typeof type !== 'string') return false;
  const name = type.toLowerCase();
  return name === 'bearer' || (name === 'dpop' && boundKey(cnf) !== null);
}
