/** What an authorization server answers at its token endpoint, and what a bearer token looks like. */
import { isNumericDate } from '../token/service-token.js';
import { maxTokenBytes, parseCompactJws, readPayload } from '../token/compact-jws.js';
import { bearerDigest } from '../token/credential.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { JsonObject, JsonValue } from '../../lib/strict-json.js';
import { isB64Token } from '../../lib/text.js';

/** A token that was issued. */
interface IssuedToken {
  readonly token: string;
  /** Milliseconds from the request on. */
  readonly lifetimeMs: number;
}

/** Of a token whose life nobody tells: RFC 6749 §5.1 only recommends `expires_in`. */
const unknownLifetimeMs = 5 * 60_000;

/** Whatever the server says, a token is asked for once a day. */
const maxLifetimeMs = 24 * 3_600_000;

/** Whether a text can stand behind `Bearer`: 1 to 8,192 characters. */
export function isBearerToken(text: string): boolean {
  return text.length <= maxTokenBytes && isB64Token(text);
}

/**
 * When a token ends that is a JWT and says so, seconds since the epoch; `null` where it is none, or does not. Nothing
 * is verified: this only bounds for how long it is kept.
 */
export function expiryOf(token: string): number | null {
  const parsed = parseCompactJws(token, () => accept(''));
  if (!parsed.ok) return null;
  const payload = readPayload(parsed.value);
  const exp = payload.ok ? payload.value['exp'] : undefined;
  return isNumericDate(exp) ? exp : null;
}

/**
 * Whose a token is, the same for each of the tokens of one subject: `iss` and `sub` of a JWT; `null` where it has none
 * that can be read. Nothing is verified: a token that its issuer does not take is not sent on behalf of anybody.
 */
export function subjectIn(token: string): string | null {
  const parsed = parseCompactJws(token, () => accept(''));
  const payload = parsed.ok ? readPayload(parsed.value) : parsed;
  const { iss, sub } = payload.ok ? payload.value : {};
  return typeof iss === 'string' && typeof sub === 'string' ? JSON.stringify([iss, sub]) : null;
}

/** The same, and the digest of the token itself where it names nobody: its next one is another caller's then. */
export function callerIn(token: string): string {
  return subjectIn(token) ?? bearerDigest(token);
}

/**
 * Reads a successful response (RFC 6749 §5.1). Refuses, in words that follow "it" and quote nothing, what is no token
 * of this type (RFC 6750 §4, RFC 9449 §5) that lives for a second at least.
 */
export function readIssuedToken(
  body: JsonObject,
  nowMs: number,
  wanted: 'Bearer' | 'DPoP' = 'Bearer',
): Result<IssuedToken, string> {
  const { access_token: token, token_type: type, expires_in: expiresIn } = body;
  if (typeof token !== 'string' || !isBearerToken(token)) {
    return refuse(`has no access_token of 1 to ${String(maxTokenBytes)} characters that a header can carry`);
  }
  if (typeof type !== 'string' || type.toLowerCase() !== wanted.toLowerCase()) {
    return refuse(`has another token_type than ${wanted}`);
  }
  const lifetimeMs = lifetimeOf(expiresIn, token, nowMs);
  if (lifetimeMs === null) return refuse('has an expires_in that is no number of seconds, 1 or more');
  return lifetimeMs < 1_000
    ? refuse('has a token that is over already')
    : accept({ token, lifetimeMs: Math.min(lifetimeMs, maxLifetimeMs) });
}

function lifetimeOf(expiresIn: JsonValue | undefined, token: string, nowMs: number): number | null {
  if (expiresIn === undefined || expiresIn === null) {
    const exp = expiryOf(token);
    return exp === null ? unknownLifetimeMs : exp * 1_000 - nowMs;
  }
  // Some servers write the number as a text.
  const seconds = typeof expiresIn === 'string' && /^\d{1,15}$/.test(expiresIn) ? Number(expiresIn) : expiresIn;
  return typeof seconds === 'number' && seconds >= 1 ? seconds * 1_000 : null;
}

/** RFC 6749 §5.2, RFC 6750 §3.1, RFC 8693 §2.2.2, RFC 8707 §2, RFC 8628 §3.5. Other words are not repeated. */
const knownErrors: ReadonlySet<string> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'invalid_token',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  'access_denied',
  'interaction_required',
  'use_dpop_nonce',
  'invalid_dpop_proof',
]);

/** RFC 6749 §5.2: what of its errors is about who asks. */
export const clientErrors: ReadonlySet<unknown> = new Set(['invalid_client', 'unauthorized_client']);

/** What is about the proof of who asks (RFC 9449 §5, §8). */
const proofErrors: ReadonlySet<unknown> = new Set(['use_dpop_nonce', 'invalid_dpop_proof']);

/** What is about what this client asks for, whoever the caller is, where it is not about the token (RFC 6749 §5.2). */
const requestErrors: ReadonlySet<unknown> = new Set(['unsupported_grant_type', 'invalid_scope']);

/** What a place answers that gives no tokens, or none now: an ingress or a filter with nothing behind it, a proxy. */
const statusesOfPlace: ReadonlySet<number> = new Set([403, 404, 405, 407, 408, 410]);

/** What a response that brings no token means. */
interface TokenRefusal {
  readonly problem: 'away' | 'refused' | 'subject';
  /** In words that quote nothing but a word of the RFCs. */
  readonly reason: string;
  /** Whether the caller's own token may be why, though it does not look so. */
  readonly mayBeOfSubject: boolean;
}

/**
 * Reads a response with another status than 200. With a caller's own token, what is not about who asks is of that
 * token, or may be: servers, and filters before them, refuse an odd one with any status, and it must not keep others
 * from theirs.
 *
 * @param body where it is a JSON object.
 * @param hasSubject whether a caller's own token was part of what was asked.
 */
export function readTokenRefusal(status: number, body: JsonObject | null, hasSubject: boolean): TokenRefusal {
  const withStatus = `status ${String(status)}`;
  if (status === 429 || status >= 500) {
    const reason = `the issuer failed or has too much to do (${withStatus})`;
    return { problem: 'away', reason, mayBeOfSubject: hasSubject };
  }
  const written = body?.['error'];
  const word = typeof written === 'string' && knownErrors.has(written) ? written : null;
  const said = word !== null ? `${word}, ${withStatus}` : withStatus;
  if (hasSubject && word === null && (status < 300 || statusesOfPlace.has(status))) {
    return { problem: 'away', reason: `no issuer gives tokens there (${said})`, mayBeOfSubject: true };
  }
  const isOfClient = clientErrors.has(word) || proofErrors.has(word) || (status === 401 && word === null);
  return hasSubject && !isOfClient && status !== 401 && !requestErrors.has(word)
    ? { problem: 'subject', reason: `the issuer does not take the caller’s own token (${said})`, mayBeOfSubject: false }
    : {
        problem: 'refused',
        reason: `the issuer gives this client no such token (${said})`,
        mayBeOfSubject: hasSubject && !isOfClient,
      };
}
