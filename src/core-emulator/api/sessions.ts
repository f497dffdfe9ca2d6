import { randomUUID } from 'node:crypto';
import type { Call, Core } from '../context.js';
import { isFrom, type Version } from '../cdi-version.js';
import { boolean, object, optional, readFields, string, strings, type Fields } from '../http/body.js';
import { json, text, type Message } from '../http/messages.js';
import type { SessionRecord } from '../storage/sessions.js';
import {
  issueAccessToken,
  issueRefreshToken,
  protectedClaims,
  readAccessToken,
  readRefreshToken,
  refreshValidityMs,
  sha256,
  type RefreshClaims,
} from '../keys/session-tokens.js';

const ended = { status: 'UNAUTHORISED', message: 'Either the session has ended or has been blacklisted' };

/** `POST /recipe/session`. */
export async function createSession({ core, fields, version }: Call): Promise<Message> {
  const asked = readFields(fields, {
    userId: string,
    enableAntiCsrf: boolean,
    userDataInJWT: object,
    userDataInDatabase: object,
    useDynamicSigningKey: optional(boolean),
  });
  if ('refused' in asked) return text(400, asked.refused);
  if (holdsProtectedClaim(asked.userDataInJWT)) return text(400, 'The user payload contains protected field');
  core.records.sessions.sweep(core.now());
  const handle = randomUUID();
  const antiCsrfToken = asked.enableAntiCsrf ? randomUUID() : null;
  const refreshToken = issueRefreshToken(core, {
    sessionHandle: handle,
    userId: asked.userId,
    parentRefreshTokenHash1: null,
    antiCsrfToken,
  });
  const refreshTokenHash1 = sha256(refreshToken.token);
  const session: SessionRecord = {
    handle,
    userId: asked.userId,
    refreshTokenHash2: sha256(refreshTokenHash1),
    userDataInJwt: asked.userDataInJWT,
    userDataInDatabase: asked.userDataInDatabase,
    usesDynamicKey: asked.useDynamicSigningKey !== false,
    timeCreated: core.now(),
    expiryMs: refreshToken.expiry,
  };
  core.records.make({ type: 'session', session });
  const claims = { sessionHandle: handle, refreshTokenHash1, parentRefreshTokenHash1: null, antiCsrfToken };
  return withTokens(core, session, claims, refreshToken, version);
}

/** `POST /recipe/session/verify`: the first use after a refresh makes the new refresh token the one in use. */
export async function verifySession({ core, fields, version }: Call): Promise<Message> {
  const asked = readFields(fields, {
    accessToken: string,
    antiCsrfToken: optional(string),
    doAntiCsrfCheck: boolean,
    enableAntiCsrf: boolean,
    checkDatabase: optional(boolean),
  });
  if ('refused' in asked) return text(400, asked.refused);
  const claims = await readAccessToken(core, asked.accessToken);
  if (claims === null) return json(200, { status: 'TRY_REFRESH_TOKEN', message: 'Access token is invalid or expired' });
  if (
    asked.enableAntiCsrf &&
    asked.doAntiCsrfCheck &&
    (claims.antiCsrfToken === null || asked.antiCsrfToken !== claims.antiCsrfToken)
  ) {
    return json(200, { status: 'TRY_REFRESH_TOKEN', message: 'anti-csrf check failed' });
  }
  const session = sessionOf(core, claims.sessionHandle);
  if (claims.parentRefreshTokenHash1 === null) {
    if (session === undefined && asked.checkDatabase === true) return json(200, ended);
    const { payload } = claims;
    const told = {
      handle: claims.sessionHandle,
      userId: String(payload['sub']),
      userDataInJwt: withoutProtected(payload),
    };
    return json(200, { status: 'OK', session: sessionJson(session ?? told, version) });
  }
  if (session === undefined) return json(200, ended);
  const isFirstUse = session.refreshTokenHash2 === sha256(claims.parentRefreshTokenHash1);
  const isCurrent = session.refreshTokenHash2 === sha256(claims.refreshTokenHash1);
  const inUse = isFirstUse ? promote(core, session, claims.refreshTokenHash1) : session;
  const told = { status: 'OK', session: sessionJson(inUse, version) };
  if (!isFirstUse && !isCurrent) return json(200, told);
  return json(200, {
    ...told,
    accessToken: await issueAccessToken(core, inUse, { ...claims, parentRefreshTokenHash1: null }, version),
  });
}

