import { hash } from 'node:crypto';
import type { CallerCertificate } from '../../decision/binding/certificate.js';
import type { IssuerRules, KeyIdRules, Route } from '../../decision/route/policy.js';
import { readTarget } from '../../decision/http/request-target.js';
import { matchRoute } from '../../decision/route/route-table.js';
import { type JsonObject, isJsonObject, type JsonValue } from '../../lib/strict-json.js';
import type { ActiveConfig } from '../../proxy/auth/active-config.js';
import { acceptedKeyId, type AssumedKeys } from './test-keys.js';
import { headOf, type PolicyRequest, type Shown } from './decide.js';
import type { SessionPolicy } from '../../decision/session/claim-rules.js';
import { absentType } from '../../decision/token/profiles.js';
import { isByIssuer, namesAudience, valueAt } from '../../decision/token/profile-claims.js';
import type { CompiledConfig } from '../../config/types.js';

/** A credential as it comes with a request, and what is to be said of it. */
export interface ShownCredential extends Pick<Shown, 'provedKey'> {
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly notes: readonly string[];
}

export const noCredential: ShownCredential = { headers: [], notes: [] };

/** A token with these claims, as if the issuer that they name had made it. */
export function assumeToken(
  given: JsonObject,
  request: PolicyRequest,
  activeConfig: ActiveConfig,
  keys: AssumedKeys,
  nowMs: number,
): ShownCredential {
  const { config } = activeConfig;
  const rules = issuerMeant(config, given, routeOf(request, activeConfig));
  if (rules === null) {
    return {
      headers: bearer(keys.token('d-assumed', given)),
      notes: ['assumed; the config has no issuer that could have made it'],
    };
  }
  const { claims, filledIn } = completeClaims(given, rules, request.certificate ?? null, nowMs);
  const filled =
    filledIn.length === 0
      ? []
      : [
          `filled in as issuer ${rules.name} would: ${filledIn.map((name) => `${name} ${JSON.stringify(claims[name])}`).join(', ')}`,
        ];
  return {
    headers: bearer(keys.token(acceptedKeyId(rules.keyIds, config.revoked), claims, rules)),
    notes: ['assumed: these claims are taken for granted, and no signature was verified', ...filled],
    provedKey: provedKeyOf(claims, filledIn.includes('cnf'), config),
  };
}

/** Of a key that nobody has: whoever holds an assumed token is taken to have it. */
const assumedKey = hash('sha256', 'assumed', 'base64url');

/** What an issuer binds its tokens to that only issues bound ones: what their holder shows. */
function assumedConfirmation(certificate: CallerCertificate | null): JsonObject {
  return certificate === null ? { jkt: assumedKey } : { 'x5t#S256': certificate.digest };
}

/** Nobody makes proofs here: the holder of an assumed token has its key, where proofs are taken at all. */
function provedKeyOf({ cnf }: JsonObject, isFilledIn: boolean, { listen }: CompiledConfig): string | null {
  const named = cnf !== undefined && isJsonObject(cnf) ? cnf['jkt'] : null;
  return typeof named === 'string' && (isFilledIn || listen.dpop !== null) ? named : null;
}

/** Of the Core's keys for sessions. */
const sessionKeyIds: KeyIdRules = { accept: ['d-*'], reject: [] };

/** A session with these claims, as if the Core had made it and stood by it. */
export function assumeSession(
  given: JsonObject,
  { sessions, config }: ActiveConfig,
  keys: AssumedKeys,
  nowMs: number,
): ShownCredential {
  const { claims, filledIn } = completeSessionClaims(given, sessions?.settings.issuer ?? '', nowMs);
  const filled = filledIn.map((name) => `${name} ${JSON.stringify(claims[name])}`).join(', ');
  return {
    headers: bearer(keys.sessionToken(acceptedKeyId(sessionKeyIds, config.revoked), claims)),
    notes: [
      'assumed: a session with these claims, for which the Core vouches',
      ...(filled === '' ? [] : [`filled in: ${filled}`]),
    ],
  };
}

/** A token whose form is right and whose signature is not. */
export function forgeToken(activeConfig: ActiveConfig, keys: AssumedKeys): ShownCredential {
  const [issuer] = activeConfig.issuers;
  const keyId = issuer === undefined ? 'd-assumed' : acceptedKeyId(issuer.rules.keyIds, activeConfig.config.revoked);
  return {
    headers: bearer(keys.forgedToken(keyId, issuer?.rules)),
    notes: ['a token with a signature that does not hold'],
  };
}

function routeOf(request: PolicyRequest, { config }: ActiveConfig): Route | null {
  const { method, target: raw } = headOf(request);
  const target = readTarget(raw, config.listen.maxTargetBytes);
  return target.ok ? matchRoute(config.table, method, target.value) : null;
}

function bearer(token: string): readonly string[] {
  return ['Authorization', `Bearer ${token}`];
}

/** The fewest claims of a session that a route's policy is content with. */
export function claimsHolding({ claims }: SessionPolicy, sub = 'user'): JsonObject {
  return claims.reduce<JsonObject>((held, { path, value }) => withClaim(held, path, value), { sub });
}

function withClaim(held: JsonObject, [first = '', ...rest]: readonly string[], value: JsonValue): JsonObject {
  const inner: JsonValue | undefined = held[first];
  return { ...held, [first]: rest.length === 0 ? value : withClaim(isJsonObject(inner) ? inner : {}, rest, value) };
}

/** Claims of a token that nobody issued. */
interface AssumedClaims {
  readonly claims: JsonObject;
  /** Names of the claims that were filled in. */
  readonly filledIn: readonly string[];
}

