/**
 * Says whom a token speaks for; or, where it is refused, what it says and what would be right. Never the token or its
 * signature.
 */
import { timestamp } from '../../lib/timestamp.js';
import { claimForms, isGrant, isOneOf, sessionClaims } from '../../decision/token/service-token.js';
import { isByIssuer, isForAudience, valueAt } from '../../decision/token/profile-claims.js';
import { maxTokenBytes } from '../../decision/token/compact-jws.js';
import type { Reason } from '../../decision/denial.js';
import { acceptsKeyId, isKeyId } from '../../decision/token/kid-filter.js';
import type { IssuerRules } from '../../decision/route/policy.js';
import type { Principal } from '../../decision/token/principal.js';
import { readHeaders } from '../../decision/http/request-headers.js';
import { readSessionHeaders } from '../../decision/session/headers.js';
import { isSessionHeader, serviceClaims, sessionHeaderMembers, sessionVersions } from '../../decision/session/token.js';
import { isJsonArray, type JsonObject, type JsonValue } from '../../lib/strict-json.js';
import type { KeySourceState } from '../../ports/auth.js';
import type { ActiveIssuer } from '../../proxy/auth/active-config.js';
import type { ActiveSessions } from '../../proxy/auth/credentials/session.js';
import type { Explained } from './explanation.js';
import {
  algorithmWords,
  audienceWords,
  headerWords,
  idTokenWords,
  issuerWords,
  malformedWords as profileWords,
  mismatchWords,
} from './profile-words.js';
import { readToken, shown, type TokenReading } from './token-reading.js';

/** What may be wrong with a token as such, whatever the route asks for. */
export type TokenReason = Extract<
  Reason,
  | 'token_malformed'
  | 'algorithm_refused'
  | 'key_id_refused'
  | 'key_unknown'
  | 'signature_invalid'
  | 'token_expired'
  | 'token_not_yet_valid'
  | 'lifetime_too_long'
  | 'issuer_mismatch'
  | 'issuer_not_accepted'
  | 'audience_mismatch'
  | 'source_mismatch'
  | 'token_type_mismatch'
  | 'claim_mismatch'
  | 'claim_malformed'
  | 'session_claim_present'
  | 'service_claim_present'
  | 'session_expired'
  | 'session_refused'
  | 'anti_csrf_missing'
  | 'keys_unavailable'
  | 'core_unavailable'
>;

/** Why an issuer's keys cannot be had. */
function whyNoKeys({ lastError, emptySet }: KeySourceState): string {
  return lastError ?? (emptySet === null ? 'no answer' : 'its key set lists no key that counts');
}

/** A token, and who might have made it. */
interface Judged {
  readonly reading: TokenReading;
  readonly header: JsonObject;
  readonly claims: JsonObject;
  /** Where it was taken for a session's access token. */
  readonly sessions: ActiveSessions | null;
  /** Those that accept its key id, or all where none does. */
  readonly issuers: readonly ActiveIssuer[];
  readonly explained: Explained;
}

const claimsAllowed: Readonly<Record<string, string>> = {
  exp: 'a whole number: seconds since 1970',
  nbf: 'a whole number: seconds since 1970',
  iat: 'a whole number: seconds since 1970',
  sub: 'a text of 1 to 1024 visible ASCII characters',
  permissions: 'a list of at most 1000 texts',
  jti: 'a text of 1 to 256 visible ASCII characters',
};

/** Says whom a verified credential speaks for. */
export function explainPrincipal(principal: Principal, nowMs: number): readonly string[] {
  const { kind, issuerName, issuer, subject, permissions, tokenId, keyId, expiresAtS } = principal;
  return [
    `${kind} of issuer ${issuerName} (${issuer}), ${keyId === '' ? 'by its word on an opaque token' : `key ${keyId}`}`,
    `subject ${subject}, permissions ${permissions.length === 0 ? 'none' : permissions.join(' ')}${tokenId === null ? '' : `, token id ${tokenId}`}`,
    `expires at ${time(expiresAtS)}, in ${Math.round(expiresAtS - nowMs / 1_000)} s`,
  ];
}

