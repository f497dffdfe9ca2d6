import t, { type Test } from 'tap';
import type { Reason } from '../../../src/decision/denial.js';
import type { RequestRecord } from '../../../src/ports/observability.js';
import { rsaKey, withKeyId } from '../../support/keys.js';
import { request, type RawResponse } from '../../support/raw-client.js';
import type { ReceivedRequest } from '../../support/upstream-server.js';
import { mintToken, type Claims } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startProxy, type Harness } from '../harness.js';

const open = { methods: ['GET'], subjects: ['checkout'], permissions: ['orders:read'] };
const routes: readonly ConfigTree[] = [
  { ...open, name: 'list', path: '/orders' },
  {
    ...open,
    name: 'write',
    methods: ['POST'],
    path: '/orders',
    permissions: ['orders:write'],
    idempotency: 'none',
    max_body: '1KiB',
  },
  { ...open, name: 'held', path: '/held', mode: 'enforce' },
  { ...open, name: 'partner', path: '/partner', issuers: ['partner'] },
  { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
];
const partner = {
  issuer: 'https://partner.example',
  jwks_url: 'http://127.0.0.1:1/jwks',
  audience: 'orders',
  source: 'partner',
  token_type: 'partner',
  key_ids: { accept: ['d-*'] },
};
const config: ConfigTree = { mode: 'shadow', routes, issuers: { partner }, revoked: { subjects: ['mallory'] } };

interface Shadow extends Harness {
  /** One GET, unless it says otherwise; its answer, what the receiver got of it, and its record. */
  readonly ask: (
    path: string,
    headers?: Readonly<Record<string, string>>,
    input?: { readonly method?: string; readonly body?: string },
  ) => Promise<Asked>;
}

interface Refused {
  readonly name: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly input?: { readonly method?: string; readonly body?: string };
  readonly status: number;
  readonly reason: Reason;
}

interface Asked {
  readonly response: RawResponse;
  readonly received: ReceivedRequest | null;
  readonly record: RequestRecord;
}

async function startShadow(t: Test, over: ConfigTree = {}): Promise<Shadow> {
  const harness = await startProxy(t, { config: { ...config, ...over } });
  return {
    ...harness,
    ask: async (path, headers = {}, input = {}) => {
      const before = harness.receiver.requests.length;
      const ended = harness.records.length;
      const response = await request(harness.port, { ...input, path, headers });
      return {
        response,
        received: harness.receiver.requests[before] ?? null,
        record: await until('its record', () => harness.records[ended]),
      };
    },
  };
}

const identityOf = (received: ReceivedRequest | null): readonly string[] =>
  (received?.rawHeaders ?? []).filter((text, index) => index % 2 === 0 && /^x.?auth/i.test(text));

t.test('what would be a 401 or 403 goes on as it came, without an identity, logged and counted', async (t) => {
  const shadow = await startShadow(t);
  const bearer = (claims?: Claims): Record<string, string> => ({ ...shadow.authorization(claims) });
  const forged = mintToken({ key: withKeyId(rsaKey('d-evil'), shadow.key.keyId) });
  const rows: readonly {
    name: string;
    path?: string;
    headers: Record<string, string>;
    reason: Reason;
    record?: Partial<RequestRecord>;
  }[] = [
    { name: 'no credential', headers: {}, reason: 'credential_missing' },
    { name: 'another scheme', headers: { Authorization: 'Basic dXNlcjpodXNo' }, reason: 'credential_malformed' },
    { name: 'no token', headers: { Authorization: 'Bearer x' }, reason: 'token_malformed' },
    {
      name: 'expired: claims that do not hold are no facts',
      headers: bearer({ exp: 1, sub: 'liar' }),
      reason: 'token_expired',
    },
    { name: 'forged', headers: { Authorization: `Bearer ${forged}` }, reason: 'signature_invalid' },
    { name: 'another issuer', path: '/partner', headers: bearer(), reason: 'issuer_not_accepted' },
    {
      name: 'another subject',
      headers: bearer({ sub: 'stranger', permissions: ['x'] }),
      reason: 'subject_not_approved',
      record: {
        subject: 'stranger',
        kind: 'service',
        issuer: 'core',
        permissions: ['x'],
        missing_permissions: ['orders:read'],
      },
    },
    {
      name: 'no permission',
      headers: bearer({ permissions: [] }),
      reason: 'permission_missing',
      record: {
        subject: 'checkout',
        kind: 'service',
        issuer: 'core',
        permissions: [],
        missing_permissions: ['orders:read'],
      },
    },
    {
      name: 'no route',
      path: '/unknown',
      headers: bearer({ permissions: ['a'] }),
      reason: 'route_unknown',
      record: { subject: 'checkout', kind: 'service', issuer: 'core', permissions: ['a'], missing_permissions: null },
    },
    { name: 'no route and no credential', path: '/unknown', headers: {}, reason: 'credential_missing' },
  ];
  for (const { name, path = '/orders', headers, reason, record } of rows) {
    const {
      response,
      received,
      record: line,
    } = await shadow.ask(`${path}?q=%2e`, { ...headers, 'X-Auth-Subject': 'checkout', 'X_Auth.Kind': 'service' });
    t.equal(response.status, 200, name);
    t.equal(received?.target, `${path}?q=%2e`, name);
    t.same(
      received?.field('authorization'),
      headers['Authorization'] === undefined ? [] : [headers['Authorization']],
      `${name}: Authorization as it came`,
    );
    t.same(identityOf(received), [], `${name}: no identity, and none of the caller's making`);
    t.match(
      line,
      { decision: 'shadow', reason, status: 200, route: path === '/unknown' ? 'none' : /list|partner/ },
      name,
    );
    t.match(
      line,
      record ?? { subject: null, kind: null, issuer: null, permissions: null, missing_permissions: null },
      name,
    );
  }
  t.same(
    shadow.counted.shadowDenials.map(({ reason }) => reason),
    rows.map(({ reason }) => reason),
  );
  t.same(shadow.counted.denials, [], 'nothing was refused');
});

t.test('allowed requests behave as enforced', async (t) => {
  const shadow = await startShadow(t);
  const { response, received, record } = await shadow.ask('/orders', { ...shadow.authorization() });
  t.equal(response.status, 200);
  t.same(received?.field('x-auth-subject'), ['checkout']);
  t.same(received?.field('authorization'), []);
  t.match(record, {
    decision: 'forwarded',
    reason: null,
    permissions: ['orders:read', 'orders:write'],
    missing_permissions: null,
  });
  const held = await shadow.ask('/held', { ...shadow.authorization() });
  t.equal(held.record.permissions, undefined, 'only routes in shadow mode log permissions');
  t.same(
    identityOf((await shadow.ask('/healthz', { ...shadow.authorization() })).received),
    [],
    'public routes stay what they are',
  );
  t.same(shadow.counted.shadowDenials, []);
});

t.test('target, cleaning, framing, bodies and what is revoked always hold', async (t) => {
  const shadow = await startShadow(t);
  const revoked = { ...shadow.authorization({ sub: 'mallory' }) };
  const rows: readonly Refused[] = [
    { name: 'dot segments', path: '/a/../b', status: 400, reason: 'target_malformed' },
    { name: 'encoded slash without a route', path: '/a%2Fb', status: 400, reason: 'target_malformed' },
    { name: 'two hosts', path: '/orders', headers: { host: 'b', Host: 'a' }, status: 400, reason: 'field_repeated' },
    { name: 'TRACE', path: '/orders', input: { method: 'TRACE' }, status: 405, reason: 'method_not_allowed' },
    { name: 'a body on GET', path: '/orders', input: { body: 'x' }, status: 400, reason: 'body_not_allowed' },
    {
      name: 'a body on GET without a route',
      path: '/unknown',
      input: { body: 'x' },
      status: 400,
      reason: 'body_not_allowed',
    },
    {
      name: 'a body over the limit',
      path: '/orders',
      input: { method: 'POST', body: 'x'.repeat(1_025) },
      status: 413,
      reason: 'body_too_large',
    },
    { name: 'revoked', path: '/orders', headers: revoked, status: 401, reason: 'subject_revoked' },
    { name: 'revoked, of another issuer', path: '/partner', headers: revoked, status: 401, reason: 'subject_revoked' },
    { name: 'revoked, without a route', path: '/unknown', headers: revoked, status: 401, reason: 'subject_revoked' },
    { name: 'a route that enforces', path: '/held', status: 401, reason: 'credential_missing' },
    {
      name: 'its permission',
      path: '/held',
      headers: { ...shadow.authorization({ permissions: [] }) },
      status: 403,
      reason: 'permission_missing',
    },
    { name: 'a lax spelling of it', path: '/Held', status: 401, reason: 'credential_missing' },
    {
      name: 'a trailing slash',
      path: '/held/',
      headers: { ...shadow.authorization() },
      status: 403,
      reason: 'route_unknown',
    },
    { name: 'its HEAD', path: '/held', input: { method: 'HEAD' }, status: 401, reason: 'credential_missing' },
  ];
  for (const { name, path, headers = {}, input = {}, status, reason } of rows) {
    const { response, received, record } = await shadow.ask(path, headers, input);
    t.equal(response.status, status, name);
    t.equal(received, null, name);
    t.match(record, { decision: 'denied', reason }, name);
  }
  t.equal(
    (await shadow.ask('/unknown', {}, { method: 'POST', body: 'x'.repeat(2 * 1024 * 1024) })).response.status,
    200,
    'no route, no limit',
  );
  t.equal(
    (await shadow.ask('/orders', {}, { method: 'POST', body: 'x'.repeat(1_024) })).received?.body.length,
    1_024,
    'a body goes on as it came',
  );
});

t.test('what is revoked holds for a token that is refused for something else as well', async (t) => {
  const shadow = await startShadow(t, {
    revoked: { key_ids: ['d-stolen', 's-stolen'], subjects: ['mallory'], token_ids: ['lost'] },
  });
  const { key } = shadow;
  const bearer = (claims: Claims, header: Claims = {}, signer = key): Record<string, string> => ({
    Authorization: `Bearer ${mintToken({ key: signer, claims, header })}`,
  });
  const stranger = withKeyId(rsaKey('d-evil'), key.keyId);
  const past = Math.floor(Date.now() / 1_000) - 600;
  const rows: readonly {
    name: string;
    path?: string;
    headers: Record<string, string>;
    reason: Reason;
    passes?: true;
  }[] = [
    { name: 'a revoked key that has left its set', headers: bearer({}, { kid: 'd-stolen' }), reason: 'key_revoked' },
    { name: 'one that no issuer accepts', headers: bearer({}, { kid: 's-stolen' }), reason: 'key_revoked' },
    {
      name: 'under another algorithm, which the receiver may take',
      headers: bearer({}, { kid: 'd-stolen', alg: 'PS256' }),
      reason: 'key_revoked',
    },
    {
      name: 'expired too, without a route',
      path: '/unknown',
      headers: bearer({ exp: past }, { kid: 'd-stolen' }),
      reason: 'key_revoked',
    },
    { name: 'a revoked subject, expired', headers: bearer({ sub: 'mallory', exp: past }), reason: 'subject_revoked' },
    { name: 'for another receiver', headers: bearer({ sub: 'mallory', aud: 'billing' }), reason: 'subject_revoked' },
    {
      name: 'without a route',
      path: '/unknown',
      headers: bearer({ sub: 'mallory', source: 'x' }),
      reason: 'subject_revoked',
    },
    { name: 'a revoked token, expired', headers: bearer({ jti: 'lost', exp: past }), reason: 'token_revoked' },
    { name: 'a token without a subject', headers: bearer({ jti: 'lost', sub: undefined }), reason: 'token_revoked' },
    {
      name: 'what others sign is not ours',
      headers: bearer({ sub: 'mallory', jti: 'lost' }, {}, stranger),
      reason: 'signature_invalid',
      passes: true,
    },
    {
      name: 'nor does another algorithm',
      headers: bearer({ sub: 'mallory' }, { alg: 'HS256' }, stranger),
      reason: 'algorithm_refused',
      passes: true,
    },
    {
      name: 'a key that is not known',
      headers: bearer({ sub: 'mallory' }, { kid: 'd-unknown' }),
      reason: 'key_unknown',
      passes: true,
    },
    { name: 'expired alone', headers: bearer({ exp: past }), reason: 'token_expired', passes: true },
    {
      name: 'no token',
      headers: { Authorization: 'Bearer opaque-legacy-token' },
      reason: 'token_malformed',
      passes: true,
    },
    {
      name: 'a route that enforces says what it would say',
      path: '/held',
      headers: bearer({ sub: 'mallory', exp: past }),
      reason: 'token_expired',
    },
  ];
  for (const { name, path = '/orders', headers, reason, passes = false } of rows) {
    const { response, received, record } = await shadow.ask(path, headers);
    t.match(record, { decision: passes ? 'shadow' : 'denied', reason, subject: null }, name);
    t.equal(response.status, passes ? 200 : 401, name);
    t.equal(received === null, !passes, name);
    t.same(identityOf(received), [], name);
  }
});

t.test('an issued-before rule holds for an expired token, and not for those of others', async (t) => {
  const nowS = Math.floor(Date.now() / 1_000);
  const shadow = await startShadow(t, { revoked: { issued_before: new Date(nowS * 1_000).toISOString() } });
  const stranger = mintToken({ key: withKeyId(rsaKey('d-evil'), shadow.key.keyId), claims: { iat: nowS - 60 } });
  const rows: readonly { name: string; token: string; reason: Reason; status: number }[] = [
    {
      name: 'before',
      token: shadow.authorization({ iat: nowS - 60, aud: 'billing' }).Authorization,
      reason: 'issue_time_revoked',
      status: 401,
    },
    {
      name: 'who knows when',
      token: shadow.authorization({ iat: undefined, aud: 'billing' }).Authorization,
      reason: 'issue_time_revoked',
      status: 401,
    },
    {
      name: 'after',
      token: shadow.authorization({ iat: nowS, aud: 'billing' }).Authorization,
      reason: 'audience_mismatch',
      status: 200,
    },
    { name: 'of another', token: `Bearer ${stranger}`, reason: 'signature_invalid', status: 200 },
  ];
  for (const { name, token, reason, status } of rows) {
    const { response, record } = await shadow.ask('/orders', { Authorization: token });
    t.same([response.status, record.reason], [status, reason], name);
  }
});

t.test('with mode: shadow on a route alone, requests without a route are refused', async (t) => {
  const shadow = await startShadow(t, {
    mode: 'enforce',
    routes: [
      { ...open, name: 'tried', path: '/tried', mode: 'shadow' },
      { ...open, name: 'held', path: '/held' },
    ],
  });
  t.equal((await shadow.ask('/tried')).record.decision, 'shadow');
  t.equal((await shadow.ask('/unknown', { ...shadow.authorization() })).response.status, 403);
  t.equal((await shadow.ask('/unknown')).response.status, 401);
  t.equal((await shadow.ask('/held')).response.status, 401);
});

t.test('without keys it is 503 as ever: who is allowed must not lose a reservation by it', async (t) => {
  const harness = await startProxy(t, { config, find: () => ({ kind: 'unavailable' }) });
  const response = await request(harness.port, { path: '/orders', headers: { ...harness.authorization() } });
  t.equal(response.status, 503);
  t.equal((await request(harness.port, { path: '/orders' })).status, 200, 'who sends no such token is not concerned');
});

t.test('what the upstream fails to do is told as such, and the would-be refusal counted all the same', async (t) => {
  const shadow = await startShadow(t);
  shadow.receiver.behave((req) => req.socket.destroy());
  const { response, record } = await shadow.ask('/orders');
  t.equal(response.status, 502);
  t.match(record, { decision: 'failed', reason: 'upstream_failed' });
  t.same(shadow.counted.shadowDenials, [{ route: 'list', reason: 'credential_missing' }]);
  t.same(shadow.counted.failures, ['upstream_failed']);
});
