/** The backend SDK of SuperTokens as it comes from npm, against the emulator: what it accepts, programs can rely on. */
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import { convertToRecipeUserId, getUser, init } from 'supertokens-node';
import { createJWT, getJWKS, init as initJwt } from 'supertokens-node/recipe/jwt';
import {
  createNewSessionWithoutRequestResponse,
  getAllSessionHandlesForUser,
  getSessionInformation,
  getSessionWithoutRequestResponse,
  init as initSession,
  refreshSessionWithoutRequestResponse,
  revokeSession,
} from 'supertokens-node/recipe/session';
import t from 'tap';
import { startCore } from './core-client.js';
import { freshEmail, userOf } from './contract/core-under-test.js';

const apiKey = 'first-key-of-twenty-characters';

// The SDK keeps its settings for the whole process.
const core = await startCore(t, { apiKeys: [apiKey] });
init({
  framework: 'fastify',
  supertokens: { connectionURI: core.url, apiKey },
  appInfo: { appName: 'orders', apiDomain: 'https://api.example.com', websiteDomain: 'https://example.com' },
  recipeList: [initJwt(), initSession({ getTokenTransferMethod: () => 'header', antiCsrf: 'VIA_TOKEN' })],
});

function create(
  userId: string,
  claims: Record<string, unknown> = {},
): ReturnType<typeof createNewSessionWithoutRequestResponse> {
  return createNewSessionWithoutRequestResponse('public', convertToRecipeUserId(userId), claims, {}, true);
}

/** The type of the SDK's error; '' where there is none. */
function refusalOf(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => '',
    (error: unknown) => (error as { type: string }).type,
  );
}

t.test('the SDK mints a token that verifies with the key set it fetches', async (t) => {
  const minted = await createJWT({ sub: 'checkout', aud: 'orders' }, 300, false);
  if (minted.status !== 'OK') throw new Error(minted.status);
  t.match(decodeProtectedHeader(minted.jwt), { alg: 'RS256', kid: /^d-/ });
  const { keys, validityInSeconds } = await getJWKS();
  t.ok((validityInSeconds ?? 0) > 0);
  const { payload } = await jwtVerify(minted.jwt, createLocalJWKSet({ keys }), {
    issuer: 'https://api.example.com',
    audience: 'orders',
  });
  t.equal(payload.sub, 'checkout');
  t.equal(Number(payload.exp) - Number(payload.iat), 300);
});

t.test('the SDK creates a session and verifies it, with and without the Core', async (t) => {
  const session = await create('user-1', { role: 'support' });
  const { accessToken } = session.getAllSessionTokensDangerously();
  t.match(decodeProtectedHeader(accessToken), { alg: 'RS256', typ: 'JWT', kid: /^d-/, version: '5' });
  t.match(session.getAccessTokenPayload(), {
    sub: 'user-1',
    rsub: 'user-1',
    tId: 'public',
    iss: 'https://api.example.com/auth',
    role: 'support',
  });
  for (const checkDatabase of [false, true]) {
    const verified = await getSessionWithoutRequestResponse(accessToken, undefined, {
      checkDatabase,
      antiCsrfCheck: false,
    });
    t.equal(verified.getHandle(), session.getHandle());
    t.match(verified.getAccessTokenPayload(), { role: 'support' });
  }
  t.match(await getSessionInformation(session.getHandle()), {
    userId: 'user-1',
    customClaimsInAccessTokenPayload: { role: 'support' },
  });
  t.same(await getAllSessionHandlesForUser('user-1'), [session.getHandle()]);
});

t.test(
  'a refreshed session hands out a new access token at its first use; the old refresh token is then theft',
  async (t) => {
    const first = (await create('user-2')).getAllSessionTokensDangerously();
    const second = (
      await refreshSessionWithoutRequestResponse(first.refreshToken ?? '')
    ).getAllSessionTokensDangerously();
    t.not(second.refreshToken, first.refreshToken);
    // Until the new tokens are used, the old refresh token may be sent again: its answer may have been lost.
    await t.resolves(refreshSessionWithoutRequestResponse(first.refreshToken ?? ''));
    const used = await getSessionWithoutRequestResponse(second.accessToken, undefined, { antiCsrfCheck: false });
    t.equal(used.getAllSessionTokensDangerously().accessAndFrontTokenUpdated, true);
    t.equal(await refusalOf(refreshSessionWithoutRequestResponse(first.refreshToken ?? '')), 'TOKEN_THEFT_DETECTED');
    const again = await getSessionWithoutRequestResponse(used.getAccessToken(), undefined, { antiCsrfCheck: false });
    t.equal(again.getAllSessionTokensDangerously().accessAndFrontTokenUpdated, false);
  },
);

t.test('anti-CSRF by token', async (t) => {
  const session = await createNewSessionWithoutRequestResponse('public', convertToRecipeUserId('user-3'));
  const { accessToken, antiCsrfToken } = session.getAllSessionTokensDangerously();
  t.ok(antiCsrfToken);
  await t.resolves(getSessionWithoutRequestResponse(accessToken, antiCsrfToken));
  t.equal(await refusalOf(getSessionWithoutRequestResponse(accessToken, 'another')), 'TRY_REFRESH_TOKEN');
});

t.test('claims are merged, and a revoked session is refused where the Core is asked', async (t) => {
  const session = await create('user-4');
  await session.mergeIntoAccessTokenPayload({ role: 'admin' });
  t.match(session.getAccessTokenPayload(), { role: 'admin' });
  t.equal(await revokeSession(session.getHandle()), true);
  t.equal(await revokeSession(session.getHandle()), false);
  const asked = getSessionWithoutRequestResponse(session.getAccessToken(), undefined, {
    checkDatabase: true,
    antiCsrfCheck: false,
  });
  t.equal(await refusalOf(asked), 'UNAUTHORISED');
});

t.test(
  'core-in-the-wild 7: the SDK takes a crafted token of /recipe/jwt for a session, but it has no version',
  async (t) => {
    const claims = { sub: 'user-5', rsub: 'user-5', tId: 'public', sessionHandle: 'h', refreshTokenHash1: 'x' };
    const minted = await createJWT(claims, 300, false);
    if (minted.status !== 'OK') throw new Error(minted.status);
    await t.resolves(getSessionWithoutRequestResponse(minted.jwt, undefined, { antiCsrfCheck: false }));
    t.equal(decodeProtectedHeader(minted.jwt)['version'], undefined);
  },
);

t.test('the SDK reads an imported user', async (t) => {
  const email = freshEmail();
  const headers = { 'api-key': apiKey, 'cdi-version': '2.16' };
  const body = { thirdPartyId: 'google', thirdPartyUserId: email, email: { id: email, isVerified: true } };
  const { id } = userOf(await core.post('/recipe/signinup', body, headers));
  const user = await getUser(id);
  t.match(user, { id, emails: [email], isPrimaryUser: false });
  t.match(user?.loginMethods[0], { recipeId: 'thirdparty', thirdParty: { id: 'google', userId: email } });
});
