/**
 * docs/contract.md 2, 3.4, 3.5 and 4 for sessions of users: `sallyport serve` and `sallyport core` as processes of
 * their own, sessions and service tokens made by the real SDK of SuperTokens.
 */
import t from 'tap';
import type { RawResponse } from '../support/raw-client.js';
import { fieldValues } from '../support/receiver.js';
import { coreApiKey, roles, startSessionService } from '../support/session-service.js';
import type { Claims } from '../support/tokens.js';
import { startProxyProcess } from '../support/proxy-process.js';
import {
  bearer,
  checkRows,
  cookie,
  rid,
  sessionConfig,
  tryRefresh,
  unauthorised,
  type Fields,
  type Row,
} from './session-rows.js';

const service = await startSessionService(t);

const proxy = await startProxyProcess(t, { config: sessionConfig(service) });

const user = await service.signIn('user-1', roles('support', 'admin'));
const guest = await service.signIn('user-2', roles('guest'));
const token = await service.mint();
const crafted = await service.mint({
  sub: 'user-1',
  rsub: 'user-1',
  tId: 'public',
  sessionHandle: 'h',
  refreshTokenHash1: 'x',
  ...roles('support'),
});
const elsewhere = await service.session({ claims: { iss: 'https://other.example.com/auth', ...roles('support') } });
const bare = await service.session({ claims: { iss: 'https://api.example.com', ...roles('support') } });
const unnamed = await service.session({ claims: roles('support') });
const marked = await service.session({
  claims: { iss: 'https://api.example.com/auth', source: 'microservice', ...roles('support') },
});
const stays = await service.session({
  claims: { iss: 'https://api.example.com/auth', ...roles('support') },
  dynamic: false,
});
const guarded = await service.session({
  claims: { iss: 'https://api.example.com/auth', ...roles('support') },
  antiCsrf: true,
});
for (const { accessToken } of [user, guest, elsewhere, bare, unnamed, marked, stays, guarded]) {
  proxy.markSecret(accessToken);
}
proxy.markSecret(token);
proxy.markSecret(crafted);
proxy.markSecret(coreApiKey);

