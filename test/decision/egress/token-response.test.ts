import t from 'tap';
import {
  callerIn,
  subjectIn,
  expiryOf,
  isBearerToken,
  readIssuedToken,
  readTokenRefusal,
} from '../../../src/decision/egress/token-response.js';
import type { JsonObject } from '../../../src/lib/strict-json.js';

const nowMs = 1_800_000_000_000;
const nowS = nowMs / 1_000;

function jwt(payload: string): string {
  return ['{"alg":"none"}', payload, 'x'].map((part) => Buffer.from(part).toString('base64url')).join('.');
}

t.test('a bearer token is what RFC 6750 lets stand in the field, up to 8 KiB', async (t) => {
  for (const good of ['a', 'A0-._~+/', 'abc==', jwt('{}'), 'x'.repeat(8_192)]) {
    t.ok(isBearerToken(good), good.slice(0, 20));
  }
  for (const bad of ['', '=', 'a b', 'a\n', 'a,b', 'ä', 'a\0', 'a=b', 'x'.repeat(8_193)]) {
    t.notOk(isBearerToken(bad), JSON.stringify(bad.slice(0, 20)));
  }
});

t.test('the end of a token is read from a JWT alone', async (t) => {
  const cases = [
    [jwt(`{"exp":${String(nowS)}}`), nowS],
    [jwt('{"exp":"soon"}'), null],
    [jwt('{"exp":1.5}'), null],
    [jwt('{}'), null],
    [jwt('{"exp":1,"exp":2}'), null],
    [jwt('no JSON'), null],
    ['opaque', null],
    ['a.b.c', null],
  ] as const;
  for (const [token, exp] of cases) t.equal(expiryOf(token), exp, token);
});

t.test('whose a token is, is the same for each of the tokens of a subject', async (t) => {
  const first = callerIn(jwt('{"iss":"i","sub":"s","exp":1}'));
  t.equal(callerIn(jwt('{"iss":"i","sub":"s","exp":2}')), first);
  const others = [
    '{"iss":"i","sub":"t"}',
    '{"iss":"j","sub":"s"}',
    '{"sub":"s"}',
    '{"iss":"i","sub":1}',
    'no JSON',
  ].map(jwt);
  const callers = [first, ...[...others, 'opaque', 'a.b.c', 'other'].map(callerIn)];
  t.equal(new Set(callers).size, callers.length);
  t.notMatch(callerIn('opaque'), 'opaque', 'the token itself is nowhere');
  t.equal(subjectIn(jwt('{"iss":"i","sub":"s","exp":1}')), first);
  for (const token of ['opaque', 'a.b.c', 'a.b.c.d.e', jwt('{"sub":"s"}'), jwt('{"iss":"i"}')]) {
    t.equal(subjectIn(token), null, 'nobody is named');
  }
});

t.test('a token of another type than was asked for is none', async (t) => {
  const issued = (type: string, wanted?: 'Bearer' | 'DPoP'): boolean =>
    readIssuedToken({ access_token: 'a', token_type: type, expires_in: 60 }, nowMs, wanted).ok;
  t.same(
    [issued('bearer'), issued('DPoP'), issued('dpop', 'DPoP'), issued('Bearer', 'DPoP')],
    [true, false, true, false],
  );
});

t.test(
  'what was issued, and for how long: whatever is written there, a second at least and a day at most',
  async (t) => {
    const token = 'opaque';
    const hour = jwt(`{"exp":${String(nowS + 3_600)}}`);
    const good: readonly { readonly body: JsonObject; readonly lifetimeMs: number }[] = [
      { body: { expires_in: 300 }, lifetimeMs: 300_000 },
      { body: { expires_in: '300' }, lifetimeMs: 300_000 },
      { body: { expires_in: 1.5 }, lifetimeMs: 1_500 },
      { body: { expires_in: 86_401 }, lifetimeMs: 86_400_000 },
      { body: { expires_in: 1e300 }, lifetimeMs: 86_400_000 },
      { body: { expires_in: '999999999999999' }, lifetimeMs: 86_400_000 },
      { body: {}, lifetimeMs: 300_000 },
      { body: { expires_in: null }, lifetimeMs: 300_000 },
      { body: { access_token: hour }, lifetimeMs: 3_600_000 },
      { body: { access_token: hour, expires_in: 60 }, lifetimeMs: 60_000 },
      { body: { expires_in: 5, token_type: 'bearer' }, lifetimeMs: 5_000 },
      { body: { expires_in: 5, token_type: 'BEARER', scope: 'a b', refresh_token: 'r' }, lifetimeMs: 5_000 },
    ];
    for (const { body, lifetimeMs } of good) {
      const whole: JsonObject = { access_token: token, token_type: 'Bearer', ...body };
      t.match(readIssuedToken(whole, nowMs), { ok: true, value: { token: whole['access_token'], lifetimeMs } });
    }
    const over = jwt(`{"exp":${String(nowS)}}`);
    const bad: readonly { readonly body: JsonObject; readonly says: RegExp }[] = [
      { body: { access_token: 'a b' }, says: /access_token/ },
      { body: { access_token: '' }, says: /access_token/ },
      { body: { access_token: 5 }, says: /access_token/ },
      { body: { access_token: 'x'.repeat(8_193) }, says: /access_token/ },
      { body: { token_type: 'DPoP' }, says: /token_type/ },
      { body: { token_type: 'N_A' }, says: /token_type/ },
      { body: { token_type: null }, says: /token_type/ },
      { body: { expires_in: 0 }, says: /expires_in/ },
      { body: { expires_in: -1 }, says: /expires_in/ },
      { body: { expires_in: 'soon' }, says: /expires_in/ },
      { body: { expires_in: true }, says: /expires_in/ },
      { body: { expires_in: '0' }, says: /expires_in/ },
      { body: { access_token: over }, says: /is over already/ },
    ];
    for (const { body, says } of bad) {
      const read = readIssuedToken({ access_token: token, token_type: 'Bearer', ...body }, nowMs);
      t.match(read, { ok: false, error: says }, JSON.stringify(body));
      t.notMatch(JSON.stringify(read), token);
    }
  },
);

