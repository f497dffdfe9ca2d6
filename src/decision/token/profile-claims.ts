/** Holds the claims of service tokens to the profile of their issuer. */
import { requiredProof, type Binding } from '../binding/confirmation.js';
import { denial, type Denial, type Reason } from '../denial.js';
import type { IssuerRules } from '../route/policy.js';
import { maxSubjectLength } from './principal.js';
import type { ClaimPath, ClaimRules } from './profiles.js';
import { mediaType } from './service-header.js';
import {
  grantsOf,
  isAbsentOr,
  isTokenId,
  maxPermissions,
  readTimes,
  sessionClaims,
  verifyClaims,
  type ServiceClaims,
} from './service-token.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../../lib/strict-json.js';
import { isVisibleAscii } from '../../lib/text.js';

/** Names in `aud` that are looked through; a token is for a handful of services. */
export const maxAudiences = 100;

/** Only ID tokens have these (OpenID Connect Core §3.1.3.6, §3.3.2.11): they say who signed in, and grant nothing. */
export const idTokenClaims = ['at_hash', 'c_hash', 's_hash', 'events'] as const;

/** The `typ` of RFC 9068 §2.1. */
const accessTokenType = 'at+jwt';

/**
 * Holds the claims of a token whose signature was verified against its issuer's rules, as `verifyClaims` does for the
 * Core, whose tokens go there. In the same order: what the token is, by whom and for whom, then what time it is, then
 * what it grants, and last what it is bound to.
 *
 * @param type `typ` of the header, where it has one
 */
export function verifyTokenClaims(
  payload: JsonObject,
  rules: IssuerRules,
  nowMs: number,
  type: JsonValue | undefined,
): Result<ServiceClaims, Denial> {
  const claims =
    rules.profile === 'core' ? verifyClaims(payload, rules, nowMs) : verifyProfileClaims(payload, rules, nowMs, type);
  return claims.ok ? withConfirmation(claims.value, payload['cnf'], rules.binding) : claims;
}

/** Adds what whoever sends the token has to prove (RFC 7800 §3.1), where it is bound to something. */
export function withConfirmation(
  claims: ServiceClaims,
  cnf: JsonValue | undefined,
  binding: Binding,
): Result<ServiceClaims, Denial> {
  const required = requiredProof(cnf, binding);
  if (required === null) return accept(claims);
  return typeof required === 'string' ? refuse(denial(required)) : accept({ ...claims, confirmation: required });
}

function verifyProfileClaims(
  payload: JsonObject,
  rules: IssuerRules,
  nowMs: number,
  type: JsonValue | undefined,
): Result<ServiceClaims, Denial> {
  const mismatch = findMismatch(payload, rules);
  if (mismatch !== null) return refuse(denial(mismatch));

  const times = readTimes(payload, rules, nowMs);
  if (!times.ok) return times;

  const { jti } = payload;
  const subject = subjectOf(payload, rules);
  const permissions = permissionsOf(payload, rules.claims.permissions);
  if (subject === null || permissions === null || !isAbsentOr(isTokenId, jti)) {
    return refuse(denial('claim_malformed'));
  }
  if (missingClaims(payload, rules, type).length > 0) return refuse(denial('claim_malformed'));
  return accept({ subject, permissions, tokenId: jti ?? null, ...times.value });
}

/**
 * Whether the token says that it is by this issuer, of its trust domain and for this service: this tells apart those
 * who share key ids.
 */
export function isMeantFor(payload: JsonObject, rules: IssuerRules): boolean {
  return isByIssuer(payload, rules) && isForAudience(payload, rules);
}

/** Whether the token says that it is for this service, as its issuer's tokens say it. */
export function isForAudience({ aud }: JsonObject, { profile, audience, audiences }: IssuerRules): boolean {
  return profile === 'core' ? aud === audience : namesAudience(aud, audiences);
}

/** Whether the token says that it is by this issuer, or of its trust domain. */
export function isByIssuer(payload: JsonObject, { profile, expectedIssuer, trustDomain }: IssuerRules): boolean {
  if (profile === 'spiffe' && !isInTrustDomain(payload['sub'], trustDomain)) return false;
  return expectedIssuer === null || payload['iss'] === expectedIssuer;
}

function findMismatch(payload: JsonObject, rules: IssuerRules): Reason | null {
  const { profile, audiences, claims } = rules;
  if (sessionClaims.some((name) => payload[name] !== undefined)) return 'session_claim_present';
  if (!isByIssuer(payload, rules)) return 'issuer_mismatch';
  if (!namesAudience(payload['aud'], audiences)) return 'audience_mismatch';
  if (profile === 'oauth' && idTokenClaims.some((name) => payload[name] !== undefined)) return 'token_type_mismatch';
  if (profile === 'kubernetes' && serviceAccountOf(payload) === null) return 'claim_mismatch';
  return unmetRequirements(payload, claims).length > 0 ? 'claim_mismatch' : null;
}

/** What an issuer's tokens have to say besides, and this one does not; in the order of the config. */
export function unmetRequirements(payload: JsonObject, { require }: ClaimRules): ClaimRules['require'] {
  return require.filter(({ path, values }) => !values.some((value) => isClaim(valueAt(payload, path), value)));
}

/** RFC 7519 §4.1.3: one text, or a list of texts of which one is ours. */
export function namesAudience(aud: JsonValue | undefined, audiences: ReadonlySet<string>): boolean {
  if (typeof aud === 'string') return audiences.has(aud);
  if (!isJsonArray(aud) || aud.length > maxAudiences) return false;
  return aud.every((name) => typeof name === 'string') && aud.some((name) => audiences.has(name));
}

