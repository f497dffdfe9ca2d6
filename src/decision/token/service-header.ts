/** What the header of a service token has to say, by the profile of its issuer. */
import type { Reason } from '../denial.js';
import type { IssuerRules } from '../route/policy.js';
import { acceptsKeyId, isKeyId } from './kid-filter.js';
import { absentType, type Algorithm } from './profiles.js';
import type { JsonObject } from '../../lib/strict-json.js';

/** The part of an issuer's rules that a header is held to. */
export type TokenHeaderRules = Pick<IssuerRules, 'profile' | 'algorithms' | 'headerTypes' | 'keyIds'>;

/** Members that every profile takes. Of the Core, Kubernetes and SPIFFE (JWT-SVID §2) no other may be there. */
export const knownHeaderMembers: ReadonlySet<string> = new Set(['alg', 'kid', 'typ']);

/**
 * Members that change how a token is read or bring a key along: none is allowed, whatever the profile. Others are
 * ignored with `profile: oauth`, as RFC 7515 §4 has it.
 */
const refusedHeaderMembers: ReadonlySet<string> = new Set(['b64', 'crit', 'enc', 'jku', 'jwk', 'x5c', 'x5u', 'zip']);

/** The only `typ` of the Core's service tokens, where one has any. */
const coreTokenType = 'JWT';

/** Why the header is none for tokens of this issuer, or `null`. Nothing in it has been verified. */
export function headerProblem(header: JsonObject, rules: TokenHeaderRules): Reason | null {
  const { alg, kid } = header;
  // The list has nothing else in it, so that neither `none` nor HS256 is ever found.
  if (!rules.algorithms.has(alg as Algorithm)) return 'algorithm_refused';
  if (!isKeyId(kid)) return 'key_id_refused';
  if (!hasAcceptedType(header, rules) || Object.keys(header).some((name) => isRefusedMember(name, rules))) {
    return 'token_malformed';
  }
  return acceptsKeyId(rules.keyIds, kid) ? null : 'key_id_refused';
}

/** Whether `typ` is one that counts: media types have no case and may leave out `application/` (RFC 7515 §4.1.9). */
export function hasAcceptedType({ typ }: JsonObject, { profile, headerTypes }: TokenHeaderRules): boolean {
  if (profile === 'core') return typ === undefined || typ === coreTokenType;
  if (typ === undefined) return headerTypes.has(absentType);
  if (typeof typ !== 'string') return false;
  const type = mediaType(typ);
  return type !== absentType && headerTypes.has(type);
}

/** A `typ` as it is compared. */
export function mediaType(typ: string): string {
  return typ.toLowerCase().replace(/^application\//, '');
}

/** Whether no token of this issuer may have such a member. */
export function isRefusedMember(name: string, { profile }: Pick<TokenHeaderRules, 'profile'>): boolean {
  return profile === 'oauth' ? refusedHeaderMembers.has(name) : !knownHeaderMembers.has(name);
}

/** How far a header came before it was refused. */
const progress: readonly Reason[] = ['algorithm_refused', 'token_malformed', 'key_id_refused'];

/** Why a header is none for any of the issuers: by those that its key id is for, and of them the nearest. */
export function nearestProblem(header: JsonObject, issuers: readonly TokenHeaderRules[]): Reason {
  const { kid } = header;
  const meant = isKeyId(kid) ? issuers.filter(({ keyIds }) => acceptsKeyId(keyIds, kid)) : [];
  const problems = (meant.length === 0 ? issuers : meant).flatMap((rules) => headerProblem(header, rules) ?? []);
  return problems.reduce<Reason>(
    (best, next) => (progress.indexOf(next) > progress.indexOf(best) ? next : best),
    problems[0] ?? 'key_id_refused',
  );
}
