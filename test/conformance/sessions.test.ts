/**
 * docs/contract.md 3.5, 3.6 and 4 for sessions of users: `sallyport serve` and `sallyport core` as processes of their
 * own, sessions and service tokens made by the real SDK of SuperTokens. Which kind of credential counts where:
 * `session-credentials.test.ts`.
 */
import t from 'tap';
import type { RawResponse } from '../support/raw-client.js';
import { fieldValues } from '../support/upstream-server.js';
import { coreApiKey, roles, startSessionService } from '../support/session-service.js';
import type { Claims } from '../support/tokens.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { bearer, checkRows, cookie, rid, sessionConfig, type Fields } from './session-rows.js';

const service = await startSessionService(t);

const proxy = await startProxyProcess(t, { config: sessionConfig(service) });

const user = await service.signIn('user-1', roles('support', 'admin'));
const guest = await service.signIn('user-2', roles('guest'));
const token = await service.mint();
for (const secret of [user.accessToken, guest.accessToken, token, coreApiKey]) proxy.markSecret(secret);

t.test('sessions are held to a policy of their own', async (t) => {
  const invalid =
    '{"message":"invalid claim","claimValidationErrors":[{"id":"st-role","reason":{"message":"wrong value"}}]}';
  const namesake = await service.signIn('checkout', roles('guest'));
  proxy.markSecret(namesake.accessToken);
  await checkRows(t, proxy, [
    {
      name: 'another role',
      path: '/both',
      fields: bearer(guest.accessToken),
      reason: 'session_claim_missing',
      status: 403,
      body: invalid,
    },
    {
      name: 'the same as cookie',
      path: '/both',
      fields: cookie(guest.accessToken),
      reason: 'session_claim_missing',
      status: 403,
      body: invalid,
    },
    {
      name: 'a service’s name',
      path: '/both',
      fields: bearer(namesake.accessToken),
      reason: 'session_claim_missing',
      status: 403,
      body: invalid,
    },
    { name: 'where no claim is asked for', path: '/users', fields: bearer(guest.accessToken), reason: null },
    {
      name: 'no such route, with a session',
      path: '/nowhere',
      fields: bearer(user.accessToken),
      reason: 'route_unknown',
      status: 403,
    },
    {
      name: 'no such route, with a cookie',
      path: '/nowhere',
      fields: cookie(user.accessToken),
      reason: 'route_unknown',
      status: 403,
    },
    {
      name: 'no such route, with what never was a session',
      path: '/nowhere',
      fields: cookie('garbage'),
      reason: 'token_malformed',
    },
    { name: 'no such route, without', path: '/nowhere', fields: [], reason: 'credential_missing' },
  ]);
});

/** What the receiver got last. */
function received(): readonly string[] {
  return proxy.receiver.requests.at(-1)?.rawHeaders ?? [];
}

t.test('the upstream learns who the user is, and gets nothing to act as the user with', async (t) => {
  const st: Fields = [
    ['st-auth-mode', 'cookie'],
    ['anti-csrf', 'x'],
    ['X-Auth-Kind', 'service'],
    ['X-Auth-Subject', 'admin'],
  ];
  const response = await proxy.request({ path: '/both', headers: [...cookie(user.accessToken), ...rid, ...st] });
  t.equal(response.status, 200);
  for (const [name, expected] of [
    ['x-auth-kind', ['session']],
    ['x-auth-subject', ['user-1']],
    ['x-auth-issuer', ['https://api.example.com/auth']],
    ['x-auth-permissions', ['']],
    ['x-auth-token-id', []],
    ['cookie', ['theme=dark']],
    ['authorization', []],
    ['st-auth-mode', []],
    ['anti-csrf', []],
    ['rid', ['anti-csrf']],
  ] as const) {
    t.same(fieldValues(received(), name), expected, name);
  }
  await proxy.request({ path: '/both', headers: [...bearer(user.accessToken), ['Cookie', 'sRefreshToken=x']] });
  t.same(fieldValues(received(), 'authorization'), [], 'a bearer ends here');
  t.same(fieldValues(received(), 'cookie'), []);
  await proxy.request({ path: '/raw', headers: [...cookie(user.accessToken), ['st-auth-mode', 'cookie']] });
  t.match(fieldValues(received(), 'cookie'), [/sAccessToken=/], 'forward_tokens');
  t.same(fieldValues(received(), 'st-auth-mode'), ['cookie']);
  await proxy.request({ path: '/raw', headers: bearer(user.accessToken) });
  t.same(fieldValues(received(), 'authorization'), [`Bearer ${user.accessToken}`], 'forward_authorization');
  await proxy.request({ path: '/services', headers: [...bearer(token), ...cookie(user.accessToken)] });
  t.match(fieldValues(received(), 'cookie'), [/sAccessToken=/], 'on a service route cookies are nobody’s business');
  const line = await proxy.logOf(response.field('x-request-id') ?? '');
  t.match(line, { kind: 'session', issuer: 'sessions', subject: 'user-1', key_id: /^d-/, decision: 'forwarded' });
});

