/** Sessions of users that do not hold, and keys that cannot be had. */
import { nowS, type Row, service, session } from './explained-policy.js';

export const refusedSessions: readonly Row[] = [
  {
    reason: 'service_claim_present',
    path: '/me',
    token: session({ source: 'x' }),
    says: [/^it has source, which only service tokens have$/],
  },
  {
    reason: 'session_expired',
    path: '/me',
    token: session({ exp: nowS - 10 }),
    says: [/^it is .*exp/, /the frontend has to refresh it/],
  },
  {
    reason: 'session_expired',
    path: '/me',
    token: session(),
    sdk: 'refresh',
    says: [/^it is .*exp/, /the Core wants a new one/],
  },
  {
    reason: 'session_refused',
    path: '/me',
    token: session(),
    sdk: 'refused',
    says: [/^the Core stands by no such session of "u-1": /],
  },
  {
    reason: 'anti_csrf_missing',
    method: 'DELETE',
    path: '/me',
    token: null,
    headers: [['Cookie', `sAccessToken=${session()}`]],
    says: [
      /^DELETE with a session cookie has no anti-csrf and no rid$/,
      /^it needs the anti-csrf that the session was made with/,
    ],
  },
  {
    reason: 'claim_malformed',
    path: '/me',
    token: session({ sessionHandle: 5 }),
    says: [/^sessionHandle is 5, refreshTokenHash1 is a text$/, /^stt is missing, sub/, /have to be/],
  },
  {
    reason: 'token_malformed',
    path: '/me',
    token: session({}, { version: '2' }),
    says: [/^version is "2"; accepted: "3", "4", "5"$/],
  },
  {
    reason: 'issuer_mismatch',
    path: '/me',
    token: session({ iss: 'x' }),
    says: [/^iss is "x"; sessions have "https:\/\/api\.example\.com\/auth"$/],
  },
  {
    reason: 'key_unknown',
    path: '/me',
    token: session({}, { kid: 'd-9' }),
    says: [/^the Core has no key "d-9" for sessions; it has d-1$/],
  },
  {
    reason: 'signature_invalid',
    path: '/me',
    token: session({}, { kid: 'd-other' }),
    says: [/^the key "d-other" of the Core did not make the signature$/],
  },
  {
    reason: 'algorithm_refused',
    path: '/me',
    token: session({}, { alg: 'none' }),
    says: [/^alg is "none"; accepted: "RS256"$/],
  },
  {
    reason: 'token_not_yet_valid',
    path: '/me',
    token: session({ iat: nowS + 500 }),
    says: [/^it is .*the token says iat/],
  },
  {
    reason: 'keys_unavailable',
    path: '/me',
    token: session({}, { kid: 'd-away' }),
    says: [/^the keys of the Core cannot be had: ECONNREFUSED$/],
  },
  {
    reason: 'core_unavailable',
    path: '/me',
    token: session(),
    sdk: 'unavailable',
    says: [/^the Core has to be asked about this session/],
  },
  {
    reason: 'keys_unavailable',
    token: service({}, { kid: 'd-away' }),
    says: [/^the keys of core cannot be had: ECONNREFUSED$/],
  },
];
