import { type KeyIdRules } from '../route/policy.js';
import { isNumericDate } from '../token/service-token.js';
import { maxSubjectLength } from '../token/principal.js';
import { parseCompactJws, type SignedToken } from '../token/compact-jws.js';
import { denial, type Denial, type Reason } from '../denial.js';
import { isKeyId } from '../token/kid-filter.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { JsonObject, JsonValue } from '../../lib/strict-json.js';
import { largestClockSkewS } from '../idempotency/dispatch-check.js';
import { isVisibleAscii } from '../../lib/text.js';

/** The name of sessions among issuers, in the config, logs and metrics. */
export const sessionIssuerName = 'sessions';

/** The SDK takes dynamic keys alone, unless the service that makes the sessions is told otherwise. */
export const sessionKeyIds: KeyIdRules = { accept: ['d-*'], reject: [] };

/** What a session's access token says, once its signature held. */
export interface SessionClaims {
  /** The user id: visible ASCII, 1 to 1,024 characters. */
  readonly subject: string;
  /** Seconds since the epoch. */
  readonly issuedAtS: number;
  readonly expiresAtS: number;
  /** What the caller has to repeat in `anti-csrf`, where the session was made with anti-CSRF tokens. */
  readonly antiCsrfToken: string | null;
  /** Whether only the Core can tell that the session still stands: the token is the first one after a refresh. */
  readonly isUnconfirmed: boolean;
}

/** Every member that the header of an access token may have. */
export const sessionHeaderMembers: ReadonlySet<string> = new Set(['alg', 'kid', 'typ', 'version']);

/** Versions of access tokens that name their key and their issuer. */
export const sessionVersions: ReadonlySet<JsonValue | undefined> = new Set(['3', '4', '5']);

/** What marks a service token. A session that bears such a mark was made by somebody else than the session recipe. */
export const serviceClaims = ['source', 'token_type'] as const;

/**
 * Takes an access token of a session apart: a compact JWS with a header of `alg` RS256, `typ` JWT, `kid` and `version`
 * 3 to 5. Only the Core's session recipe sets `version`: what `POST /recipe/jwt` signs cannot have it, whatever its
 * payload says.
 */
export function parseSessionToken(token: string): Result<SignedToken, Denial> {
  return parseCompactJws(token, readHeader);
}

/**
 * Tells whether a header has the form of an access token of a session. Who sends such a token means a session; whether
 * the token is one is another question.
 */
export function isSessionHeader(header: JsonObject | null): boolean {
  return header !== null && header['version'] !== undefined;
}

function readHeader(header: JsonObject): Result<string, Reason> {
  const { alg, kid, typ, version } = header;
  if (alg !== 'RS256') return refuse('algorithm_refused');
  if (!isKeyId(kid)) return refuse('key_id_refused');
  if (typ !== 'JWT' || !sessionVersions.has(version)) return refuse('token_malformed');
  if (!Object.keys(header).every((name) => sessionHeaderMembers.has(name))) return refuse('token_malformed');
  return accept(kid);
}

/**
 * Holds the claims of an access token whose signature was verified: exact `iss`, no mark of a service token, the
 * members that make it a session, and its times. `nowMs` is milliseconds since the epoch. The SDK looks at it as well;
 * it does not look at `iss`.
 */
export function verifySessionClaims(payload: JsonObject, issuer: string, nowMs: number): Result<SessionClaims, Denial> {
  if (serviceClaims.some((name) => payload[name] !== undefined)) return refuse(denial('service_claim_present'));
  const { iss, sub, exp, iat, stt, sessionHandle, refreshTokenHash1, parentRefreshTokenHash1, antiCsrfToken } = payload;
  if (iss !== issuer) return refuse(denial('issuer_mismatch'));
  if (!isText(sessionHandle) || !isText(refreshTokenHash1) || (stt !== undefined && stt !== 0)) {
    return refuse(denial('claim_malformed'));
  }
  if (!isVisibleAscii(sub, maxSubjectLength) || !isNumericDate(exp) || !isNumericDate(iat)) {
    return refuse(denial('claim_malformed'));
  }
  if (!isAbsentOrText(antiCsrfToken) || !isAbsentOrText(parentRefreshTokenHash1)) {
    return refuse(denial('claim_malformed'));
  }
  if (iat * 1000 > nowMs + largestClockSkewS * 1000) return refuse(denial('token_not_yet_valid'));
  if (nowMs >= exp * 1000) return refuse(denial('session_expired'));
  return accept({
    subject: sub,
    issuedAtS: iat,
    expiresAtS: exp,
    antiCsrfToken: antiCsrfToken ?? null,
    isUnconfirmed: isText(parentRefreshTokenHash1),
  });
}

function isText(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== '';
}

/** The Core writes `null` where there is none. */
function isAbsentOrText(value: JsonValue | undefined): value is string | null | undefined {
  return value === undefined || value === null || isText(value);
}