function setCookies(response: RawResponse): readonly string[] {
  return response.fields.filter(([name]) => name.toLowerCase() === 'set-cookie').map(([, value]) => value);
}

async function refreshed(claims: Claims = roles('support')): Promise<string> {
  const { refreshToken } = await service.signIn('user-1', claims);
  const { accessToken } = await service.refresh(refreshToken);
  proxy.markSecret(accessToken);
  return accessToken;
}

t.test('a refreshed access token is handed back the way it came, and the next request needs no Core', async (t) => {
  const first = await proxy.request({ path: '/both', headers: bearer(await refreshed()) });
  const next = first.field('st-access-token') ?? '';
  proxy.markSecret(next);
  t.equal(first.status, 200);
  t.match(JSON.parse(Buffer.from(first.field('front-token') ?? '', 'base64').toString()), {
    uid: 'user-1',
    up: { sub: 'user-1' },
  });
  t.same(setCookies(first), []);
  const second = await proxy.request({ path: '/both', headers: bearer(next) });
  t.match([second.status, second.field('st-access-token'), second.field('front-token')], [200, null, null]);

  const inCookie = await proxy.request({ path: '/both', headers: cookie(await refreshed()) });
  const [set = ''] = setCookies(inCookie);
  t.match(set, /^sAccessToken=[\w.-]+; Path=\/; Expires=[^;]+ GMT; HttpOnly; Secure; SameSite=Lax$/);
  t.equal(inCookie.field('st-access-token'), null);
  t.ok(inCookie.field('front-token'));
  const kept = /^sAccessToken=([^;]+)/.exec(set)?.[1] ?? '';
  proxy.markSecret(kept);
  const again = await proxy.request({ path: '/both', headers: cookie(kept) });
  t.same([again.status, setCookies(again)], [200, []]);
});

t.test('a user’s write runs once; the new token goes back with the shown answer too, and into no store', async (t) => {
  const key: Fields = [['Idempotency-Key', 'pay-1']];
  const before = proxy.receiver.requests.length;
  const accessToken = await refreshed();
  const first = await proxy.request({ method: 'POST', path: '/payments', headers: [...bearer(accessToken), ...key] });
  const shown = await proxy.request({
    method: 'POST',
    path: '/payments',
    headers: [...bearer(await refreshed()), ...key],
  });
  const plain = await proxy.request({
    method: 'POST',
    path: '/payments',
    headers: [...bearer(user.accessToken), ...key],
  });
  t.same(
    [first, shown, plain].map(({ status }) => status),
    [200, 200, 200],
  );
  t.same(
    [first, shown, plain].map((response) => response.field('idempotent-replayed')),
    [null, 'true', 'true'],
  );
  t.ok(first.field('st-access-token'));
  t.ok(shown.field('st-access-token'));
  t.not(shown.field('st-access-token'), first.field('st-access-token'));
  t.equal(plain.field('st-access-token'), null);
  t.equal(plain.field('front-token'), null);
  t.equal(proxy.receiver.requests.length, before + 1);
  const other = await proxy.request({
    method: 'POST',
    path: '/payments',
    headers: [...bearer(guest.accessToken), ...key],
  });
  const machine = await proxy.request({ method: 'POST', path: '/payments', headers: [...bearer(token), ...key] });
  t.same(
    [other, machine].map((response) => [response.status, response.field('idempotent-replayed')]),
    [
      [200, null],
      [200, null],
    ],
    'a key is one caller’s own',
  );
});

t.test('nothing that was sent stands in a log, on /metrics or on /status', async (t) => {
  t.same(await proxy.exposures(), []);
  t.ok((await proxy.metric('sallyport_denials_total{reason="session_claim_missing"}')) > 0);
  t.ok((await proxy.metric('sallyport_jwks_refreshes_total{issuer="sessions",result="ok"}')) > 0);
});