/** Life of an assumed token, seconds; less where the issuer's are shorter. */
const lifetimeS = 300;

/**
 * The issuer whose rules fill in what is not said: the one that the claims name by `iss`, or by the trust domain of
 * `sub` where it takes any `iss`; else the first that the route accepts. `null` where the config has none.
 */
function issuerMeant(config: CompiledConfig, given: JsonObject, route: Route | null): IssuerRules | null {
  const rules = config.issuers.map((issuer) => issuer.rules);
  const byIss = rules.filter(({ issuer }) => given['iss'] === issuer);
  const byDomain = rules.filter((each) => each.expectedIssuer === null && isByIssuer(given, each));
  const named = [byIss, byDomain].find((found) => found.length > 0) ?? rules;
  const forUs = named.filter(({ audiences }) => given['aud'] === undefined || namesAudience(given['aud'], audiences));
  const meant = forUs.length > 0 ? forUs : named;
  return meant.toSorted((a, b) => preference(b, route) - preference(a, route))[0] ?? null;
}

/** Fills in what a token of this issuer would say at that time. `null` stands for a claim that is absent. */
function completeClaims(
  given: JsonObject,
  rules: IssuerRules,
  certificate: CallerCertificate | null,
  nowMs: number,
): AssumedClaims {
  const nowS = Math.floor(nowMs / 1_000);
  const issuedAtS = typeof given['iat'] === 'number' ? given['iat'] : nowS;
  const usual: Readonly<Record<string, JsonValue | undefined>> = {
    iss: rules.expectedIssuer ?? undefined,
    aud: rules.audience,
    source: [...rules.sources][0],
    token_type: [...rules.tokenTypes][0],
    ...(rules.profile === 'core' ? { permissions: [] } : {}),
    ...(rules.binding === 'require' ? { cnf: assumedConfirmation(certificate) } : {}),
    iat: nowS,
    exp: issuedAtS + Math.min(lifetimeS, Math.floor(rules.maxLifetimeS)),
    ...(isAccessTokenType(rules) ? { sub: 'assumed', client_id: 'assumed', jti: 'assumed' } : {}),
  };
  const { claims, filledIn } = fillIn(withRequired(given, rules), usual);
  const added = Object.keys(claims).filter((name) => given[name] === undefined && !filledIn.includes(name));
  return { claims, filledIn: [...filledIn, ...added] };
}

function isAccessTokenType({ profile, headerTypes }: IssuerRules): boolean {
  return profile === 'oauth' && !headerTypes.has(absentType) && [...headerTypes][0] === 'at+jwt';
}

/** What is given, and what the profile and the config have such a token say besides. */
function withRequired(given: JsonObject, { profile, claims }: IssuerRules): JsonObject {
  const { sub } = given;
  const bound = profile === 'kubernetes' && typeof sub === 'string' ? { ...boundTo(sub), ...given } : given;
  return claims.require.reduce<JsonObject>(
    (held, { path, values: [value] }) =>
      value === undefined || valueAt(held, path) !== undefined ? held : withClaim(held, path, value),
    bound,
  );
}

/** What Kubernetes says of the service account that its `sub` names. */
function boundTo(sub: string): JsonObject {
  const [, , namespace, name] = sub.split(':');
  return namespace === undefined || name === undefined
    ? {}
    : { 'kubernetes.io': { namespace, serviceaccount: { name, uid: 'assumed' } } };
}

/** The claims by which a token of this issuer says who calls and what it may do. */
export function claimsOf(rules: IssuerRules, subject: string, permissions: readonly string[]): JsonObject {
  const { profile, claims } = rules;
  if (profile === 'core') return { sub: subject, permissions };
  const named =
    profile === 'kubernetes'
      ? { sub: `system:serviceaccount:${subject.replace('/', ':')}` }
      : withClaim({}, claims.subject, subject);
  if (claims.permissions === null || permissions.length === 0) return named;
  const isScope = claims.permissions.length === 1 && claims.permissions[0] === 'scope';
  return withClaim(named, claims.permissions, isScope ? permissions.join(' ') : permissions);
}

/** Whether tokens of this issuer can have such a subject. */
export function mayNameSubject({ profile, trustDomain }: IssuerRules, subject: string): boolean {
  if (profile === 'spiffe') return subject.startsWith(`spiffe://${trustDomain ?? ''}/`);
  return profile !== 'kubernetes' || /^[^/:]+\/[^/:]+$/.test(subject);
}

/** Fills in what the access token of a session would say at that time. */
function completeSessionClaims(given: JsonObject, issuer: string, nowMs: number): AssumedClaims {
  const nowS = Math.floor(nowMs / 1_000);
  const issuedAtS = typeof given['iat'] === 'number' ? given['iat'] : nowS;
  return fillIn(given, {
    iss: issuer,
    sessionHandle: 'assumed',
    refreshTokenHash1: 'assumed',
    iat: nowS,
    exp: issuedAtS + lifetimeS,
  });
}

function fillIn(given: JsonObject, usual: Readonly<Record<string, JsonValue | undefined>>): AssumedClaims {
  const filledIn = Object.keys(usual).filter((name) => given[name] === undefined);
  const members = Object.entries({ ...usual, ...given }).filter(
    (entry): entry is [string, JsonValue] => entry[1] !== undefined && entry[1] !== null,
  );
  return { claims: Object.fromEntries(members), filledIn };
}

function preference({ name }: IssuerRules, route: Route | null): number {
  return route === null || route.issuers === null || route.issuers.has(name) ? 1 : 0;
}