/** Says which of a token's permissions grant nothing, whoever asks for them. */
export function explainLeftOut(explained: Explained): readonly string[] {
  const token = explained.ruling.principal?.kind === 'service' ? tokenOf(explained) : null;
  const named = explained.activeConfig.issuers.find(
    ({ rules }) => rules.name === explained.ruling.principal?.issuerName,
  )?.rules.claims.permissions;
  const claims = token === null ? null : readToken(token).claims.object;
  const value = claims === null || named === null ? undefined : valueAt(claims, named ?? ['permissions']);
  const permissions = typeof value === 'string' ? value.split(' ').filter((part) => part !== '') : value;
  const left = isJsonArray(permissions)
    ? permissions.filter((permission) => typeof permission === 'string' && !isGrant(permission))
    : [];
  const rule = 'a permission is visible ASCII without blank, " and \\';
  return left.length === 0
    ? []
    : [`grants nothing and is not passed on: ${left.map((permission) => shown(permission)).join(', ')}; ${rule}`];
}

/** Says why a token is refused: what was found in it, and what is accepted. */
export function explainRefusedToken(reason: TokenReason, explained: Explained): readonly string[] {
  const token = tokenOf(explained);
  if (token === null) return [];
  const reading = readToken(token);
  const [header, claims] = [reading.header.object ?? {}, reading.claims.object ?? {}];
  const {
    activeConfig,
    ruling: { route },
  } = explained;
  const mayBeSession =
    activeConfig.sessions !== null &&
    (route === null || route.session !== null) &&
    isSessionHeader(reading.header.object);
  const keyId = header['kid'];
  const accepting = activeConfig.issuers.filter(({ rules }) => isKeyId(keyId) && acceptsKeyId(rules.keyIds, keyId));
  const judged: Judged = {
    reading,
    header,
    claims,
    sessions: mayBeSession ? activeConfig.sessions : null,
    issuers: accepting.length === 0 ? activeConfig.issuers : accepting,
    explained,
  };
  return judged.sessions === null ? serviceWords(reason, judged) : sessionWords(reason, judged, judged.sessions);
}

function serviceWords(reason: TokenReason, judged: Judged): readonly string[] {
  const {
    header,
    claims,
    issuers,
    explained: {
      nowMs,
      ruling: { route },
    },
  } = judged;
  const keyId = shown(header['kid']).replaceAll('"', '');
  const each = (words: (issuer: ActiveIssuer) => string): readonly string[] => issuers.map(words);
  // Where one claim is as an issuer wants it, another issuer refused the token for that claim.
  const unless = (holds: (rules: IssuerRules) => boolean, words: (rules: IssuerRules) => string): readonly string[] =>
    issuers.flatMap(({ rules }) => (holds(rules) ? [] : [words(rules)]));
  const compare = (name: string, expected: (rules: IssuerRules) => ReadonlySet<string>): readonly string[] =>
    unless(
      (rules) => rules.profile !== 'core' || isOneOf(expected(rules), claims[name]),
      (rules) =>
        `${name} is ${shown(claims[name])}; ${rules.name} asks for ${[...expected(rules)]
          .map((value) => JSON.stringify(value))
          .join(' or ')}`,
    );
  switch (reason) {
    case 'token_malformed':
      return malformedWords(judged, issuers[0] === undefined ? [] : headerWords(header, issuers[0].rules));
    case 'algorithm_refused':
      return algorithmWords(header, issuers);
    case 'key_id_refused':
      return isKeyId(header['kid'])
        ? each(({ rules }) => `${rules.name} accepts key ids ${patterns(rules)}; the token's is ${keyId}`)
        : [
            `kid is ${shown(header['kid'])}; it has to be 1 to 256 visible ASCII characters, such as ${issuers[0]?.rules.keyIds.accept.join(' ') ?? 'd-1'}`,
          ];
    case 'key_unknown':
      return each(({ rules, keys }) => `${rules.name} has no key ${keyId}; it has ${keyIdsOf(keys)}`);
    case 'signature_invalid':
      return each(
        ({ rules }) =>
          `the key ${keyId} of ${rules.name} did not make the signature: the token was changed, or another key has the same id`,
      );
    case 'token_expired':
    case 'token_not_yet_valid':
    case 'lifetime_too_long':
      return [timesWords(claims, nowMs), ...each(({ rules }) => lifeWords(rules))];
    case 'issuer_mismatch':
      return unless(
        (rules) => isByIssuer(claims, rules),
        (rules) => issuerWords(claims, rules),
      );
    case 'audience_mismatch':
      return unless(
        (rules) => isForAudience(claims, rules),
        (rules) => audienceWords(claims, rules),
      );
    case 'source_mismatch':
      return compare('source', ({ sources }) => sources);
    case 'token_type_mismatch':
      return [...compare('token_type', ({ tokenTypes }) => tokenTypes), ...idTokenWords(claims, issuers)];
    case 'claim_mismatch':
      return issuers.flatMap(({ rules }) => mismatchWords(claims, rules));
    case 'issuer_not_accepted':
      return [`iss is ${shown(claims['iss'])}; the route takes tokens of ${[...(route?.issuers ?? [])].join(' ')}`];
    case 'claim_malformed':
      return issuers.some(({ rules }) => rules.profile !== 'core')
        ? issuers.flatMap(({ rules }) =>
            rules.profile === 'core' ? malformedClaims(claims) : profileWords(claims, header, rules),
          )
        : malformedClaims(claims);
    case 'session_claim_present':
      return [`it has ${present(claims, sessionClaims)}, which only tokens of user sessions have`];
    case 'keys_unavailable':
      return each(({ rules, keys }) => `the keys of ${rules.name} cannot be had: ${whyNoKeys(keys.state())}`);
    case 'service_claim_present':
    case 'session_expired':
    case 'session_refused':
    case 'anti_csrf_missing':
    case 'core_unavailable':
      return ['it concerns tokens of user sessions, and this is none'];
  }
}