t.test('a response without a token: the issuer’s trouble, its refusal, or the caller’s own token', async (t) => {
  const cases = [
    { status: 500, body: null, problem: 'away', says: /status 500/ },
    { status: 503, body: { error: 'invalid_client' }, problem: 'away', says: /status 503/ },
    { status: 429, body: null, problem: 'away', says: /too much to do/ },
    { status: 401, body: { error: 'invalid_client' }, problem: 'refused', says: /invalid_client, status 401/ },
    { status: 400, body: { error: 'invalid_scope' }, problem: 'refused', says: /invalid_scope/ },
    { status: 400, body: { error: 'a secret' }, problem: 'refused', says: /\(status 400\)/ },
    { status: 400, body: { error: 5 }, problem: 'refused', says: /\(status 400\)/ },
    { status: 404, body: null, problem: 'refused', says: /\(status 404\)/ },
    { status: 204, body: null, problem: 'refused', says: /\(status 204\)/ },
    { status: 400, body: { error: 'invalid_grant' }, problem: 'refused', says: /invalid_grant/ },
    { status: 400, body: { error: 'invalid_grant' }, subject: true, problem: 'subject', says: /own token \(inv/ },
    { status: 400, body: { error: 'invalid_request' }, subject: true, problem: 'subject', says: /own token/ },
    { status: 400, body: { error: 'invalid_target' }, subject: true, problem: 'subject', says: /invalid_target/ },
    { status: 400, body: { error: 'a secret' }, subject: true, problem: 'subject', says: /\(status 400\)/ },
    { status: 400, body: null, subject: true, problem: 'subject', says: /\(status 400\)/ },
    ...[403, 404, 405, 407, 408, 410, 204].map((status) => {
      return { status, body: {}, subject: true, problem: 'away', mayBeOfSubject: true, says: /no issuer gives tokens/ };
    }),
    { status: 403, body: { error: 'access_denied' }, subject: true, problem: 'subject', says: /access_denied/ },
    ...['invalid_scope', 'unsupported_grant_type'].map((error) => {
      return { status: 400, body: { error }, subject: true, problem: 'refused', mayBeOfSubject: true, says: /client/ };
    }),
    { status: 413, body: null, subject: true, problem: 'subject', says: /\(status 413\)/ },
    ...['invalid_grant', 'invalid_token'].map((error) => {
      return {
        status: 401,
        body: { error },
        subject: true,
        problem: 'refused',
        mayBeOfSubject: true,
        says: /status 401/,
      };
    }),
    { status: 401, body: null, subject: true, problem: 'refused', says: /status 401/ },
    { status: 401, body: { error: 'invalid_client' }, subject: true, problem: 'refused', says: /invalid_client/ },
    { status: 400, body: { error: 'invalid_client' }, subject: true, problem: 'refused', says: /invalid_client/ },
    { status: 400, body: { error: 'unauthorized_client' }, subject: true, problem: 'refused', says: /unauth/ },
    { status: 400, body: { error: 'use_dpop_nonce' }, subject: true, problem: 'refused', says: /use_dpop_nonce/ },
    { status: 429, body: null, subject: true, problem: 'away', mayBeOfSubject: true, says: /status 429/ },
    { status: 500, body: null, subject: true, problem: 'away', mayBeOfSubject: true, says: /status 500/ },
  ];
  for (const { status, body, subject = false, problem, mayBeOfSubject = false, says } of cases) {
    const read = readTokenRefusal(status, body, subject);
    t.match(read, { problem, reason: says, mayBeOfSubject }, `${String(status)} ${JSON.stringify(body)}`);
    t.notMatch(read.reason, /a secret/);
  }
});
