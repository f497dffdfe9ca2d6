import t from 'tap';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import type { RequestHead } from '../../../src/decision/http/request-head.js';
import type { KeyLookup } from '../../../src/ports/auth.js';
import type { ActiveConfig } from '../../../src/proxy/auth/active-config.js';
import { authorizeRequest, type AuthResult, type Peer, type Step } from '../../../src/proxy/auth/authorize-request.js';
import { createUpstream } from '../../../src/proxy/upstream/pool/pool.js';
import { createVerifiedTokens } from '../../../src/proxy/auth/verified-token-cache.js';
import { rsaKey } from '../../support/keys.js';
import { mintToken, type Claims } from '../../support/tokens.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { compiled } from '../harness.js';

const key = rsaKey();
const peer: Peer = { remoteAddress: '192.0.2.7', encrypted: false, trusted: false };
const found = (keyId: string): KeyLookup => ({ kind: 'found', key: { keyId, algorithm: 'RS256', key: key.publicKey } });

function activeConfig(
  overrides: ConfigTree = {},
  find: (keyId: string, issuer: string) => KeyLookup | Promise<KeyLookup> = found,
): ActiveConfig {
  const config = compiled(overrides);
  const { underscoreFields, http10 } = config.listen;
  const identityNames = Object.values(config.identity).filter((name): name is string => typeof name === 'string');
  return {
    config,
    assertion: null,
    headerRules: createHeaderRules({ identityNames, underscoreFields, http10 }),
    issuers: config.issuers.map(({ rules }) => ({
      rules,
      keys: {
        find: (keyId) => find(keyId, rules.name),
        state: () => {
          throw new Error('unasked');
        },
      },
    })),
    sessions: null,
    upstream: createUpstream(config.upstream, null),
    verified: null,
    revocations: () => [config.revoked],
    knowsRevocations: () => true,
  };
}

function head(method: string, target: string, fields: readonly string[] = [], claims?: Claims): RequestHead {
  const credential = claims === undefined ? [] : ['Authorization', `Bearer ${mintToken({ key, claims })}`];
  return { method, target, httpVersion: '1.1', rawHeaders: ['Host', 'a.example', ...credential, ...fields] };
}

/** What became of a request: the reason, or `admitted` with the route. */
function outcome(judgement: AuthResult): string {
  return judgement.ok ? `admitted ${judgement.value.route.name}` : judgement.error.denial.reason;
}

t.test('the steps come in order, each with what it said, and end with the first refusal', async (t) => {
  const proxy = activeConfig();
  const read: readonly Step[] = ['head', 'method', 'target', 'fields'];
  const verified: readonly Step[] = [...read, 'route', 'credential', 'verification'];
  const cases: readonly { readonly head: RequestHead; readonly steps: readonly Step[]; readonly outcome: string }[] = [
    { head: head('GET', `/${'a'.repeat(20_000)}`), steps: ['head'], outcome: 'header_too_large' },
    { head: head('TRACE', '/orders', [], {}), steps: ['head', 'method'], outcome: 'method_not_allowed' },
    { head: head('GET', '/a/../b', [], {}), steps: ['head', 'method', 'target'], outcome: 'target_malformed' },
    { head: head('GET', '/orders', ['Host', 'b'], {}), steps: read, outcome: 'field_repeated' },
    { head: head('GET', '/orders'), steps: [...read, 'route', 'credential'], outcome: 'credential_missing' },
    { head: head('GET', '/orders', [], { exp: 1 }), steps: verified, outcome: 'token_expired' },
    { head: head('GET', '/no', [], {}), steps: [...verified, 'revocation'], outcome: 'route_unknown' },
    {
      head: head('GET', '/orders', [], { sub: 'nobody' }),
      steps: [...verified, 'revocation', 'policy'],
      outcome: 'subject_not_approved',
    },
    {
      head: head('GET', '/orders', [], {}),
      steps: [...verified, 'revocation', 'policy', 'body'],
      outcome: 'admitted list-orders',
    },
    { head: head('GET', '/healthz'), steps: [...read, 'route', 'body'], outcome: 'admitted health' },
  ];
  for (const { head: asked, steps, outcome: expected } of cases) {
    const seen: Step[] = [];
    const judgement = await authorizeRequest(asked, peer, proxy, Date.now(), (step, result) => {
      seen.push(step);
      return result;
    });
    t.same(seen, steps, expected);
    t.equal(outcome(judgement), expected);
  }
});

