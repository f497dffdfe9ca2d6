import { createHash, createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { compactVerify } from 'jose';
import type { Core } from '../context.js';
import { isFrom, type Version } from '../cdi-version.js';
import { parseFields, type Fields } from '../http/body.js';
import type { SessionRecord } from '../storage/sessions.js';
import { signToken } from './signing-keys.js';

/** A token as answers show it. */
interface IssuedToken {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly expiry: number;
  readonly createdTime: number;
}

/** What an access token says of its session. */
interface AccessClaims {
  readonly sessionHandle: string;
  readonly refreshTokenHash1: string;
  readonly parentRefreshTokenHash1: string | null;
  readonly antiCsrfToken: string | null;
}

/** What a refresh token says. */
export interface RefreshClaims {
  readonly sessionHandle: string;
  readonly userId: string;
  readonly parentRefreshTokenHash1: string | null;
  readonly antiCsrfToken: string | null;
}

/** The Core's own default, `refresh_token_validity`: 100 days. */
export const refreshValidityMs = 100 * 24 * 60 * 60 * 1000;

/** Names that an access token uses itself: nobody may put claims of these names into a session. */
export const protectedClaims = [
  'sub',
  'iat',
  'exp',
  'sessionHandle',
  'refreshTokenHash1',
  'parentRefreshTokenHash1',
  'antiCsrfToken',
  'rsub',
  'tId',
  'stt',
] as const;

/** Signs an access token. Its header carries `version`, which no token of `/recipe/jwt` can. */
export async function issueAccessToken(
  core: Core,
  session: SessionRecord,
  claims: AccessClaims,
  version: Version,
): Promise<IssuedToken> {
  const createdTime = core.now();
  const expiry = createdTime + core.accessTokenValidityMs;
  const payload = {
    ...session.userDataInJwt,
    iat: Math.floor(createdTime / 1000),
    exp: Math.floor(expiry / 1000),
    sub: session.userId,
    ...(isFrom('3.0', version) ? { tId: 'public' } : {}),
    ...(isFrom('4.0', version) ? { rsub: session.userId } : {}),
    sessionHandle: claims.sessionHandle,
    refreshTokenHash1: claims.refreshTokenHash1,
    parentRefreshTokenHash1: claims.parentRefreshTokenHash1,
    antiCsrfToken: claims.antiCsrfToken,
    ...(isFrom('5.2', version) ? { stt: 0 } : {}),
  };
  const key = session.usesDynamicKey ? await core.keys.dynamic() : core.keys.fixed;
  const tokenVersion = isFrom('4.0', version) ? '5' : isFrom('3.0', version) ? '4' : '3';
  return { token: await signToken(payload, key, tokenVersion), expiry, createdTime };
}

/** Verifies an access token; `null` where it is none, expired, or signed with a key that is not published. */
export async function readAccessToken(
  core: Core,
  token: string,
): Promise<(AccessClaims & { readonly payload: Fields }) | null> {
  const payload = await verifiedPayload(core, token);
  if (payload === null) return null;
  const { sessionHandle, refreshTokenHash1, parentRefreshTokenHash1 = null, antiCsrfToken = null, exp } = payload;
  if (typeof sessionHandle !== 'string' || typeof refreshTokenHash1 !== 'string' || typeof exp !== 'number') {
    return null;
  }
  if (exp * 1000 < core.now() || !isTextOrNull(parentRefreshTokenHash1) || !isTextOrNull(antiCsrfToken)) return null;
  return { sessionHandle, refreshTokenHash1, parentRefreshTokenHash1, antiCsrfToken, payload };
}

/** Makes a refresh token: its claims, authenticated with a secret of this Core. */
export function issueRefreshToken(core: Core, claims: RefreshClaims): IssuedToken {
  const content = Buffer.from(JSON.stringify({ ...claims, nonce: randomUUID() })).toString('base64url');
  const createdTime = core.now();
  return {
    token: `${content}.${macOf(core, content).toString('base64url')}.V2`,
    expiry: createdTime + refreshValidityMs,
    createdTime,
  };
}

/** Reads a refresh token; `null` where this Core did not make it. */
export function readRefreshToken(core: Core, token: string): RefreshClaims | null {
  const [content = '', mac = '', version, ...rest] = token.split('.');
  const given = Buffer.from(mac, 'base64url');
  const made = macOf(core, content);
  if (version !== 'V2' || rest.length > 0 || given.length !== made.length || !timingSafeEqual(given, made)) return null;
  return JSON.parse(Buffer.from(content, 'base64url').toString('utf8')) as RefreshClaims;
}

/** SHA-256 in hexadecimal, as the Core names the hashes of its refresh tokens. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function verifiedPayload(core: Core, token: string): Promise<Fields | null> {
  try {
    const { payload, protectedHeader } = await compactVerify(
      token,
      ({ kid }) => {
        const key = core.keys.byId(String(kid));
        if (key === undefined) throw new Error('no such key');
        return key.publicKey;
      },
      { algorithms: ['RS256'] },
    );
    return typeof protectedHeader['version'] === 'string' ? parseFields(Buffer.from(payload)) : null;
  } catch {
    return null;
  }
}

function macOf({ records }: Core, content: string): Buffer {
  return createHmac('sha256', records.secret()).update(content).digest();
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}
