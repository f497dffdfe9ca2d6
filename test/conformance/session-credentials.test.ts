/**
 * docs/contract.md 2 and 3.4: which kind of credential counts on which route. `sallyport serve` and `sallyport core` as
 * processes of their own, sessions and service tokens made by the real SDK of SuperTokens.
 */
import t from 'tap';
import { startProxyProcess } from '../support/proxy-process.js';
import { coreApiKey, roles, startSessionService } from '../support/session-service.js';
import { bearer, checkRows, cookie, rid, sessionConfig, tryRefresh, unauthorised, type Row } from './session-rows.js';
import { checkSilence } from './silence.js';

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
for (const secret of [token, crafted, coreApiKey]) proxy.markSecret(secret);

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
  t.ok((await proxy.metric('sallyport_denials_total{reason="credential_ambiguous"}')) > 0);
});

checkSilence(t, proxy);