const crossUses: readonly Row[] = [
  // What is good gets through.
  { name: 'a service token on a service route', path: '/services', fields: bearer(token), reason: null },
  { name: 'a service token on a route for both', path: '/both', fields: bearer(token), reason: null },
  { name: 'a session as bearer on a route for both', path: '/both', fields: bearer(user.accessToken), reason: null },
  { name: 'a session as cookie on a route for both', path: '/both', fields: cookie(user.accessToken), reason: null },
  { name: 'a session as cookie on a session route', path: '/users', fields: cookie(user.accessToken), reason: null },
  {
    name: 'a session as bearer, POST without rid',
    method: 'POST',
    path: '/users',
    fields: bearer(user.accessToken),
    reason: null,
  },
  {
    name: 'a session as cookie, POST with rid',
    method: 'POST',
    path: '/users',
    fields: [...cookie(user.accessToken), ...rid],
    reason: null,
  },
  {
    name: 'a service token on a service route beside a session cookie',
    path: '/services',
    fields: [...bearer(token), ...cookie(user.accessToken)],
    reason: null,
  },
  // The other kind is none.
  {
    name: 'a service token on a session-only route',
    path: '/users',
    fields: bearer(token),
    reason: 'credential_kind_refused',
  },
  {
    name: 'a session as bearer on a service route',
    path: '/services',
    fields: bearer(user.accessToken),
    reason: 'token_malformed',
  },
  {
    name: 'a session as cookie on a service route',
    path: '/services',
    fields: cookie(user.accessToken),
    reason: 'credential_missing',
  },
  { name: 'a service token as cookie', path: '/both', fields: cookie(token), reason: 'token_malformed' },
  // One credential at a time, and none falls through.
  {
    name: 'both kinds at once',
    path: '/both',
    fields: [...bearer(token), ...cookie(user.accessToken)],
    reason: 'credential_ambiguous',
  },
  {
    name: 'both kinds at once on a session-only route',
    path: '/users',
    fields: [...bearer(token), ...cookie(user.accessToken)],
    reason: 'credential_ambiguous',
  },
  {
    name: 'point 8: a garbage bearer beside a good cookie',
    path: '/both',
    fields: [...bearer('garbage'), ...cookie(user.accessToken)],
    reason: 'credential_ambiguous',
  },
  {
    name: 'point 8: the same on a session-only route',
    path: '/users',
    fields: [...bearer('garbage'), ...cookie(user.accessToken)],
    reason: 'credential_ambiguous',
  },
  {
    name: 'a good bearer beside a garbage cookie',
    path: '/both',
    fields: [...bearer(token), ...cookie('garbage')],
    reason: 'credential_ambiguous',
  },
  {
    name: 'two sessions',
    path: '/users',
    fields: [...bearer(user.accessToken), ...cookie(guest.accessToken)],
    reason: 'credential_ambiguous',
  },
  {
    name: 'two session cookies',
    path: '/users',
    fields: [...cookie(user.accessToken), ...cookie(guest.accessToken)],
    reason: 'credential_ambiguous',
  },
  {
    name: 'a refused bearer of a session falls through to nothing',
    path: '/both',
    fields: bearer(`${user.accessToken}x`),
    reason: 'token_malformed',
  },
  // Credentials that a reader less strict than we are might find.
  {
    name: 'two Cookie fields',
    path: '/both',
    fields: [
      ['Cookie', `sAccessToken=${user.accessToken}`],
      ['cookie', `sAccessToken=${user.accessToken}`],
    ],
    reason: 'credential_ambiguous',
  },
  {
    name: 'one cookie twice in a field',
    path: '/both',
    fields: [['Cookie', `sAccessToken=${user.accessToken}; sAccessToken=${user.accessToken}`]],
    reason: 'credential_ambiguous',
  },
  {
    name: 'a second Cookie field beside a bearer',
    path: '/both',
    fields: [...bearer(token), ['Cookie', 'a=1'], ['Cookie', 'sAccessToken=x']],
    reason: 'credential_ambiguous',
  },
  {
    name: 'a quoted session',
    path: '/both',
    fields: [['Cookie', `sAccessToken="${user.accessToken}"`]],
    reason: 'token_malformed',
  },
  {
    name: 'a cookie in another case',
    path: '/both',
    fields: [['Cookie', `SACCESSTOKEN=${user.accessToken}`]],
    reason: 'credential_missing',
  },
  {
    name: 'an escaped name',
    path: '/both',
    fields: [['Cookie', `%73AccessToken=${user.accessToken}`]],
    reason: 'credential_missing',
  },
  {
    name: 'st-access-token as field',
    path: '/both',
    fields: [['st-access-token', user.accessToken]],
    reason: 'credential_missing',
  },
  {
    name: 'st-access-token as cookie',
    path: '/both',
    fields: [['Cookie', `st-access-token=${user.accessToken}`]],
    reason: 'credential_missing',
  },
  // What only looks like a session.
  {
    name: 'point 7: the crafted session-like service token, as bearer',
    path: '/both',
    fields: bearer(crafted),
    reason: 'session_claim_present',
  },
  {
    name: 'point 7: the same on a session-only route',
    path: '/users',
    fields: bearer(crafted),
    reason: 'credential_kind_refused',
  },
  { name: 'point 7: the same as cookie', path: '/users', fields: cookie(crafted), reason: 'token_malformed' },
  {
    name: 'point 7: the same on a service route',
    path: '/services',
    fields: bearer(crafted),
    reason: 'session_claim_present',
  },
  {
    name: 'point 7: a session of another API domain',
    path: '/users',
    fields: bearer(elsewhere.accessToken),
    reason: 'issuer_mismatch',
    body: unauthorised,
  },
  {
    name: 'point 7: the API domain without its base path',
    path: '/users',
    fields: cookie(bare.accessToken),
    reason: 'issuer_mismatch',
    body: unauthorised,
  },
  {
    name: 'point 7: a session of nobody',
    path: '/users',
    fields: bearer(unnamed.accessToken),
    reason: 'issuer_mismatch',
    body: unauthorised,
  },
  {
    name: 'a session with the mark of a service token',
    path: '/users',
    fields: bearer(marked.accessToken),
    reason: 'service_claim_present',
    body: unauthorised,
  },
  { name: 'a session of a static key', path: '/users', fields: bearer(stays.accessToken), reason: 'key_id_refused' },
  { name: 'a garbage cookie', path: '/users', fields: cookie('garbage'), reason: 'token_malformed' },
  { name: 'no credential', path: '/users', fields: [], reason: 'credential_missing' },
  // Cookies come along with whatever any page asks for.
  {
    name: 'point 9: missing anti-CSRF',
    method: 'POST',
    path: '/users',
    fields: cookie(user.accessToken),
    reason: 'anti_csrf_missing',
    body: tryRefresh,
  },
  {
    name: 'point 9: HEAD is not GET',
    method: 'HEAD',
    path: '/users',
    fields: cookie(user.accessToken),
    reason: 'anti_csrf_missing',
    body: '',
  },
  {
    name: 'point 9: OPTIONS is not GET',
    method: 'OPTIONS',
    path: '/users',
    fields: cookie(user.accessToken),
    reason: 'anti_csrf_missing',
    body: tryRefresh,
  },
  {
    name: "point 9: a method of one's own",
    method: 'PURGE',
    path: '/users',
    fields: cookie(user.accessToken),
    reason: 'anti_csrf_missing',
    body: tryRefresh,
  },
  {
    name: 'an empty rid',
    method: 'POST',
    path: '/users',
    fields: [...cookie(user.accessToken), ['rid', '']],
    reason: 'anti_csrf_missing',
    body: tryRefresh,
  },
  {
    name: 'VIA_TOKEN: the token',
    method: 'POST',
    path: '/users',
    fields: [...cookie(guarded.accessToken), ['anti-csrf', guarded.antiCsrfToken]],
    reason: null,
  },
  { name: 'VIA_TOKEN: GET needs none', path: '/users', fields: cookie(guarded.accessToken), reason: null },
  {
    name: 'VIA_TOKEN: rid is not enough',
    method: 'POST',
    path: '/users',
    fields: [...cookie(guarded.accessToken), ...rid],
    reason: 'anti_csrf_missing',
    body: tryRefresh,
  },
  {
    name: 'VIA_TOKEN: another token',
    method: 'POST',
    path: '/users',
    reason: 'anti_csrf_missing',
    body: tryRefresh,
    fields: [...cookie(guarded.accessToken), ['anti-csrf', `${guarded.antiCsrfToken.slice(0, -1)}x`]],
  },
];

t.test('each kind of credential counts where it is accepted, and every cross-use is refused', async (t) => {
  await checkRows(t, proxy, crossUses);
});

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

t.test('the receiver learns who the user is, and gets nothing to act as the user with', async (t) => {
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
  t.ok((await proxy.metric('sallyport_denials_total{reason="credential_ambiguous"}')) > 0);
  t.ok((await proxy.metric('sallyport_jwks_refreshes_total{issuer="sessions",result="ok"}')) > 0);
});
