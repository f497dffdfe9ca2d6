import type { Reason } from '../decision/denial.js';
import { acceptsKeyId } from '../decision/key-ids.js';
import type { IssuerRules } from '../decision/policy.js';
import type { Principal } from '../decision/principal.js';
import { readFields } from '../decision/request-fields.js';
import { readPayload } from '../decision/compact-jws.js';
import { parseServiceToken } from '../decision/service-token.js';
import { parseSessionToken } from '../decision/session-token.js';
import type { JsonObject, JsonValue } from '../decision/strict-json.js';
import type { IssuerInForce } from '../proxy/issuer-in-force.js';
import type { SessionsInForce } from '../proxy/session-credential.js';
import type { Explained } from './explained.js';

/** Claims are texts of whoever wrote the token; longer ones are cut. */
const maxShown = 120;

/** Says whom the token speaks for; or, where it is refused, what it says and what would be right. */
export function explainToken(explained: Explained): readonly string[] {
  const { ruling: { principal, denial } } = explained;
  if (principal !== null) return principalWords(principal, explained.nowMs);
  const token = tokenOf(explained);
  if (token === null || denial === null) return [];
  const { sessions } = explained.inForce;
  if (token.isSession && sessions !== null) return sessionRefusalWords(denial.reason, token, sessions, explained.nowMs);
  const issuers = explained.inForce.issuers;
  const accepting = issuers.filter(({ rules }) => acceptsKeyId(rules.keyIds, token.keyId));
  if (denial.reason === 'key_id_refused') return issuers.map(({ rules }) => `${rules.name} accepts key ids ${patterns(rules)}; the token's is ${token.keyId}`);
  return accepting.flatMap(issuer => refusalWords(denial.reason, issuer, token, explained));
}

function principalWords(principal: Principal, nowMs: number): readonly string[] {
  const { kind, issuerName, issuer, subject, permissions, tokenId, keyId, expiresAtS } = principal;
  return [
    `${kind} of issuer ${issuerName} (${issuer}), key ${keyId}`,
    `subject ${subject}, permissions ${permissions.length === 0 ? 'none' : permissions.join(' ')}${tokenId === null ? '' : `, token id ${tokenId}`}`,
    `expires at ${time(expiresAtS)}, in ${Math.round(expiresAtS - nowMs / 1_000)} s`,
  ];
}

interface ReadToken {
  readonly keyId: string;
  readonly claims: JsonObject;
  /** Whether it has the form of a session's access token, and the route takes such. */
  readonly isSession: boolean;
}

/** What the token says, whether or not any of it holds. */
function tokenOf({ head, inForce, ruling: { route } }: Explained): ReadToken | null {
  const fields = readFields(head, inForce.fieldRules);
  const bearer = fields.ok ? fields.value.bearer : null;
  if (bearer?.ok !== true) return null;
  const asSession = inForce.sessions === null || (route !== null && route.session === null) ? null : parseSessionToken(bearer.value);
  const isSession = asSession?.ok === true;
  const token = isSession ? asSession : parseServiceToken(bearer.value);
  if (!token.ok) return null;
  const payload = readPayload(token.value);
  return { keyId: token.value.keyId, claims: payload.ok ? payload.value : {}, isSession };
}

function sessionRefusalWords(reason: Reason, { keyId, claims }: ReadToken, { settings, keys }: SessionsInForce, nowMs: number): readonly string[] {
  switch (reason) {
    case 'issuer_mismatch':
      return [`iss is ${shown(claims['iss'])}; sessions have ${JSON.stringify(settings.issuer)}`];
    case 'keys_unavailable':
      return [`the keys of the Core cannot be had: ${keys.state().lastError ?? 'no answer'}`];
    case 'core_unavailable':
      return ['the Core has to be asked about this session, and gave no answer'];
    case 'key_id_refused':
    case 'key_unknown':
      return [`the Core has no key ${keyId} for sessions`];
    case 'session_expired':
    case 'token_not_yet_valid':
      return [`it is ${time(nowMs / 1_000)}; the token says ${timeClaims(claims)}`];
    default:
      return [];
  }
}

function refusalWords(reason: Reason, { rules, keys }: IssuerInForce, { keyId, claims }: ReadToken, { nowMs,
  ruling: { route } }: Explained): readonly string[] {
  const compare = (name: string, expected: readonly string[]): readonly string[] =>
    [`${name} is ${shown(claims[name])}; ${rules.name} asks for ${expected.map(value => JSON.stringify(value)).join(' or ')}`];
  switch (reason) {
    case 'keys_unavailable':
      return [`the keys of ${rules.name} cannot be had: ${keys.state().lastError ?? 'no answer'}`];
    case 'key_unknown':
      return [`${rules.name} has no key ${keyId}; it has ${keys.state().keys.map(key => key.keyId).join(' ') || 'none'}`];
    case 'issuer_mismatch':
      return compare('iss', [rules.issuer]);
    case 'audience_mismatch':
      return compare('aud', [rules.audience]);
    case 'source_mismatch':
      return compare('source', [...rules.sources]);
    case 'token_type_mismatch':
      return compare('token_type', [...rules.tokenTypes]);
    case 'issuer_not_accepted':
      return [`the route takes tokens of ${[...(route?.issuers ?? [])].join(' ')}`];
    case 'token_expired':
    case 'token_not_yet_valid':
    case 'lifetime_too_long':
      return [
        `it is ${time(nowMs / 1_000)}; the token says ${timeClaims(claims)}`,
        `${rules.name} allows ${rules.maxLifetimeS} s of life and ${rules.clockSkewS} s of skew`,
      ];
    case 'claim_malformed':
      return [`sub is ${shown(claims['sub'])}, permissions is ${shown(claims['permissions'])}, jti is ${shown(claims['jti'])}, ${timeClaims(claims)}`,
        'exp, iat and nbf have to be whole numbers, sub and jti visible ASCII, permissions a list of texts without spaces'];
    case 'session_claim_present':
      return ['it carries claims of a user session'];
    default:
      return [];
  }
}

function timeClaims(claims: JsonObject): string {
  return ['iat', 'nbf', 'exp'].filter(name => claims[name] !== undefined).map((name) => {
    const value = claims[name];
    return `${name} ${typeof value === 'number' ? `${value} (${time(value)})` : shown(value)}`;
  }).join(', ');
}

function patterns({ keyIds: { accept, reject } }: IssuerRules): string {
  return `${accept.join(' ')}${reject.length === 0 ? '' : ` but not ${reject.join(' ')}`}`;
}

function shown(value: JsonValue | undefined): string {
  const text = value === undefined ? 'missing' : JSON.stringify(value);
  return text.length <= maxShown ? text : `${text.slice(0, maxShown)}…`;
}

function time(seconds: number): string {
  const date = new Date(Math.floor(seconds) * 1_000);
  return Number.isNaN(date.getTime()) ? 'no time' : date.toISOString().replace('.000Z', 'Z');
}