t.test('a decision is made at once where the key is known, and later where it is not', async (t) => {
  const asked = head('GET', '/orders', [], {});
  t.notOk(authorizeRequest(asked, peer, activeConfig(), Date.now()) instanceof Promise);
  const later = authorizeRequest(
    asked,
    peer,
    activeConfig({}, async (keyId) => Promise.resolve(found(keyId))),
    Date.now(),
  );
  t.ok(later instanceof Promise);
  t.equal(outcome(await later), 'admitted list-orders');
  for (const [kind, expected] of [
    ['unknown', 'key_unknown'],
    ['unavailable', 'keys_unavailable'],
  ] as const) {
    const lookup = { kind };
    t.equal(
      outcome(
        await authorizeRequest(
          asked,
          peer,
          activeConfig({}, () => lookup),
          Date.now(),
        ),
      ),
      expected,
    );
    t.equal(
      outcome(
        await authorizeRequest(
          asked,
          peer,
          activeConfig({}, async () => Promise.resolve(lookup)),
          Date.now(),
        ),
      ),
      expected,
    );
  }
});

t.test('revocation comes before policy, and also where there is no route', async (t) => {
  const proxy = activeConfig({ revoked: { subjects: ['checkout'] } });
  for (const target of ['/orders', '/no']) {
    t.equal(outcome(await authorizeRequest(head('GET', target, [], {}), peer, proxy, Date.now())), 'subject_revoked');
  }
});

t.test('a credential of an issuer that the route does not take is none there', async (t) => {
  const issuer = {
    issuer: 'https://api.example.com',
    jwks_url: 'http://127.0.0.1:1/jwks.json',
    audience: 'orders',
    token_type: 'service',
    key_ids: { accept: ['d-*'] },
  };
  const route = { methods: ['GET'], subjects: ['checkout'], permissions: [] };
  const proxy = activeConfig({
    issuers: {
      core: { ...issuer, source: 'microservice' },
      same: { ...issuer, source: ['microservice', 'batch'] },
      other: { ...issuer, source: 'batch' },
    },
    routes: [
      { ...route, name: 'any', path: '/any' },
      { ...route, name: 'core', path: '/core', issuers: ['core'] },
      { ...route, name: 'same', path: '/same', issuers: ['same'] },
      { ...route, name: 'other', path: '/other', issuers: ['other'] },
    ],
  });
  const ask = async (target: string, claims: Claims): Promise<string> => {
    const judgement = await authorizeRequest(head('GET', target, [], claims), peer, proxy, Date.now());
    const principal = judgement.ok ? judgement.value.principal : judgement.error.principal;
    return `${outcome(judgement)} ${principal?.issuerName ?? '-'}`;
  };
  t.equal(await ask('/any', {}), 'admitted any core');
  t.equal(await ask('/core', {}), 'admitted core core');
  t.equal(await ask('/same', {}), 'admitted same same', 'the first issuer that accepts it does not stand in the way');
  t.equal(await ask('/other', {}), 'issuer_not_accepted -');
  t.equal(await ask('/core', { source: 'batch' }), 'issuer_not_accepted -');
  t.equal(await ask('/other', { source: 'batch' }), 'admitted other other');
  t.equal(await ask('/nowhere', { source: 'batch' }), 'route_unknown same');
});