/** `POST /recipe/session/refresh`. A refresh token that was already replaced is taken for stolen. */
export async function refreshSession({ core, fields, version }: Call): Promise<Message> {
  const asked = readFields(fields, {
    refreshToken: string,
    antiCsrfToken: optional(string),
    enableAntiCsrf: boolean,
    useDynamicSigningKey: optional(boolean),
  });
  if ('refused' in asked) return text(400, asked.refused);
  const claims = readRefreshToken(core, asked.refreshToken);
  if (claims === null) return json(200, { status: 'UNAUTHORISED', message: 'Refresh token is invalid' });
  if (asked.enableAntiCsrf && claims.antiCsrfToken !== null && asked.antiCsrfToken !== claims.antiCsrfToken) {
    return json(200, { status: 'UNAUTHORISED', message: 'Anti CSRF token missing, or not matching' });
  }
  const found = sessionOf(core, claims.sessionHandle);
  if (found === undefined) {
    return json(200, { status: 'UNAUTHORISED', message: 'Session missing in db or has expired' });
  }
  const parent = sha256(asked.refreshToken);
  const inUse = inUseWith(core, found, claims, parent);
  if (inUse === null) return json(200, { status: 'TOKEN_THEFT_DETECTED', session: sessionJson(found, version) });
  const session =
    asked.useDynamicSigningKey === undefined ? inUse : { ...inUse, usesDynamicKey: asked.useDynamicSigningKey };
  if (session.usesDynamicKey !== inUse.usesDynamicKey) core.records.make({ type: 'session', session });
  const antiCsrfToken = asked.enableAntiCsrf ? randomUUID() : null;
  const refreshToken = issueRefreshToken(core, { ...claims, parentRefreshTokenHash1: parent, antiCsrfToken });
  const access = {
    sessionHandle: session.handle,
    refreshTokenHash1: sha256(refreshToken.token),
    parentRefreshTokenHash1: parent,
    antiCsrfToken,
  };
  return withTokens(core, session, access, refreshToken, version);
}

/** `POST /recipe/session/regenerate`: other claims in the same session. */
export async function regenerateSession({ core, fields, version }: Call): Promise<Message> {
  const asked = readFields(fields, { accessToken: string, userDataInJWT: optional(object) });
  if ('refused' in asked) return text(400, asked.refused);
  if (asked.userDataInJWT !== undefined && holdsProtectedClaim(asked.userDataInJWT)) {
    return text(400, 'The user payload contains protected field');
  }
  const claims = await readAccessToken(core, asked.accessToken);
  const found = claims === null ? undefined : sessionOf(core, claims.sessionHandle);
  if (claims === null || found === undefined) {
    return json(200, { status: 'UNAUTHORISED', message: 'Session does not exist.' });
  }
  const session = asked.userDataInJWT === undefined ? found : { ...found, userDataInJwt: asked.userDataInJWT };
  core.records.make({ type: 'session', session });
  return json(200, {
    status: 'OK',
    session: sessionJson(session, version),
    accessToken: await issueAccessToken(core, session, claims, version),
  });
}

/** `POST /recipe/session/remove`: by handle, or every one of a user. */
export function removeSessions({ core, fields }: Call): Message {
  const asked = readFields(fields, { userId: optional(string), sessionHandles: optional(strings) });
  if ('refused' in asked) return text(400, asked.refused);
  if ((asked.userId === undefined) === (asked.sessionHandles === undefined)) {
    return text(400, 'Invalid JSON input - use one of userId or sessionHandles array');
  }
  const handles = asked.sessionHandles ?? core.records.sessions.byUser(asked.userId ?? '').map(({ handle }) => handle);
  const sessionHandlesRevoked = [...new Set(handles)].filter((handle) => sessionOf(core, handle) !== undefined);
  for (const handle of sessionHandlesRevoked) core.records.make({ type: 'session_removed', handle });
  return json(200, { status: 'OK', sessionHandlesRevoked });
}

