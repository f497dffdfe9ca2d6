/**
 * The service that makes sessions: the real SDK of SuperTokens in this process, before `sallyport core` as a process of
 * its own. The SDK keeps its settings for the whole process, so there is one for each test file.
 */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { convertToRecipeUserId, init } from 'supertokens-node';
import { createJWT, init as initJwt } from 'supertokens-node/recipe/jwt';
import {
  createNewSessionWithoutRequestResponse,
  init as initSession,
  refreshSessionWithoutRequestResponse,
} from 'supertokens-node/recipe/session';
import { startCommand, type StartedCommand } from '../cli/started-command.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';
import { serviceClaims, type Claims } from './tokens.js';

export const coreApiKey = 'hush-key-of-twenty-characters-or-more';

export interface SessionService {
  readonly coreUrl: string;
  readonly core: StartedCommand;
  /** File that holds the Core's key. */
  readonly apiKeyFile: string;
  /** Signs a user in. */
  readonly signIn: (userId: string, claims?: Claims) => Promise<SignedIn>;
  /** New tokens for a session; the access token is the first one after a refresh. */
  readonly refresh: (refreshToken: string) => Promise<SignedIn>;
  /** A token of `POST /recipe/jwt`, through the SDK: a service token unless the claims say otherwise. */
  readonly mint: (claims?: Claims) => Promise<string>;
  /** A session as the Core makes it for whoever asks, of any API domain. */
  readonly session: (input: {
    readonly claims: Claims;
    readonly antiCsrf?: boolean;
    readonly dynamic?: boolean;
  }) => Promise<SignedIn>;
}

export interface SignedIn {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly antiCsrfToken: string;
  readonly handle: string;
}

/** A claim as SuperTokens' roles write it. */
export function roles(...names: readonly string[]): Claims {
  return { 'st-role': { v: names, t: Date.now() } };
}

export async function startSessionService(t: Scope, coreArgs: readonly string[] = []): Promise<SessionService> {
  const apiKeyFile = join(tempDir(t), 'core-key');
  writeFileSync(apiKeyFile, `${coreApiKey}\n`);
  chmodSync(apiKeyFile, 0o600);
  const core = startCommand(t, ['core', '--port', '0', '--api-keys-file', apiKeyFile, ...coreArgs]);
  const [, coreUrl = ''] = await core.says(/^core {2}(\S+)$/m);
  init({
    framework: 'custom',
    telemetry: false,
    supertokens: { connectionURI: coreUrl, apiKey: coreApiKey },
    appInfo: { appName: 'orders', apiDomain: 'https://api.example.com', websiteDomain: 'https://example.com' },
    recipeList: [initJwt(), initSession({ antiCsrf: 'NONE' })],
  });
  return {
    coreUrl,
    core,
    apiKeyFile,
    signIn: async (userId, claims = {}) =>
      signedIn(await createNewSessionWithoutRequestResponse('public', convertToRecipeUserId(userId), claims, {}, true)),
    refresh: async (refreshToken) => signedIn(await refreshSessionWithoutRequestResponse(refreshToken, true)),
    mint: async (claims = {}) => {
      const { iss: _iss, iat: _iat, exp: _exp, ...payload } = serviceClaims({ claims });
      const minted = await createJWT(payload, 300, false);
      if (minted.status !== 'OK') throw new Error(minted.status);
      return minted.jwt;
    },
    session: async ({ claims, antiCsrf = false, dynamic = true }) => {
      const response = await fetch(`${coreUrl}/recipe/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'api-key': coreApiKey, 'cdi-version': '5.4', rid: 'session' },
        body: JSON.stringify({
          userId: 'user-1',
          userDataInJWT: claims,
          userDataInDatabase: {},
          useDynamicSigningKey: dynamic,
          enableAntiCsrf: antiCsrf,
        }),
      });
      const made = (await response.json()) as {
        readonly accessToken: { readonly token: string };
        readonly refreshToken: { readonly token: string };
        readonly antiCsrfToken?: string;
        readonly session: { readonly handle: string };
      };
      const { accessToken, refreshToken, antiCsrfToken = '', session } = made;
      return {
        accessToken: accessToken.token,
        refreshToken: refreshToken.token,
        antiCsrfToken,
        handle: session.handle,
      };
    },
  };
}

type SdkSession = Awaited<ReturnType<typeof createNewSessionWithoutRequestResponse>>;

function signedIn(session: SdkSession): SignedIn {
  const { accessToken, refreshToken = '', antiCsrfToken = '' } = session.getAllSessionTokensDangerously();
  return { accessToken, refreshToken, antiCsrfToken, handle: session.getHandle() };
}
