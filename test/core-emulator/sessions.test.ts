import t from 'tap';
import { startCore, type CoreAnswer, type CoreClient } from './core-client.js';
import { statusOf } from './contract/core-under-test.js';

const hundredDaysMs = 100 * 24 * 60 * 60 * 1000;

interface Created {
  readonly session: { readonly handle: string };
  readonly accessToken: { readonly token: string; readonly expiry: number; readonly createdTime: number };
  readonly refreshToken: { readonly token: string; readonly expiry: number };
}

const asked = { userId: 'u', enableAntiCsrf: false, userDataInJWT: { role: 'x' }, userDataInDatabase: {} };
const checks = { doAntiCsrfCheck: false, enableAntiCsrf: false };

async function create(core: CoreClient, version = '5.4'): Promise<Created> {
  return (await core.post('/recipe/session', asked, { 'cdi-version': version })).json() as unknown as Created;
}

t.test('the token version follows the CDI version', async (t) => {
  const core = await startCore(t);
  for (const [version, expected] of [
    ['2.21', '3'],
    ['3.0', '4'],
    ['3.1', '4'],
    ['4.0', '5'],
    ['5.4', '5'],
  ] as const) {
    const { accessToken } = await create(core, version);
    const header = JSON.parse(Buffer.from(accessToken.token.split('.')[0] ?? '', 'base64url').toString()) as Record<
      string,
      unknown
    >;
    t.equal(header['version'], expected, version);
  }
  t.equal(
    (await core.post('/recipe/session', asked, { 'cdi-version': '2.20' })).status,
    404,
    'older ones are not emulated',
  );
});

t.test('an access token lives an hour, a session a hundred days without a refresh', async (t) => {
  let nowMs = 1_700_000_000_000;
  const core = await startCore(t, { now: () => nowMs });
  const { accessToken, refreshToken } = await create(core);
  t.equal(accessToken.expiry - nowMs, 3_600_000);
  t.equal(refreshToken.expiry - nowMs, hundredDaysMs);
  const verify = (): Promise<CoreAnswer> =>
    core.post('/recipe/session/verify', { accessToken: accessToken.token, ...checks });
  nowMs += 3_600_000;
  t.equal(statusOf(await verify()), 'OK');
  nowMs += 1;
  t.equal(statusOf(await verify()), 'TRY_REFRESH_TOKEN');
  nowMs += hundredDaysMs;
  t.equal(
    statusOf(await core.post('/recipe/session/refresh', { refreshToken: refreshToken.token, enableAntiCsrf: false })),
    'UNAUTHORISED',
  );
});

t.test('which key signs is chosen at the start and at each refresh', async (t) => {
  const core = await startCore(t);
  const keyOf = (answer: CoreAnswer): unknown => {
    const { accessToken } = answer.json() as unknown as Created;
    return (
      JSON.parse(Buffer.from(accessToken.token.split('.')[0] ?? '', 'base64url').toString()) as Record<string, unknown>
    )['kid'];
  };
  const first = await core.post('/recipe/session', { ...asked, useDynamicSigningKey: false });
  t.match(keyOf(first), /^s-/);
  const { refreshToken } = first.json() as unknown as Created;
  const refreshed = await core.post('/recipe/session/refresh', {
    refreshToken: refreshToken.token,
    enableAntiCsrf: false,
    useDynamicSigningKey: true,
  });
  t.match(keyOf(refreshed), /^d-/);
});

t.test('what is no token of this Core is refused', async (t) => {
  const core = await startCore(t);
  const { accessToken, refreshToken } = await create(core);
  const minted = await core.post('/recipe/jwt', {
    algorithm: 'RS256',
    jwksDomain: 'x',
    validity: 60,
    payload: { sub: 'u', sessionHandle: 'h', refreshTokenHash1: 'x' },
    useStaticSigningKey: false,
  });
  const broken = `${accessToken.token.slice(0, -4)}AAAA`;
  for (const token of ['', 'x', 'a.b.c', broken, String(minted.json()['jwt'])]) {
    t.equal(
      statusOf(await core.post('/recipe/session/verify', { accessToken: token, ...checks })),
      'TRY_REFRESH_TOKEN',
      token.slice(0, 8),
    );
  }
  const [content = '', mac = ''] = refreshToken.token.split('.');
  for (const token of [
    '',
    'x',
    `${content}.${mac}`,
    `${content}.${mac}.V3`,
    `${content}.${mac}.V2.x`,
    `${content}x.${mac}.V2`,
    `${content}..V2`,
  ]) {
    t.equal(
      statusOf(await core.post('/recipe/session/refresh', { refreshToken: token, enableAntiCsrf: false })),
      'UNAUTHORISED',
      token.slice(-4),
    );
  }
});

t.test('sessions are removed by handle or by user', async (t) => {
  const core = await startCore(t);
  const [one, two] = [await create(core), await create(core)];
  const remove = (body: unknown): Promise<CoreAnswer> => core.post('/recipe/session/remove', body);
  t.same((await remove({ sessionHandles: [one.session.handle, 'unknown'] })).json()['sessionHandlesRevoked'], [
    one.session.handle,
  ]);
  t.equal(statusOf(await core.get(`/recipe/session?sessionHandle=${one.session.handle}`)), 'UNAUTHORISED');
  t.same((await core.get('/recipe/session/user?userId=u')).json()['sessionHandles'], [two.session.handle]);
  t.same((await remove({ userId: 'u' })).json()['sessionHandlesRevoked'], [two.session.handle]);
  t.equal(statusOf(await remove({})), '400 Invalid JSON input - use one of userId or sessionHandles array');
  const regenerated = await core.post('/recipe/session/regenerate', {
    accessToken: two.accessToken.token,
    userDataInJWT: {},
  });
  t.equal(statusOf(regenerated), 'UNAUTHORISED');
});

t.test('malformed calls of sessions are 400', async (t) => {
  const core = await startCore(t);
  const field = (name: string): string => `400 Field name '${name}' is invalid in JSON input`;
  const cases = [
    { path: '', body: { ...asked, userId: 5 }, expected: field('userId') },
    { path: '', body: { ...asked, enableAntiCsrf: undefined }, expected: field('enableAntiCsrf') },
    { path: '', body: { ...asked, userDataInJWT: [] }, expected: field('userDataInJWT') },
    { path: '', body: { ...asked, userDataInDatabase: null }, expected: field('userDataInDatabase') },
    {
      path: '',
      body: { ...asked, userDataInJWT: { sub: 'other' } },
      expected: '400 The user payload contains protected field',
    },
    { path: '/verify', body: checks, expected: field('accessToken') },
    { path: '/verify', body: { accessToken: 'x' }, expected: field('doAntiCsrfCheck') },
    { path: '/refresh', body: { refreshToken: 'x' }, expected: field('enableAntiCsrf') },
    { path: '/regenerate', body: {}, expected: field('accessToken') },
    {
      path: '/regenerate',
      body: { accessToken: 'x', userDataInJWT: { exp: 1 } },
      expected: '400 The user payload contains protected field',
    },
    { path: '/remove', body: { sessionHandles: ['x', 1] }, expected: field('sessionHandles') },
  ];
  for (const { path, body, expected } of cases) {
    t.equal(statusOf(await core.post(`/recipe/session${path}`, body)), expected, `${path} ${expected}`);
  }
  t.equal(statusOf(await core.get('/recipe/session')), "400 Field name 'sessionHandle' is missing in GET request");
  t.equal(statusOf(await core.get('/recipe/session/user')), "400 Field name 'userId' is missing in GET request");
});
