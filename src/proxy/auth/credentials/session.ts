import {
  sessionKeyIds,
  parseSessionToken,
  verifySessionClaims,
  type SessionClaims,
  sessionIssuerName,
} from '../../../decision/session/token.js';
import { maxSubjectLength, type Principal } from '../../../decision/token/principal.js';
import { timingSafeEqual } from 'node:crypto';
import type { SessionSettings } from '../../../config/types.js';
import { readPayload, type SignedToken } from '../../../decision/token/compact-jws.js';
import type { Credential } from '../../../decision/token/credential.js';
import { denial, type Denial, type Reason, type SessionResponse } from '../../../decision/denial.js';
import { acceptsKeyId } from '../../../decision/token/kid-filter.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import { isVisibleAscii } from '../../../lib/text.js';
import type { KeyAsker, KeyLookup, KeySource, OpenConnection, SessionVerifier } from '../../../ports/auth.js';
import { checkSignature } from '../signature-queue.js';
import { missingKey, signatureProblem } from './service-token.js';

/** What verifies sessions. */
export interface ActiveSessions {
  readonly settings: SessionSettings;
  /** The Core's keys. */
  readonly keys: KeySource;
  readonly verifier: SessionVerifier;
}

type SessionCredential = Extract<Credential, { kind: 'session' }>;
type Verdict = Result<Principal, Denial>;

/**
 * Verifies a session: its form, its signature under the Core's keys, exact `iss`, times and anti-CSRF here, and then
 * all of it by the SDK, which asks the Core where it has to. The SDK sees only what the Core signed, so nobody without
 * a session can make it ask. Refusals are like those of any caller until the signature held; from then on they are
 * those that frontends act on.
 *
 * @param again what was let in and is authorized again; `null` where it is a request.
 */
export async function verifySession(
  credential: SessionCredential,
  method: string,
  sessions: ActiveSessions,
  nowMs: number,
  asker: KeyAsker | null = null,
  again: OpenConnection | null = null,
): Promise<Verdict> {
  const token = parseSessionToken(credential.token);
  if (!token.ok) return token;
  if (!acceptsKeyId(sessionKeyIds, token.value.keyId)) return refuse(denial('key_id_refused'));
  const lookup = await find(sessions.keys, token.value.keyId, asker);
  if (lookup.kind !== 'found') return refuse(missingKey(lookup.kind));
  const problem = signatureProblem(await checkSignature(token.value, { ...lookup.key, algorithm: 'RS256' }, asker));
  if (problem !== null) return refuse(problem);
  const claims = readClaims(token.value, sessions, asker?.now() ?? nowMs);
  if (!claims.ok) return claims;
  if (credential.from === 'cookie' && !provesOrigin(credential, claims.value, method)) {
    return refuseSession('anti_csrf_missing', 'try refresh token');
  }
  return vouch(credential, token.value, claims.value, sessions, again);
}

/** Tells that a session that was verified is revoked here: its user has to sign in again. */
export function asSessionRefusal(reason: Denial): Denial {
  return { ...reason, session: { message: 'unauthorised' } };
}

async function find(keys: KeySource, keyId: string, asker: KeyAsker | null): Promise<KeyLookup> {
  try {
    return await keys.find(keyId, asker ?? 'fetch');
  } catch {
    // A key source must not reject; if it does, answer 503.
    return { kind: 'unavailable' };
  }
}

function readClaims(token: SignedToken, { settings }: ActiveSessions, nowMs: number): Result<SessionClaims, Denial> {
  const payload = readPayload(token);
  if (!payload.ok) return payload;
  const claims = verifySessionClaims(payload.value, settings.issuer, nowMs);
  if (claims.ok) return claims;
  return refuseSession(
    claims.error.reason,
    claims.error.reason === 'session_expired' ? 'try refresh token' : 'unauthorised',
  );
}

/**
 * Whether a page that may do so made the request: a browser adds cookies to whatever any page sends. Where the session
 * has an anti-CSRF token, the request has to repeat it; otherwise it has to have a `rid`, which a foreign page cannot
 * add without asking first (CORS). GET is left out, as in the SDK.
 */
function provesOrigin({ headers }: SessionCredential, { antiCsrfToken }: SessionClaims, method: string): boolean {
  if (method === 'GET') return true;
  if (antiCsrfToken === null) return headers.hasRid;
  const [given, expected] = [Buffer.from(headers.antiCsrf ?? ''), Buffer.from(antiCsrfToken)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

async function vouch(
  credential: SessionCredential,
  { keyId }: SignedToken,
  claims: SessionClaims,
  sessions: ActiveSessions,
  again: OpenConnection | null,
): Promise<Verdict> {
  const { settings, verifier } = sessions;
  const asksCore = settings.checkDatabase || claims.isUnconfirmed;
  const asker = { user: claims.subject, expiresAtMs: claims.expiresAtS * 1_000, again };
  const vouched = await verifier.verify(credential.token, asksCore, asker);
  if (!vouched.ok) {
    switch (vouched.error) {
      case 'refresh':
        return refuseSession('session_expired', 'try refresh token');
      case 'refused':
        return refuseSession('session_refused', 'unauthorised');
      case 'unavailable':
        return refuse(denial('core_unavailable'));
    }
  }
  const { userId, claims: payload, renewed } = vouched.value;
  if (!isVisibleAscii(userId, maxSubjectLength)) return refuseSession('claim_malformed', 'unauthorised');
  return accept({
    kind: 'session',
    issuerName: sessionIssuerName,
    issuer: settings.issuer,
    subject: userId,
    permissions: [],
    tokenId: null,
    keyId,
    expiresAtS: claims.expiresAtS,
    issuedAtS: claims.issuedAtS,
    session: { claims: payload, renewed: renewed === null ? null : { ...renewed, to: credential.from } },
  });
}

function refuseSession(
  reason: Reason,
  message: Exclude<SessionResponse, { message: 'invalid claim' }>['message'],
): Result<never, Denial> {
  return refuse({ reason, session: { message } });
}
