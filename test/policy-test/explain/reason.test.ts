import t from 'tap';
import { keyState } from '../../support/key-state.js';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { reasons, type Reason } from '../../../src/decision/denial.js';
import { accept, refuse } from '../../../src/lib/result.js';
import type { KeyLookup, KeySource, SessionRefusal } from '../../../src/ports/auth.js';
import type { InForce } from '../../../src/proxy/auth/active-config.js';
import { explain, type Explained } from '../../../src/policy-test/explain/explanation.js';
import { explainReason } from '../../../src/policy-test/explain/reason.js';
import { explanationLines } from '../../../src/policy-test/explain/format.js';
import { headOf, rule } from '../../../src/policy-test/simulate/decide.js';
import { compiled } from '../../proxy/harness.js';
import { rsaKey } from '../../support/keys.js';
import { base64url, mintToken, signToken, type Claims } from '../../support/tokens.js';
import type { ConfigTree } from '../../support/proxy-process.js';

const key = rsaKey();
const nowMs = Date.now();
const nowS = Math.floor(nowMs / 1_000);

const routes = [
  {
    name: 'orders',
    methods: ['GET'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: ['orders:read', 'orders:list'],
  },
  {
    name: 'write',
    methods: ['POST'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: [],
    max_body: '10B',
    single_use: true,
    idempotency: { mode: 'required', max_body: '10B' },
  },
  {
    name: 'me',
    methods: ['GET', 'DELETE'],
    path: '/me',
    accept: ['session'],
    session: { claims: { role: 'support' } },
  },
  {
    name: 'both',
    methods: ['GET'],
    path: '/both',
    accept: ['service', 'session'],
    subjects: ['checkout'],
    permissions: [],
    session: { claims: {} },
  },
  {
    name: 'feed',
    methods: ['GET'],
    path: '/feed',
    subjects: ['checkout'],
    permissions: [],
    websocket: true,
    origins: ['https://app.example.com'],
  },
  { name: 'eu', methods: ['GET'], path: '/eu', subjects: ['checkout'], permissions: [], issuers: ['eu'] },
];

const rules = { audience: 'orders', source: 'microservice', token_type: 'service' };
const config: ConfigTree = {
  routes,
  store: { memory: {} },
  receiver: { case_sensitive: true, strict_slash: true },
  listen: { max_target: '100B', max_header_bytes: '4KiB', underscore_fields: 'refuse' },
  issuers: {
    core: { issuer: 'https://api.example.com', ...rules, key_ids: { accept: ['d-*'], reject: ['d-old'] } },
    eu: { issuer: 'https://eu.example.com', ...rules, audience: 'eu', key_ids: { accept: ['eu-*'] } },
  },
  sessions: { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' },
  revoked: {
    key_ids: ['d-revoked'],
    subjects: ['mallory'],
    token_ids: ['stolen'],
    issued_before: '2020-01-01T00:00:00Z',
  },
};

const found: KeyLookup = { kind: 'found', key: { keyId: 'd-1', key: key.publicKey } };
const lookups: Readonly<Record<string, KeyLookup>> = {
  'd-1': found,
  'eu-1': found,
  'd-revoked': found,
  'd-other': { kind: 'found', key: { keyId: 'd-other', key: rsaKey('d-2').publicKey } },
  'd-away': { kind: 'unavailable' },
};
const source: KeySource = {
  find: (keyId) => lookups[keyId] ?? { kind: 'unknown' },
  state: () => keyState({ lastError: 'ECONNREFUSED', keys: [{ keyId: 'd-1', ageMs: 0, accepted: true }] }),
};

/** The policy, and a Core whose answer to every session is this. */
function policy(sdk: SessionRefusal | null, overrides: ConfigTree = {}): InForce {
  const settings = compiled({ ...config, ...overrides });
  const { sessions } = settings;
  const inForce =
    sessions === null
      ? null
      : {
          settings: sessions,
          keys: source,
          verifier: {
            verify: () =>
              Promise.resolve(
                sdk === null ? accept({ userId: 'u-1', claims: { role: 'user' }, renewed: null }) : refuse(sdk),
              ),
          },
        };
  return decideOnly(settings, () => source, inForce);
}

interface Row {
  readonly reason: Reason;
  readonly name?: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly (readonly [string, string])[];
  /** A token; without one a good one, `null` for none at all. */
  readonly token?: string | null;
  readonly sdk?: SessionRefusal;
  readonly body?: string;
  /** What is said besides the reason itself. */
  readonly says: readonly RegExp[];
}

const service = (claims: Claims = {}, header: Claims = {}): string => mintToken({ key, nowMs, claims, header });
const sessionClaims = {
  iss: 'https://api.example.com/auth',
  sub: 'u-1',
  iat: nowS,
  exp: nowS + 300,
  sessionHandle: 'h-secret',
  refreshTokenHash1: 'r-secret',
  antiCsrfToken: null,
};
const session = (claims: Claims = {}, header: Claims = {}): string =>
  signToken(
    JSON.stringify({ alg: 'RS256', kid: 'd-1', typ: 'JWT', version: '5', ...header }),
    JSON.stringify({ ...sessionClaims, ...claims }),
    key.privateKey,
  );
const upgrade: NonNullable<Row['headers']> = [
  ['Upgrade', 'websocket'],
  ['Connection', 'Upgrade'],
];

const rows: readonly Row[] = [
  {
    reason: 'target_malformed',
    path: '/a/../b',
    says: [/"\/a\/\.\.\/b": nothing is normalised/, /its segment "\.\." has two readings, or is none; allowed are/],
  },
  {
    reason: 'target_malformed',
    path: '/a//b',
    says: [/nothing is normalised/, /an empty segment: two slashes in a row/],
  },
  { reason: 'target_malformed', path: '/a?b=#c', says: [/nothing is normalised/, /its query has a character/] },
  {
    reason: 'target_malformed',
    path: 'http://a/b',
    says: [/nothing is normalised/, /it has to begin with \/: the path alone/],
  },
  {
    reason: 'target_malformed',
    path: '/a%2Fb',
    says: [/a segment has %2F, and encoded_slashes is refuse on no route that takes it$/],
  },
  { reason: 'target_malformed', path: '/a;b=c', says: [/a segment has a semicolon, and path_parameters is refuse/] },
  { reason: 'target_too_long', path: `/${'a'.repeat(200)}`, says: [/it has 201 bytes; listen\.max_target is 100$/] },
  {
    reason: 'method_not_allowed',
    method: 'TRACE',
    says: [/the method is "TRACE"; TRACE, TRACK, CONNECT and PRI are never forwarded/],
  },
  {
    reason: 'method_malformed',
    method: 'BREW',
    says: [/the method is "BREW"; accepted: upper-case methods that Node\.js knows/],
  },
  {
    reason: 'framing',
    headers: [['Content-Length', '-1']],
    says: [/Content-Length: "-1"; accepted: one Content-Length of digits/],
  },
  { reason: 'field_malformed', headers: [['A b', 'c']], says: [/A b: "c"; accepted: names of letters/] },
  {
    reason: 'field_repeated',
    headers: [
      ['Content-Type', 'a'],
      ['content-type', 'b'],
    ],
    says: [/these come more than once: content-type; accepted: /],
  },
  {
    reason: 'field_refused',
    headers: [['X_Y', 'z']],
    says: [/X_Y: "z"; accepted: names without _; listen\.underscore_fields is refuse/],
  },
  { reason: 'host_malformed', headers: [['Host', 'a b']], says: [/Host: "a b"; accepted: one host name/] },
  {
    reason: 'connection_option',
    headers: [['Connection', 'X-Auth-Subject']],
    says: [/Connection: "X-Auth-Subject"; accepted: options, and names of fields/],
  },
  {
    reason: 'upgrade_refused',
    headers: [['Upgrade', 'h3']],
    says: [/Upgrade: "h3"; accepted: websocket, on a route with websocket: true, which orders has not/],
  },
  {
    reason: 'websocket_handshake',
    path: '/feed',
    headers: [...upgrade, ['Sec-WebSocket-Version', '13']],
    says: [/Connection: "Upgrade", Sec-WebSocket-Version: "13"; accepted: a GET of HTTP\/1\.1 without a body/],
  },
  {
    reason: 'websocket_version',
    path: '/feed',
    headers: [...upgrade, ['Sec-WebSocket-Version', '8']],
    says: [/Sec-WebSocket-Version: "8"; accepted: 13$/],
  },
  {
    reason: 'body_not_allowed',
    headers: [['Content-Length', '3']],
    says: [/GET comes with a body \(Content-Length: "3"\); route orders has not body: allow/],
  },
  {
    reason: 'header_too_large',
    headers: [['A', 'b'.repeat(5_000)]],
    says: [/it has \d+ bytes and 3 fields; listen\.max_header_bytes is 4096, and 256 fields/],
  },
  {
    reason: 'expectation_unknown',
    headers: [['Expect', '200-ok']],
    says: [/Expect: "200-ok"; accepted: 100-continue$/],
  },
  {
    reason: 'idempotency_key_missing',
    method: 'POST',
    token: service({ jti: 'j' }),
    says: [/there is no Idempotency-Key; operation write needs one, .* such as a UUID/],
  },
  {
    reason: 'idempotency_key_malformed',
    method: 'POST',
    token: service({ jti: 'j' }),
    headers: [['Idempotency-Key', 'a b']],
    says: [/Idempotency-Key is "a b"; accepted: 1 to 255 letters/],
  },
  {
    reason: 'body_too_large',
    method: 'POST',
    token: service({ jti: 'j' }),
    headers: [
      ['Idempotency-Key', 'a'],
      ['Content-Length', '99'],
    ],
    says: [/99 bytes; max_body of the route is 10, and idempotency\.max_body 10$/],
  },

  {
    reason: 'credential_missing',
    token: null,
    says: [/there is no Authorization; accepted: Authorization: Bearer TOKEN$/],
  },
  {
    reason: 'credential_missing',
    path: '/both',
    token: null,
    says: [/accepted: Authorization: Bearer TOKEN, or the cookie of a session$/],
  },
  {
    reason: 'credential_malformed',
    token: null,
    headers: [['Authorization', 'Basic c2VjcmV0OnBhc3M=']],
    says: [/Authorization: its scheme is Basic; accepted: Authorization: Bearer TOKEN, one blank/],
  },
  {
    reason: 'credential_malformed',
    token: null,
    headers: [['Authorization', 'Bearer  a']],
    says: [/it has more than one blank; /],
  },
  {
    reason: 'credential_malformed',
    token: null,
    headers: [['Authorization', 'Bearer a,b']],
    says: [/its token has 3 characters, or some that no token has; /],
  },
  {
    reason: 'credential_malformed',
    token: null,
    headers: [['Authorization', 'topsecrettoken']],
    says: [/it is one word, and no scheme with a token; /],
  },
  {
    reason: 'credential_malformed',
    token: null,
    headers: [['Authorization', `${'topsecret'.repeat(4)} x`]],
    says: [/it begins with no scheme; /],
  },
  {
    reason: 'credential_ambiguous',
    path: '/me',
    headers: [['Cookie', `sAccessToken=${session()}`]],
    says: [/^Cookie, Authorization; accepted: Authorization or one/],
  },
  { reason: 'credential_kind_refused', path: '/me', says: [/it is a service token; the route takes sessions alone/] },

  {
    reason: 'token_malformed',
    name: 'typ',
    token: service({}, { typ: 'at+jwt' }),
    says: [/^typ is "at\+jwt"; accepted: "JWT", or none$/],
  },
  {
    reason: 'token_malformed',
    name: 'members',
    token: service({}, { x5t: 'abc', cty: 'json' }),
    says: [/^its header has "x5t", "cty"; accepted: alg, kid, typ and no other$/],
  },
  {
    reason: 'token_malformed',
    name: 'both',
    token: service({}, { typ: 5, jku: 'x' }),
    says: [/^typ is 5; /, /^its header has "jku"; /],
  },
  {
    reason: 'token_malformed',
    name: 'one part',
    token: 'abc',
    says: [/^it has 1 part; a signed token has three, with dots between$/],
  },
  {
    reason: 'token_malformed',
    name: 'JWE',
    token: 'a.b.c.d.e',
    says: [/^it has 5 parts, as an encrypted one has; a signed token has three/],
  },
  {
    reason: 'token_malformed',
    name: 'padding',
    token: service()
      .replace('.', '=.')
      .replace('=.', '.')
      .replace(/\.[^.]*$/, '.A'),
    says: [/^its signature part is no base64url without padding$/],
  },
  {
    reason: 'token_malformed',
    name: 'no JSON',
    token: `${base64url('{')}.${base64url('{}')}.AAAA`,
    says: [/^its header is no JSON$/],
  },
  {
    reason: 'token_malformed',
    name: 'a member twice',
    token: `${base64url('{"alg":"RS256","alg":"RS256","kid":"d-1"}')}.${base64url('{}')}.AAAA`,
    says: [/^its header has a member twice$/],
  },
  {
    reason: 'token_malformed',
    name: 'claims',
    token: signToken('{"alg":"RS256","kid":"d-1"}', '[]', key.privateKey),
    says: [/^its claims part is JSON, but no object$/],
  },
  { reason: 'algorithm_refused', token: service({}, { alg: 'ES256' }), says: [/^alg is "ES256"; accepted: "RS256"$/] },
  {
    reason: 'algorithm_refused',
    token: service({}, { alg: undefined }),
    says: [/^alg is missing; accepted: "RS256"$/],
  },
  {
    reason: 'key_id_refused',
    token: service({}, { kid: 'my-key' }),
    says: [
      /^core accepts key ids d-\* but not d-old; the token's is my-key$/,
      /^eu accepts key ids eu-\*; the token's is my-key$/,
    ],
  },
  {
    reason: 'key_id_refused',
    token: service({}, { kid: undefined }),
    says: [/^kid is missing; it has to be 1 to 256 visible ASCII characters, such as d-\*$/],
  },
  { reason: 'key_unknown', token: service({}, { kid: 'd-9' }), says: [/^core has no key d-9; it has d-1$/] },
  {
    reason: 'signature_invalid',
    token: service({}, { kid: 'd-other' }),
    says: [/^the key d-other of core did not make the signature: /],
  },
  {
    reason: 'token_expired',
    token: service({ exp: 1_600_000_000, iat: undefined }),
    says: [
      /^it is 20.*; the token says exp 1600000000 \(2020-09-13T12:26:40Z\)$/,
      /^core allows 7200 s of life and 5 s of skew$/,
    ],
  },
  {
    reason: 'token_not_yet_valid',
    token: service({ nbf: nowS + 100 }),
    says: [/the token says iat .*, nbf .*, exp /, /of skew/],
  },
  {
    reason: 'lifetime_too_long',
    token: service({ exp: nowS + 90_000 }),
    says: [/the token says/, /allows 7200 s of life/],
  },
  {
    reason: 'issuer_mismatch',
    token: service({ iss: 'https://api.example.com/' }),
    says: [/^iss is "https:\/\/api\.example\.com\/"; core asks for "https:\/\/api\.example\.com"$/],
  },
  {
    reason: 'issuer_not_accepted',
    path: '/eu',
    says: [/^iss is "https:\/\/api\.example\.com"; the route takes tokens of eu$/],
  },
  {
    reason: 'audience_mismatch',
    token: service({ aud: ['orders'] }),
    says: [/^aud is \["orders"\]; core asks for "orders"$/],
  },
  {
    reason: 'source_mismatch',
    token: service({ source: undefined }),
    says: [/^source is missing; core asks for "microservice"$/],
  },
  {
    reason: 'token_type_mismatch',
    token: service({ token_type: 5 }),
    says: [/^token_type is 5; core asks for "service"$/],
  },
  {
    reason: 'claim_malformed',
    name: 'exp',
    token: service({ exp: undefined }),
    says: [/^exp is missing; it has to be a whole number: seconds since 1970$/],
  },
  {
    reason: 'claim_malformed',
    name: 'several',
    token: service({ exp: '5', jti: null, permissions: 'orders:read' }),
    says: [
      /^exp is "5"; it has to be a whole number/,
      /^permissions is "orders:read"; it has to be a list of at most 1000 texts/,
      /^jti is null; it has to be a text of 1 to 256/,
    ],
  },
  {
    reason: 'claim_malformed',
    name: 'an item',
    token: service({ permissions: ['a', 7] }),
    says: [/^permissions\[1\] is 7; it has to be a list/],
  },
  {
    reason: 'session_claim_present',
    token: service({ sessionHandle: 'h-secret', stt: 0 }),
    says: [/^it has sessionHandle and stt, which only tokens of user sessions have$/],
  },

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

  { reason: 'key_revoked', token: service({}, { kid: 'd-revoked' }), says: [/^revoked\.key_ids names d-revoked$/] },
  { reason: 'subject_revoked', token: service({ sub: 'mallory' }), says: [/^revoked\.subjects names mallory$/] },
  { reason: 'token_revoked', token: service({ jti: 'stolen' }), says: [/^revoked\.token_ids names stolen$/] },
  {
    reason: 'issue_time_revoked',
    token: service({ iat: undefined }),
    says: [/^revoked\.issued_before is later than its iat, or it has none$/],
  },
  {
    reason: 'token_id_missing',
    method: 'POST',
    headers: [['Idempotency-Key', 'a']],
    says: [/^jti is missing; a token for a route with single_use/],
  },
  {
    reason: 'route_unknown',
    path: '/Orders',
    says: [/^no route has this method and path$/, /^not orders: \/orders differs in case/],
  },
  {
    reason: 'subject_not_approved',
    token: service({ sub: 'eve' }),
    says: [/^subject eve: not approved; approved: checkout$/],
  },
  {
    reason: 'permission_missing',
    token: service({ permissions: ['orders:read'] }),
    says: [
      /^the token grants orders:read; it lacks orders:list$/,
      /^subject checkout: approved$/,
      /^permission orders:read: held$/,
      /^permission orders:list: missing$/,
    ],
  },
  {
    reason: 'permission_missing',
    token: service({ permissions: [] }),
    says: [/^the token grants nothing; it lacks orders:read orders:list$/],
  },
  { reason: 'session_claim_missing', path: '/me', token: session(), says: [/^claim role: is not "support"$/] },
  {
    reason: 'origin_refused',
    path: '/feed',
    headers: [
      ...upgrade,
      ['Sec-WebSocket-Version', '13'],
      ['Sec-WebSocket-Key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
      ['Origin', 'https://evil.example'],
    ],
    says: [/^Origin is "https:\/\/evil\.example"; accepted: https:\/\/app\.example\.com, as the route says$/],
  },
];

/** These come up while a request is received, reserved or forwarded: `explain` does none of that. */
const whileServing: readonly Reason[] = [
  'http_version',
  'body_broken',
  'header_timeout',
  'body_timeout',
  'token_replayed',
  'idempotency_in_progress',
  'idempotency_outcome_unknown',
  'idempotency_not_replayable',
  'idempotency_key_reused',
  'too_many_pending',
  'too_many_kept',
  'rate_limited',
  'too_many_in_flight',
  'store_unavailable',
  'revocations_unknown',
  'overloaded',
  'shutting_down',
  'upstream_unreachable',
  'upstream_failed',
  'upstream_timeout',
  'caller_gone',
  'internal',
];

async function explained({
  method = 'GET',
  path = '/orders',
  headers = [],
  token = service(),
  sdk,
}: Partial<Row>): Promise<Explained> {
  const inForce = policy(sdk ?? null);
  const head = headOf(
    { method, path, headers, body: null },
    token === null ? [] : ['Authorization', `Bearer ${token}`],
  );
  return { head, inForce, nowMs, ruling: await rule(head, 0, inForce, nowMs), credentialNotes: [] };
}

t.test('each reason is explained by what was found and what is accepted', async (t) => {
  for (const row of rows) {
    const name = `${row.reason}${row.name === undefined ? '' : `, ${row.name}`}: ${row.method ?? 'GET'} ${row.path ?? '/orders'}`;
    const question = await explained(row);
    t.equal(question.ruling.reason, row.reason, name);
    const step = explain(question).steps.find(({ outcome }) => outcome === 'refused');
    const [first = '', ...more] = step?.says ?? [];
    t.match(first, row.reason, name);
    for (const [index, pattern] of row.says.entries()) t.match(more[index], pattern, name);
    t.equal(new Set(more).size, more.length, `${name}: nothing twice`);
  }
});

t.test('every reason has an explanation', async (t) => {
  t.same([...new Set([...rows.map(({ reason }) => reason), ...whileServing])].sort(), [...reasons].sort());
  const question = await explained({ token: service({ permissions: ['orders:read', 'orders:list'] }) });
  t.equal(question.ruling.reason, null);
  for (const reason of whileServing) t.match(explainReason({ reason }, question), [/^\S.{10}/], reason);
});

t.test('no explanation shows a token, a signature, a cookie or a handle', async (t) => {
  for (const row of rows) {
    const question = await explained(row);
    const text = explanationLines(question).join('\n');
    const token = row.token ?? service();
    for (const part of token.split('.').filter((each) => each.length > 30)) {
      t.notOk(text.includes(part), `${row.reason}: a part of the token`);
    }
    t.notMatch(text, /h-secret|r-secret|c2VjcmV0|topsecret/, row.reason);
  }
});