/** Names of claims that the profile asks for besides those that are always needed, and that the token lacks. */
export function missingClaims(
  payload: JsonObject,
  { profile }: Pick<IssuerRules, 'profile'>,
  type: JsonValue | undefined,
): readonly string[] {
  const isAccessToken = profile === 'oauth' && typeof type === 'string' && mediaType(type) === accessTokenType;
  if (profile === 'kubernetes') return payload['iat'] === undefined ? ['iat'] : [];
  if (!isAccessToken) return [];
  // RFC 9068 §2.2. `iss`, `aud` and `exp` were looked at.
  return [
    ...['iat', 'jti'].filter((name) => payload[name] === undefined),
    ...['sub', 'client_id'].filter((name) => !isName(payload[name])),
  ];
}

/** RFC 6749 appendix A.1: `client_id` may have blanks. */
function isName(value: JsonValue | undefined): boolean {
  return typeof value === 'string' && /^[\x20-\x7e]{1,1024}$/.test(value);
}

/** Who calls, by the profile; `null` where the claims do not say so in the right form. */
export function subjectOf(payload: JsonObject, rules: Pick<IssuerRules, 'profile' | 'claims'>): string | null {
  if (rules.profile === 'kubernetes') return serviceAccountOf(payload);
  const subject = valueAt(payload, rules.claims.subject);
  return isVisibleAscii(subject, maxSubjectLength) ? subject : null;
}

/**
 * Whom a service that is less strict may take for the caller, empty where that is nobody: a number counts as a text
 * does, and of Kubernetes what `sub` alone says, as in its tokens of old.
 */
export function claimedSubject(payload: JsonObject, rules: Pick<IssuerRules, 'profile' | 'claims'>): string | number {
  if (rules.profile === 'kubernetes') return accountIn(payload['sub'])?.join('/') ?? '';
  const subject = valueAt(payload, rules.claims.subject);
  return typeof subject === 'string' || typeof subject === 'number' ? subject : '';
}

/** Names where an issuer's tokens say who calls: of a token that two issuers accept, both read the same if this is. */
export function holderClaim({ profile, claims }: Pick<IssuerRules, 'profile' | 'claims'>): string {
  return profile === 'kubernetes' ? 'service account' : JSON.stringify(claims.subject);
}

const serviceAccountSubject = /^system:serviceaccount:([^:]+):([^:]+)$/;

/** RFC 1123, as Kubernetes takes it: a name without dots is one label, and one with dots has a label on either side. */
const label = /^[a-z0-9]+(?:-+[a-z0-9]+)*$/;

/** Longest names of namespaces, which are labels, and of service accounts, which are subdomains. */
const maxNamespaceLength = 63;
const maxAccountLength = 253;

/** Namespace and name of a service account, as `sub` has them. */
function accountIn(sub: JsonValue | undefined): readonly string[] | null {
  return (typeof sub === 'string' ? serviceAccountSubject.exec(sub) : null)?.slice(1) ?? null;
}

/**
 * `NAMESPACE/NAME` of the service account that a token was made for. Its `sub` and what `kubernetes.io` says have to be
 * one: both are the API server's, and a token with only one of them is not.
 */
function serviceAccountOf({ sub, ['kubernetes.io']: bound }: JsonObject): string | null {
  const [namespace, name] = accountIn(sub) ?? [];
  if (namespace === undefined || name === undefined || !isJsonObject(bound)) return null;
  if (namespace.length > maxNamespaceLength || !label.test(namespace)) return null;
  if (name.length > maxAccountLength || !name.split('.').every((part) => label.test(part))) return null;
  const { namespace: boundNamespace, serviceaccount: account } = bound;
  if (boundNamespace !== namespace || !isJsonObject(account) || account['name'] !== name) return null;
  return `${namespace}/${name}`;
}

const spiffeSegment = /^[A-Za-z0-9._-]+$/;

/** Whether a `sub` is the SPIFFE ID of a workload in this trust domain (SPIFFE-ID §2). */
function isInTrustDomain(sub: JsonValue | undefined, trustDomain: string | null): boolean {
  const start = `spiffe://${trustDomain ?? ''}/`;
  if (typeof sub !== 'string' || sub.length > maxSubjectLength || !sub.startsWith(start)) return false;
  const segments = sub.slice(start.length).split('/');
  return segments.every((segment) => spiffeSegment.test(segment) && segment !== '.' && segment !== '..');
}

/** What the caller may do: a text with blanks between (RFC 6749 §3.3), or a list; nothing where the claim is absent. */
export function permissionsOf(payload: JsonObject, path: ClaimPath | null): readonly string[] | null {
  const value = path === null ? undefined : valueAt(payload, path);
  if (value === undefined) return [];
  const named = typeof value === 'string' ? value.split(' ').filter((name) => name !== '') : value;
  if (!isJsonArray(named) || named.length > maxPermissions) return null;
  const texts = named.filter((name) => typeof name === 'string');
  return texts.length === named.length ? grantsOf(texts) : null;
}

/**
 * Whether a claim is this value. Nothing is converted. A number that is no whole one of up to 2^53 - 1 matches nothing:
 * it may be the next one in the token (RFC 8259 §6). A fraction that is too small to be read is not seen.
 */
export function isClaim(claim: JsonValue | undefined, value: string | number | boolean): boolean {
  return claim === value && (typeof claim !== 'number' || Number.isSafeInteger(claim));
}

/** What stands at a path. Objects of a payload have no prototype, so that only members of the token are found. */
export function valueAt(payload: JsonObject, path: ClaimPath): JsonValue | undefined {
  let value: JsonValue | undefined = payload;
  for (const name of path) {
    if (!isJsonObject(value)) return undefined;
    value = value[name];
  }
  return value;
}