t.test('what the upstream gets names the caller, the request and us', async (t) => {
  const sent = ['Accept', '*/*', 'X-Request-Id', 'mine', 'X_Auth_Subject', 'evil'];
  const judgement = await authorizeRequest(head('GET', '/orders?q=1', sent, {}), peer, activeConfig(), Date.now());
  t.ok(judgement.ok);
  if (!judgement.ok) return;
  const { forwarded, stripped, requestId, target } = judgement.value;
  const fields = new Map(forwarded.flatMap((name, i) => (i % 2 === 0 ? [[name, forwarded[i + 1]] as const] : [])));
  t.equal(target.raw, '/orders?q=1');
  t.equal(requestId, 'mine');
  t.same(stripped, { identity: 1 });
  t.match(fields.get('traceparent'), /^00-[0-9a-f]{32}-[0-9a-f]{16}-02$/);
  fields.delete('traceparent');
  t.same(
    [...fields],
    [
      ['Host', '127.0.0.1:3000'],
      ['Accept', '*/*'],
      ['X-Forwarded-For', '192.0.2.7'],
      ['X-Forwarded-Proto', 'http'],
      ['X-Forwarded-Host', 'a.example'],
      ['Via', '1.1 sallyport'],
      ['X-Request-Id', 'mine'],
      ['X-Auth-Subject', 'checkout'],
      ['X-Auth-Issuer', 'https://api.example.com'],
      ['X-Auth-Permissions', 'orders:read orders:write'],
      ['X-Auth-Kind', 'service'],
    ],
  );
});

t.test('each request without an id or a trace gets ones of its own', async (t) => {
  const proxy = activeConfig();
  const ids = new Set<string>();
  const traces = new Set<string>();
  for (let i = 0; i < 600; i++) {
    const judgement = await authorizeRequest(head('GET', '/healthz'), peer, proxy, Date.now());
    if (!judgement.ok) continue;
    ids.add(judgement.value.requestId);
    traces.add(judgement.value.forwarded[judgement.value.forwarded.indexOf('traceparent') + 1] ?? '');
  }
  t.equal(ids.size, 600);
  t.equal(traces.size, 600);
});

t.test('earlier hops are believed from trusted addresses only, and what is dropped is counted', async (t) => {
  const fields = ['X-Forwarded-For', '203.0.113.1', 'X-Forwarded-Proto', 'https'];
  const cases = [
    { trusted: false, forwardedFor: '192.0.2.7', stripped: { forwarded: 2 } },
    { trusted: true, forwardedFor: '203.0.113.1, 192.0.2.7', stripped: {} },
  ];
  for (const { trusted, forwardedFor, stripped } of cases) {
    const judgement = await authorizeRequest(
      head('GET', '/healthz', fields),
      { ...peer, trusted },
      activeConfig(),
      Date.now(),
    );
    t.ok(judgement.ok);
    if (!judgement.ok) continue;
    t.equal(judgement.value.forwarded[judgement.value.forwarded.indexOf('X-Forwarded-For') + 1], forwardedFor);
    t.same(judgement.value.stripped, stripped);
  }
});

t.test("a token is looked for once, and where it is nobody's concern not at all", async (t) => {
  const tokens = createVerifiedTokens(100_000);
  let [digests, looks] = [0, 0];
  const verified = {
    ...tokens,
    digestOfHeader: (field: string) => {
      digests += 1;
      return tokens.digestOfHeader(field);
    },
    has: (digest: string) => {
      looks += tokens.has(digest) ? 1 : 0;
      return tokens.has(digest);
    },
  };
  const proxy = { ...activeConfig(), verified };
  const asked = head('GET', '/orders', [], {});
  for (const known of [0, 1, 2]) {
    t.equal(outcome(await authorizeRequest(asked, peer, proxy, Date.now())), 'admitted list-orders');
    t.equal(looks, known);
  }
  t.equal(digests, 3);
  t.equal(
    outcome(await authorizeRequest({ ...asked, target: '/healthz' }, peer, proxy, Date.now())),
    'admitted health',
  );
  t.equal(digests, 3, 'a public route');
});