/** `GET /recipe/session`. */
export function describeSession({ core, query, version }: Call): Message {
  const handle = query.get('sessionHandle');
  if (handle === null) return text(400, "Field name 'sessionHandle' is missing in GET request");
  const session = sessionOf(core, handle);
  if (session === undefined) return json(200, { status: 'UNAUTHORISED', message: 'Session does not exist.' });
  const { timeCreated, expiryMs, userDataInDatabase } = session;
  const { handle: sessionHandle, ...rest } = sessionJson(session, version);
  return json(200, { status: 'OK', sessionHandle, ...rest, userDataInDatabase, timeCreated, expiry: expiryMs });
}

/** `GET /recipe/session/user`. */
export function listSessions({ core, query }: Call): Message {
  const userId = query.get('userId');
  if (userId === null) return text(400, "Field name 'userId' is missing in GET request");
  const alive = core.records.sessions.byUser(userId).filter(({ expiryMs }) => expiryMs > core.now());
  return json(200, { status: 'OK', sessionHandles: alive.map(({ handle }) => handle) });
}

/** The session with this refresh token in use, made so where its parent was; `null` where it was replaced before. */
function inUseWith(
  core: Core,
  session: SessionRecord,
  { parentRefreshTokenHash1 }: RefreshClaims,
  hash1: string,
): SessionRecord | null {
  if (session.refreshTokenHash2 === sha256(hash1)) return session;
  const isSuccessor = parentRefreshTokenHash1 !== null && session.refreshTokenHash2 === sha256(parentRefreshTokenHash1);
  return isSuccessor ? promote(core, session, hash1) : null;
}

function promote(core: Core, session: SessionRecord, refreshTokenHash1: string): SessionRecord {
  const promoted = {
    ...session,
    refreshTokenHash2: sha256(refreshTokenHash1),
    expiryMs: core.now() + refreshValidityMs,
  };
  core.records.make({ type: 'session', session: promoted });
  return promoted;
}

function sessionOf({ records, now }: Core, handle: string): SessionRecord | undefined {
  const session = records.sessions.byHandle(handle);
  return session === undefined || session.expiryMs <= now() ? undefined : session;
}

type Told = Pick<SessionRecord, 'handle' | 'userId' | 'userDataInJwt'>;

function sessionJson({ handle, userId, userDataInJwt }: Told, version: Version): Readonly<Record<string, unknown>> {
  return {
    handle,
    userId,
    ...(isFrom('4.0', version) ? { recipeUserId: userId } : {}),
    userDataInJWT: userDataInJwt,
    ...(isFrom('3.0', version) ? { tenantId: 'public' } : {}),
  };
}

/** Says that there is a session, with a new access token beside the new refresh token. */
async function withTokens(
  core: Core,
  session: SessionRecord,
  claims: Parameters<typeof issueAccessToken>[2],
  refreshToken: ReturnType<typeof issueRefreshToken>,
  version: Call['version'],
): Promise<Message> {
  return json(200, {
    status: 'OK',
    session: sessionJson(session, version),
    accessToken: await issueAccessToken(core, session, claims, version),
    refreshToken,
    ...antiCsrf(claims.antiCsrfToken),
  });
}

function antiCsrf(antiCsrfToken: string | null): Readonly<Record<string, unknown>> {
  return antiCsrfToken === null ? {} : { antiCsrfToken };
}

function holdsProtectedClaim(payload: Fields): boolean {
  return protectedClaims.some((name) => Object.hasOwn(payload, name));
}

function withoutProtected(payload: Fields): Fields {
  return Object.fromEntries(
    Object.entries(payload).filter(([name]) => !protectedClaims.some((claim) => claim === name)),
  );
}
