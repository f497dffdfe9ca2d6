/** Says of an opaque token whom it was shown to, and what became of that. Never the token. */
import type { Reason } from '../../decision/denial.js';
import { isOpaque } from '../../decision/token/introspection.js';
import { subjectOf } from '../../decision/token/profile-claims.js';
import type { JsonObject } from '../../lib/strict-json.js';
import type { ActiveIssuer } from '../../proxy/auth/active-config.js';
import { askedIssuer } from '../../proxy/auth/credentials/opaque-token.js';
import type { Explained } from './explanation.js';
import { audienceWords, issuerWords, malformedWords, mismatchWords } from './profile-words.js';
import { lifeWords, timesWords, tokenOf, type TokenReason } from './token.js';
import { shown } from './token-reading.js';

type IntrospectionReason = Extract<Reason, 'token_inactive' | 'introspection_unavailable' | 'introspection_limited'>;

export function explainIntrospection(reason: IntrospectionReason, { activeConfig }: Explained): readonly string[] {
  const asked = activeConfig.issuers.filter(({ introspection }) => introspection !== undefined);
  const names = asked.map(({ rules }) => rules.name).join(', ');
  switch (reason) {
    case 'token_inactive':
      return [`an opaque token, of which issuer ${names} says that it is not active: expired, revoked or never issued`];
    case 'introspection_unavailable': {
      const problems = asked.flatMap(({ rules, introspection }) => {
        const problem = introspection?.source.state().problem ?? null;
        return problem === null ? [] : [`issuer ${rules.name} could not be asked: ${problem}`];
      });
      return problems.length === 0 ? [`issuer ${names} could not be asked about an opaque token`] : problems;
    }
    case 'introspection_limited':
      return [
        `issuer ${names} was not asked: too many unknown tokens came; introspection.unknown_per_second and unknown_per_address say how many`,
      ];
  }
}

/**
 * Says what of an issuer's response about an opaque token is not as it has to be, or why nobody was asked about it;
 * `null` where the token is none.
 */
export function explainRefusedResponse(reason: TokenReason, explained: Explained): readonly string[] | null {
  const token = tokenOf(explained);
  if (token === null || !isOpaque(token)) return null;
  const { issuers } = explained.activeConfig;
  const issuer = askedIssuer(token, issuers);
  const response = issuer?.introspection.source.lastClaims(token) ?? null;
  if (issuer === null) return unaskedWords(reason, issuers);
  if (response === null) return null;
  return [...activeWords(explained), ...responseWords(reason, response, explained, issuer)];
}

/** Says of an opaque token, where its issuer does, that it is active; nothing of any other token. */
export function activeWords(explained: Explained): readonly string[] {
  const token = tokenOf(explained);
  const issuer = token === null ? null : askedIssuer(token, explained.activeConfig.issuers);
  if (token === null || (issuer?.introspection.source.lastClaims(token) ?? null) === null) return [];
  return [`an opaque token, of which issuer ${issuer?.rules.name ?? ''} says that it is active`];
}

function unaskedWords(reason: TokenReason, issuers: readonly ActiveIssuer[]): readonly string[] | null {
  const prefixes = issuers.flatMap(({ introspection }) => introspection?.rules.tokenPrefix ?? []);
  if (reason !== 'token_malformed' || prefixes.length === 0) return null;
  const listed = prefixes.map((prefix) => JSON.stringify(prefix)).join(', ');
  return [`it is no JWT, and does not begin as opaque tokens of an issuer do (token_prefix): ${listed}`];
}

function responseWords(
  reason: TokenReason,
  response: JsonObject,
  { nowMs }: Explained,
  { rules, introspection }: ActiveIssuer,
): readonly string[] {
  switch (reason) {
    case 'issuer_mismatch':
      return [issuerWords(response, rules)];
    case 'audience_mismatch':
      return [
        audienceWords(response, rules),
        ...(response['aud'] === undefined ? ['where the issuer never says it: introspection.require_aud'] : []),
      ];
    case 'token_type_mismatch':
      return [`token_type is ${shown(response['token_type'])}; accepted: "Bearer", "DPoP" beside cnf.jkt, or none`];
    case 'claim_mismatch':
      return mismatchWords(response, rules);
    case 'claim_malformed':
      return [
        ...malformedWords(response, {}, rules),
        ...(subjectOf(response, rules) === null && typeof response['client_id'] === 'string'
          ? [`client_id is ${shown(response['client_id'])}: claims: { subject: client_id } names callers by it`]
          : []),
        ...(response['jti'] === undefined && introspection?.rules.requiresTokenId === true
          ? ['jti is missing; introspection.has_jti asks for one']
          : []),
      ];
    case 'token_expired':
    case 'token_not_yet_valid':
    case 'lifetime_too_long':
      return [timesWords(response, nowMs), lifeWords(rules)];
    default:
      return [];
  }
}