function sessionWords(reason: TokenReason, judged: Judged, { settings, keys }: ActiveSessions): readonly string[] {
  const { header, claims, explained } = judged;
  switch (reason) {
    case 'token_malformed':
      return malformedWords(judged, sessionHeaderWords(header));
    case 'algorithm_refused':
      return [`alg is ${shown(header['alg'])}; accepted: "RS256"`];
    case 'key_id_refused':
    case 'key_unknown':
      return [`the Core has no key ${shown(header['kid'])} for sessions; it has ${keyIdsOf(keys)}`];
    case 'signature_invalid':
      return [`the key ${shown(header['kid'])} of the Core did not make the signature`];
    case 'issuer_mismatch':
      return [`iss is ${shown(claims['iss'])}; sessions have ${JSON.stringify(settings.issuer)}`];
    case 'token_expired':
    case 'token_not_yet_valid':
    case 'lifetime_too_long':
      return [timesWords(claims, explained.nowMs)];
    case 'session_expired':
      return [
        timesWords(claims, explained.nowMs),
        'the frontend has to refresh it: either its exp is over, or the Core wants a new one',
      ];
    case 'session_refused':
      return [`the Core stands by no such session of ${shown(claims['sub'])}: it was signed out or revoked there`];
    case 'service_claim_present':
      return [`it has ${present(claims, serviceClaims)}, which only service tokens have`];
    case 'claim_malformed':
    case 'session_claim_present':
      return [
        `sessionHandle is ${shownForm(claims['sessionHandle'])}, refreshTokenHash1 is ${shownForm(claims['refreshTokenHash1'])}`,
        `stt is ${shown(claims['stt'])}, sub is ${shown(claims['sub'])}, ${timesWords(claims, explained.nowMs)}`,
        'sessionHandle and refreshTokenHash1 have to be texts, stt 0 or missing, sub visible ASCII, exp and iat whole numbers',
      ];
    case 'anti_csrf_missing':
      return antiCsrfWords(explained);
    case 'keys_unavailable':
      return [`the keys of the Core cannot be had: ${whyNoKeys(keys.state())}`];
    case 'core_unavailable':
      return ['the Core has to be asked about this session, and gave no answer'];
    case 'audience_mismatch':
    case 'source_mismatch':
    case 'token_type_mismatch':
    case 'claim_mismatch':
    case 'issuer_not_accepted':
      return ['it concerns service tokens, and this is a session'];
  }
}

/** Everything about the form, since one fault often comes with the next. */
function malformedWords({ reading }: Judged, ofHeader: readonly string[]): readonly string[] {
  const { bytes, parts, claims, isSignatureSpelled } = reading;
  if (bytes > maxTokenBytes) return [`it has ${bytes} bytes; at most ${maxTokenBytes} are read`];
  if (parts !== 3) {
    const what = parts === 5 ? ', as an encrypted one has' : '';
    return [
      `it has ${parts} ${parts === 1 ? 'part' : 'parts'}${what}; a signed token has three, with dots between`,
      ...(parts === 5 ? [] : ['opaque tokens are taken where an issuer of the config has introspection']),
    ];
  }
  return [
    ...(reading.header.object === null ? [`its header ${reading.header.fault}`] : ofHeader),
    ...(claims.object === null ? [`its claims part ${claims.fault}`] : []),
    ...(isSignatureSpelled ? [] : ['its signature part is no base64url without padding']),
  ];
}

