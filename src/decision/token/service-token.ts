import type { Confirmation } from '../binding/confirmation.js';
import { maxSubjectLength } from './principal.js';
import { parseCompactJws, type SignedToken } from './compact-jws.js';
import { type Denial, type Reason, denial } from '../denial.js';
import { coreKeyRules } from './profiles.js';
import { headerProblem, type TokenHeaderRules } from './service-header.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { type JsonObject, isJsonArray, type JsonValue } from '../../lib/strict-json.js';
import type { IssuerRules } from '../route/policy.js';
import { isVisibleAscii } from '../../lib/text.js';

/** What the header of a Core's token is held to, whichever keys count. */
const coreHeader: TokenHeaderRules = {
  profile: 'core',
  algorithms: coreKeyRules.algorithms,
  headerTypes: new Set(),
  keyIds: { accept: ['*'], reject: [] },
};

/**
 * Takes a service token of the Core apart: a compact JWS with a header of `alg` RS256, `kid` and perhaps `typ`. A
 * refusal is `token_malformed`, `algorithm_refused` or `key_id_refused`.
 */
export function parseServiceToken(token: string): Result<SignedToken, Denial> {
  return parseCompactJws(token, (header) => {
    const problem = headerProblem(header, coreHeader);
    return problem === null ? accept(keyIdOf(header)) : refuse(problem);
  });
}

/** Takes a service token apart, whoever issued it: its header is still to be held to the rules of an issuer. */
export function parseTokenForm(token: string): Result<SignedToken, Denial> {
  return parseCompactJws(token, (header) => accept(keyIdOf(header)));
}

/** The `kid`, or nothing that any key is called. */
export function keyIdOf({ kid }: JsonObject): string {
  return typeof kid === 'string' ? kid : '';
}

/** What a service token says, once its signature and every rule of its issuer held. */
export interface ServiceClaims {
  /** Visible ASCII, 1 to 1,024 characters. */
  readonly subject: string;
  /**
   * In the order of the token; RFC 6749 §3.3 scope-tokens, so that a space can stand between them. Others are left out:
   * they grant nothing.
   */
  readonly permissions: readonly string[];
  /** The `jti`, where there is one: visible ASCII, 1 to 256 characters. */
  readonly tokenId: string | null;
  /** Seconds since the epoch. */
  readonly expiresAtS: number;
  /** Seconds since the epoch, where the token has an `iat`. */
  readonly issuedAtS: number | null;
  /** What whoever sends it has to prove; left out where that is nothing. */
  readonly confirmation?: Confirmation;
}

/** Each is compared with what a route asks for. The token's 8 KiB bound their text, and so the header. */
export const maxPermissions = 1_000;

/** A token id goes to a header and into the name of a stored record. */
const maxTokenIdLength = 256;

/**
 * What only user sessions carry: a service token with one of them would pass for a session elsewhere, and is none here.
 */
export const sessionClaims = ['sessionHandle', 'refreshTokenHash1', 'stt'] as const;

/** RFC 6749 §3.3 `scope-token`: visible ASCII but `"` and `\`. */
export const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * Holds the claims of a token whose signature was verified against its issuer's rules. `nowMs` is
 * milliseconds since the epoch, claims are seconds. The first rule that fails names the refusal; what the token is
 * comes before what time it is, so that among several issuers the reason tells which one it was meant for.
 */
export function verifyClaims(payload: JsonObject, rules: IssuerRules, nowMs: number): Result<ServiceClaims, Denial> {
  const mismatch = findMismatch(payload, rules);
  if (mismatch !== null) return refuse(denial(mismatch));

  const times = readTimes(payload, rules, nowMs);
  if (!times.ok) return times;

  const { sub, permissions, jti } = payload;
  if (!isVisibleAscii(sub, maxSubjectLength) || !isPermissions(permissions) || !isAbsentOr(isTokenId, jti)) {
    return refuse(denial('claim_malformed'));
  }
  return accept({
    subject: sub,
    permissions: grantsOf(permissions),
    tokenId: jti ?? null,
    expiresAtS: times.value.expiresAtS,
    issuedAtS: times.value.issuedAtS,
  });
}

/** What kind of token it is, by whom and for whom. Compared as strings: an array that holds the right one is not it. */
function findMismatch(payload: JsonObject, rules: IssuerRules): Reason | null {
  const { iss, aud, source, token_type: tokenType } = payload;
  if (sessionClaims.some((name) => payload[name] !== undefined)) return 'session_claim_present';
  if (iss !== rules.issuer) return 'issuer_mismatch';
  if (aud !== rules.audience) return 'audience_mismatch';
  if (!isOneOf(rules.sources, source)) return 'source_mismatch';
  if (!isOneOf(rules.tokenTypes, tokenType)) return 'token_type_mismatch';
  return null;
}

