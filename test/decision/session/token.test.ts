import t from 'tap';
import { parseSessionToken, isSessionHeader, verifySessionClaims } from '../../../src/decision/session/token.js';
import type { JsonObject } from '../../../src/lib/strict-json.js';
import { rsaKey } from '../../support/keys.js';
import { mintSession, sessionClaims, sessionIssuer } from '../../support/sessions.js';
import { mintToken, type Claims } from '../../support/tokens.js';
import { nowMs, nowS } from '../samples.js';

const key = rsaKey();

t.test('point 7: only a header with version 3 to 5 makes a session’s token', (t) => {
  const cases = [
    ...['3', '4', '5'].map((version) => ({ name: `version ${version}`, header: { version }, expected: null })),
    { name: 'no version', header: { version: undefined }, expected: 'token_malformed' },
    { name: 'version 2', header: { version: '2' }, expected: 'token_malformed' },
    { name: 'version 6', header: { version: '6' }, expected: 'token_malformed' },
    { name: 'a number', header: { version: 5 }, expected: 'token_malformed' },
    { name: 'null', header: { version: null }, expected: 'token_malformed' },
    { name: 'what a lax reader takes for 3', header: { version: '3x' }, expected: 'token_malformed' },
    { name: 'no typ', header: { typ: undefined }, expected: 'token_malformed' },
    { name: 'another typ', header: { typ: 'at+jwt' }, expected: 'token_malformed' },
    { name: 'another algorithm', header: { alg: 'HS256' }, expected: 'algorithm_refused' },
    { name: 'none', header: { alg: 'none' }, expected: 'algorithm_refused' },
    { name: 'no kid', header: { kid: undefined }, expected: 'key_id_refused' },
    { name: 'a key of its own', header: { jwk: {} }, expected: 'token_malformed' },
    { name: 'crit', header: { crit: ['version'] }, expected: 'token_malformed' },
  ];
  for (const { name, header, expected } of cases) {
    const parsed = parseSessionToken(mintSession({ key, header }));
    t.equal(parsed.ok ? null : parsed.error.reason, expected, name);
  }
  t.equal(parseSessionToken('garbage').ok, false);
  t.equal(
    parseSessionToken(mintToken({ key, claims: sessionClaims() })).ok,
    false,
    'a service token that says it is a session',
  );
  t.end();
});

t.test('the form is told by version alone', (t) => {
  const cases: readonly (readonly [JsonObject | null, boolean])[] = [
    [{ version: '5' }, true],
    [{ version: null }, true],
    [{ version: 7, alg: 'none' }, true],
    [{ alg: 'RS256' }, false],
    [null, false],
  ];
  for (const [header, expected] of cases) t.equal(isSessionHeader(header), expected, JSON.stringify(header));
  t.end();
});

interface Case {
  readonly name: string;
  readonly claims: Claims;
  readonly expected: string | null;
}

const cases: readonly Case[] = [
  { name: 'as the Core writes it', claims: {}, expected: null },
  {
    name: 'point 7: another API domain',
    claims: { iss: 'https://other.example.com/auth' },
    expected: 'issuer_mismatch',
  },
  {
    name: 'point 7: the API domain without its base path, as in a service token',
    claims: { iss: 'https://api.example.com' },
    expected: 'issuer_mismatch',
  },
  { name: 'point 7: almost', claims: { iss: `${sessionIssuer}/` }, expected: 'issuer_mismatch' },
  { name: 'several issuers', claims: { iss: [sessionIssuer] }, expected: 'issuer_mismatch' },
  { name: 'no issuer', claims: { iss: undefined }, expected: 'issuer_mismatch' },
  { name: 'the mark of a service token', claims: { source: 'microservice' }, expected: 'service_claim_present' },
  { name: 'the other one', claims: { token_type: 'service' }, expected: 'service_claim_present' },
  { name: 'the mark, null', claims: { source: null }, expected: 'service_claim_present' },
  { name: 'no session handle', claims: { sessionHandle: undefined }, expected: 'claim_malformed' },
  { name: 'an empty session handle', claims: { sessionHandle: '' }, expected: 'claim_malformed' },
  { name: 'no refresh token', claims: { refreshTokenHash1: undefined }, expected: 'claim_malformed' },
  { name: 'an OAuth2 token', claims: { stt: 1 }, expected: 'claim_malformed' },
  { name: 'a session by stt', claims: { stt: 0 }, expected: null },
  { name: 'no user', claims: { sub: undefined }, expected: 'claim_malformed' },
  { name: 'a user with a line end', claims: { sub: 'a\r\nX-Admin: 1' }, expected: 'claim_malformed' },
  { name: 'the longest user id', claims: { sub: 'a'.repeat(1024) }, expected: null },
  { name: 'too long a user id', claims: { sub: 'a'.repeat(1025) }, expected: 'claim_malformed' },
  { name: 'no expiry', claims: { exp: undefined }, expected: 'claim_malformed' },
  { name: 'no time of issue', claims: { iat: undefined }, expected: 'claim_malformed' },
  { name: 'expiry as text', claims: { exp: `${nowS + 60}` }, expected: 'claim_malformed' },
  { name: 'the last second', claims: { exp: nowS + 1 }, expected: null },
  { name: 'over', claims: { exp: nowS }, expected: 'session_expired' },
  { name: 'from a clock ahead by a minute', claims: { iat: nowS + 60 }, expected: null },
  { name: 'from further ahead', claims: { iat: nowS + 61 }, expected: 'token_not_yet_valid' },
  { name: 'an anti-CSRF token of another type', claims: { antiCsrfToken: 5 }, expected: 'claim_malformed' },
  { name: 'an empty anti-CSRF token', claims: { antiCsrfToken: '' }, expected: 'claim_malformed' },
  { name: 'a parent of another type', claims: { parentRefreshTokenHash1: {} }, expected: 'claim_malformed' },
];

t.test('the claims of a session', (t) => {
  for (const { name, claims, expected } of cases) {
    const payload = JSON.parse(JSON.stringify(sessionClaims(claims, nowMs))) as JsonObject;
    const verified = verifySessionClaims(payload, sessionIssuer, nowMs);
    t.equal(verified.ok ? null : verified.error.reason, expected, name);
  }
  const whole = sessionClaims({ antiCsrfToken: 'c', parentRefreshTokenHash1: 'cd' }, nowMs) as JsonObject;
  t.match(verifySessionClaims(whole, sessionIssuer, nowMs), {
    ok: true,
    value: { subject: 'user-1', issuedAtS: nowS, expiresAtS: nowS + 3600, antiCsrfToken: 'c', isUnconfirmed: true },
  });
  const ahead = sessionClaims({ iat: nowS + 60 }, nowMs) as JsonObject;
  t.equal(verifySessionClaims(ahead, sessionIssuer, nowMs - 1).ok, false, 'a millisecond more than a minute');
  t.match(verifySessionClaims(sessionClaims({}, nowMs) as JsonObject, sessionIssuer, nowMs), {
    value: { antiCsrfToken: null, isUnconfirmed: false },
  });
  t.end();
});