function sessionHeaderWords(header: JsonObject): readonly string[] {
  const { typ, version } = header;
  const others = Object.keys(header).filter((name) => !sessionHeaderMembers.has(name));
  return [
    ...(typ === 'JWT' ? [] : [`typ is ${shown(typ)}; accepted: "JWT"`]),
    ...(sessionVersions.has(version)
      ? []
      : [`version is ${shown(version)}; accepted: ${[...sessionVersions].map((known) => shown(known)).join(', ')}`]),
    ...(others.length === 0
      ? []
      : [
          `its header has ${others.map((name) => shown(name)).join(', ')}; accepted: ${[...sessionHeaderMembers].join(', ')} and no other`,
        ]),
  ];
}

/** Each claim that has not the form it has to have: what it is, and what it should be. */
function malformedClaims(claims: JsonObject): readonly string[] {
  const faulty = claimForms.filter(
    ({ name, isRequired, holds }) => (isRequired || claims[name] !== undefined) && !holds(claims[name]),
  );
  const permissions = claimForms.find(({ name }) => name === 'permissions');
  return faulty.map(({ name }) => {
    const value = claims[name];
    const at =
      name === 'permissions' && isJsonArray(value)
        ? value.findIndex((item) => permissions?.holds([item]) === false)
        : -1;
    const found =
      at >= 0 && isJsonArray(value) ? `permissions[${at}] is ${shown(value[at])}` : `${name} is ${shown(value)}`;
    return `${found}; it has to be ${claimsAllowed[name] ?? 'of another form'}`;
  });
}

function antiCsrfWords({ head, activeConfig }: Explained): readonly string[] {
  const headers = readHeaders(head, activeConfig.headerRules);
  const sent = headers.ok ? readSessionHeaders(headers.value.passed) : null;
  return [
    `${head.method} with a session cookie has ${sent?.antiCsrf === null ? 'no anti-csrf' : 'an anti-csrf'} and ${sent?.hasRid === true ? 'a rid' : 'no rid'}`,
    'it needs the anti-csrf that the session was made with, or, where it was made without one, a rid; GET needs neither',
  ];
}

/** What was presented; `null` where nothing can be read as a token. */
export function tokenOf({ head, activeConfig }: Explained): string | null {
  const headers = readHeaders(head, activeConfig.headerRules);
  if (!headers.ok) return null;
  const [cookie] = activeConfig.sessions === null ? [] : readSessionHeaders(headers.value.passed).accessTokens;
  if (headers.value.bearer.ok) return headers.value.bearer.value;
  return cookie ?? null;
}

/** How long tokens of an issuer may live. */
export function lifeWords({ name, maxLifetimeS, clockSkewS }: IssuerRules): string {
  return `${name} allows ${maxLifetimeS} s of life and ${clockSkewS} s of skew`;
}

/** The times that a token says, beside the time it is. */
export function timesWords(claims: JsonObject, nowMs: number): string {
  const said = ['iat', 'nbf', 'exp']
    .filter((name) => claims[name] !== undefined)
    .map((name) => {
      const value = claims[name];
      return `${name} ${typeof value === 'number' ? `${value} (${time(value)})` : shown(value)}`;
    });
  return `it is ${time(nowMs / 1_000)}; the token says ${said.join(', ')}`;
}

function present(claims: JsonObject, names: readonly string[]): string {
  return names.filter((name) => claims[name] !== undefined).join(' and ') || 'none of them';
}

/** Handles of sessions are secrets; what kind of value they are is none. */
function shownForm(value: JsonValue | undefined): string {
  return value === undefined ? 'missing' : typeof value === 'string' ? 'a text' : shown(value);
}

function keyIdsOf(keys: ActiveIssuer['keys']): string {
  return (
    keys
      .state()
      .keys.map((key) => key.keyId)
      .join(' ') || 'none'
  );
}

function patterns({ keyIds: { accept, reject } }: IssuerRules): string {
  return `${accept.join(' ')}${reject.length === 0 ? '' : ` but not ${reject.join(' ')}`}`;
}

function time(seconds: number): string {
  return timestamp(Math.floor(seconds) * 1_000, 'no time').replace('.000Z', 'Z');
}