interface Times {
  readonly exp: number;
  readonly nbf: number | undefined;
  readonly iat: number | undefined;
}

/**
 * Reads until when a token counts, where it counts at `nowMs`: whole numbers, of which `exp` has to be there (RFC 7519
 * §4.1.4 to §4.1.6), within the issuer's skew and longest life.
 */
export function readTimes(
  { exp, nbf, iat }: JsonObject,
  rules: Pick<IssuerRules, 'clockSkewS' | 'maxLifetimeS'>,
  nowMs: number,
): Result<Pick<ServiceClaims, 'expiresAtS' | 'issuedAtS'>, Denial> {
  if (!isNumericDate(exp) || !isAbsentOr(isNumericDate, nbf) || !isAbsentOr(isNumericDate, iat)) {
    return refuse(denial('claim_malformed'));
  }
  const untimely = findTimeProblem({ exp, nbf, iat }, rules, nowMs);
  return untimely === null ? accept({ expiresAtS: exp, issuedAtS: iat ?? null }) : refuse(denial(untimely));
}

/** Compared in milliseconds: rounding the clock to seconds would move each boundary by up to one. */
function findTimeProblem(
  { exp, nbf, iat }: Times,
  rules: Pick<IssuerRules, 'clockSkewS' | 'maxLifetimeS'>,
  nowMs: number,
): Reason | null {
  const skewMs = rules.clockSkewS * 1000;
  const capMs = rules.maxLifetimeS * 1000;
  if (nowMs >= exp * 1000 + skewMs) return 'token_expired';
  if (nbf !== undefined && nbf * 1000 > nowMs + skewMs) return 'token_not_yet_valid';
  if (iat !== undefined && iat * 1000 > nowMs + skewMs) return 'token_not_yet_valid';
  if (exp * 1000 - nowMs > capMs + skewMs) return 'lifetime_too_long';
  if (iat !== undefined && exp - iat > rules.maxLifetimeS) return 'lifetime_too_long';
  return null;
}

/**
 * RFC 7519 §2 NumericDate without a fraction, within the range where a double is exact. A number is its value, however
 * it is spelled (RFC 8259 §6): the Core's Java writes integers of the payload as `1.7E9`.
 */
export function isNumericDate(value: JsonValue | undefined): value is number {
  return Number.isSafeInteger(value);
}

export function isOneOf(values: ReadonlySet<string>, value: JsonValue | undefined): boolean {
  return typeof value === 'string' && values.has(value);
}

function isPermissions(value: JsonValue | undefined): value is readonly string[] {
  return isJsonArray(value) && value.length <= maxPermissions && value.every((item) => typeof item === 'string');
}

/**
 * Whether a permission can grant anything here: what has a blank in it would be two to whoever splits the header.
 */
export function isGrant(permission: string): boolean {
  return scopeToken.test(permission);
}

/** What of a token's permissions counts: docs/adr/0010-permissions-that-grant-nothing.md. */
export function grantsOf(permissions: readonly string[]): readonly string[] {
  return permissions.every(isGrant) ? permissions : permissions.filter(isGrant);
}

/** Narrower than the bytes that the claim may hold by its RFC: docs/adr/0006-token-id-visible-ascii.md. */
export function isTokenId(value: JsonValue | undefined): value is string {
  return isVisibleAscii(value, maxTokenIdLength);
}

/** What form a claim of a service token has to have, for words about one that has another. */
interface ClaimForm {
  readonly name: string;
  readonly isRequired: boolean;
  readonly holds: (value: JsonValue | undefined) => boolean;
}

export const claimForms: readonly ClaimForm[] = [
  { name: 'exp', isRequired: true, holds: isNumericDate },
  { name: 'nbf', isRequired: false, holds: isNumericDate },
  { name: 'iat', isRequired: false, holds: isNumericDate },
  { name: 'sub', isRequired: true, holds: (value) => isVisibleAscii(value, maxSubjectLength) },
  { name: 'permissions', isRequired: true, holds: isPermissions },
  { name: 'jti', isRequired: false, holds: isTokenId },
];

/** A claim that is `null` is present. */
export function isAbsentOr<T extends JsonValue>(
  isRight: (value: JsonValue | undefined) => value is T,
  value: JsonValue | undefined,
): value is T | undefined {
  return value === undefined || isRight(value);
}
