/** Says what is wrong with a token that an issuer with another profile than the Core's made. */
import { shown } from './token-reading.js';
import type { IssuerRules } from '../../decision/route/policy.js';
import {
  idTokenClaims,
  maxAudiences,
  missingClaims,
  permissionsOf,
  subjectOf,
  unmetRequirements,
  valueAt,
} from '../../decision/token/profile-claims.js';
import { absentType } from '../../decision/token/profiles.js';
import { hasAcceptedType, isRefusedMember, knownHeaderMembers } from '../../decision/token/service-header.js';
import { claimForms } from '../../decision/token/service-token.js';
import type { JsonObject } from '../../lib/strict-json.js';
import type { ActiveIssuer } from '../../proxy/auth/active-config.js';

/** What of a header is not as this issuer's tokens have it, but for `alg` and `kid`. */
export function headerWords(header: JsonObject, rules: IssuerRules): readonly string[] {
  const refused = Object.keys(header).filter((name) => isRefusedMember(name, rules));
  return [
    ...(hasAcceptedType(header, rules) ? [] : [`typ is ${shown(header['typ'])}; accepted: ${typesOf(rules)}`]),
    ...(refused.length === 0
      ? []
      : [
          `its header has ${refused.map((name) => shown(name)).join(', ')}; accepted: ${
            rules.profile === 'oauth' ? 'none of these' : `${[...knownHeaderMembers].join(', ')} and no other`
          }`,
        ]),
  ];
}

function typesOf({ profile, headerTypes }: IssuerRules): string {
  if (profile === 'core') return '"JWT", or none';
  const named = [...headerTypes].filter((type) => type !== absentType).map((type) => JSON.stringify(type));
  if (!headerTypes.has(absentType)) return named.join(' or ');
  return named.length === 0 ? 'none' : `${named.join(' or ')}, or none`;
}

/** Which algorithms count, and which of them the key verifies, where that is known. */
export function algorithmWords(header: JsonObject, issuers: readonly ActiveIssuer[]): readonly string[] {
  const { alg, kid } = header;
  const allowed = new Set<unknown>(issuers.flatMap(({ rules }) => [...rules.algorithms]));
  if (!allowed.has(alg)) {
    return [`alg is ${shown(alg)}; accepted: ${[...allowed].map((name) => JSON.stringify(name)).join(' or ')}`];
  }
  return issuers.flatMap(({ rules, keys }) => {
    const found = typeof kid === 'string' ? keys.find(kid, 'now') : null;
    if (found === null || found instanceof Promise || found.kind !== 'found') return [];
    return [`alg is ${shown(alg)}; the key ${kid as string} of ${rules.name} verifies ${found.key.algorithm} alone`];
  });
}

/** Why `aud` names nobody whom the issuer's tokens are taken for. */
export function audienceWords({ aud }: JsonObject, { name, audiences }: IssuerRules): string {
  const expected = [...audiences].map((audience) => JSON.stringify(audience)).join(' or ');
  const limit = Array.isArray(aud) && aud.length > maxAudiences ? ` among at most ${maxAudiences}` : '';
  return `aud is ${shown(aud)}; ${name} asks for ${expected}${limit}`;
}

/** Why a token is not by this issuer. */
export function issuerWords(claims: JsonObject, { name, profile, expectedIssuer, trustDomain }: IssuerRules): string {
  return profile === 'spiffe' && (expectedIssuer === null || claims['iss'] === expectedIssuer)
    ? `sub is ${shown(claims['sub'])}; ${name} asks for the SPIFFE ID of a workload in ${trustDomain ?? ''}`
    : `iss is ${shown(claims['iss'])}; ${name} asks for ${JSON.stringify(expectedIssuer)}`;
}

/** What says that it is no access token, where some issuer tells these from ID tokens. */
export function idTokenWords(claims: JsonObject, issuers: readonly ActiveIssuer[]): readonly string[] {
  const found = idTokenClaims.filter((name) => claims[name] !== undefined);
  if (found.length === 0 || issuers.every(({ rules }) => rules.profile !== 'oauth')) return [];
  return [`it has ${found.join(' and ')}, which only ID tokens have: send the access token`];
}

/** Claims that have other values than they have to have. */
export function mismatchWords(claims: JsonObject, rules: IssuerRules): readonly string[] {
  const { name, profile } = rules;
  const unmet = unmetRequirements(claims, rules.claims);
  return [
    ...(profile === 'kubernetes' && subjectOf(claims, rules) === null
      ? [
          `sub is ${shown(claims['sub'])}; ${name} asks for system:serviceaccount:NAMESPACE:NAME, and for the same namespace and serviceaccount.name in kubernetes.io`,
        ]
      : []),
    ...unmet.map(
      ({ path, values }) =>
        `${path.join('.')} is ${shown(valueAt(claims, path))}; ${name} asks for ${values.map((value) => JSON.stringify(value)).join(' or ')}`,
    ),
  ];
}

const wholeSeconds = 'a whole number: seconds since 1970';

/** Claims that have another form than they have to have. */
export function malformedWords(claims: JsonObject, header: JsonObject, rules: IssuerRules): readonly string[] {
  const { subject, permissions } = rules.claims;
  const forms = claimForms.filter(({ name }) => ['exp', 'nbf', 'iat', 'jti'].includes(name));
  const faulty = forms.filter(
    ({ name, isRequired, holds }) => (isRequired || claims[name] !== undefined) && !holds(claims[name]),
  );
  return [
    ...faulty.map(
      ({ name }) =>
        `${name} is ${shown(claims[name])}; it has to be ${name === 'jti' ? 'a text of 1 to 256 visible ASCII characters' : wholeSeconds}`,
    ),
    ...(subjectOf(claims, rules) === null
      ? [
          `${subject.join('.')} is ${shown(valueAt(claims, subject))}; it has to be a text of 1 to 1024 visible ASCII characters`,
        ]
      : []),
    ...(permissions !== null && permissionsOf(claims, permissions) === null
      ? [
          `${permissions.join('.')} is ${shown(valueAt(claims, permissions))}; it has to be a text with blanks between, or a list of texts, at most 1000`,
        ]
      : []),
    ...missingClaims(claims, rules, header['typ']).map(
      (name) => `${name} is ${shown(claims[name])}; tokens of this kind have to have it (${rules.profile})`,
    ),
  ];
}
