/**
 * docs/issuers/*.md: the config of each page passes `check`, and takes the token that the page shows, on a real
 * `serve`, with the keys of the test in the place of the provider's. What differs in one part is refused.
 */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { validateConfig } from '../../src/config/load/validate-config.js';
import type { Algorithm } from '../../src/decision/token/profiles.js';
import { accept } from '../../src/lib/result.js';
import { keyFor, tokenBy, type AnyKey } from '../support/profile-tokens.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import { readProjectFile } from '../support/source-files.js';
import { tempDir } from '../support/temp-dir.js';
import type { Claims } from '../support/tokens.js';
import { fencedBlocks, providerPages } from './fenced-blocks.js';

t.setTimeout(300_000);

/** What makes another token of the one that is shown. */
interface Change {
  readonly header?: Claims;
  readonly claims?: Claims;
  /** What the log says; `null` where it is let through. */
  readonly reason: string | null;
}

/** A config of a page, and the token of the page that it is for. */
interface Example {
  readonly page: string;
  /** Which of the page's configs, and which of its tokens, counted from 0. */
  readonly config: number;
  readonly token: number;
  /** By what is different. */
  readonly changes: Readonly<Record<string, Change>>;
  /** Why the token as it is shown is refused, where it is. */
  readonly reason?: string;
}

interface ShownConfig {
  readonly issuers: Readonly<Record<string, ConfigTree>>;
  readonly routes: readonly ConfigTree[];
}

/** The blocks of a page: configs, and pairs of a header and claims. */
function shownOn(page: string): { configs: ShownConfig[]; tokens: { header: Claims; claims: Claims }[] } {
  const blocks = fencedBlocks(page);
  const json = blocks.filter(({ language }) => language === 'json').map(({ text }) => JSON.parse(text) as Claims);
  return {
    configs: blocks
      .filter(({ language, text }) => language === 'yaml' && text.startsWith('issuers:'))
      .map(({ text }) => parse(text) as ShownConfig),
    tokens: json.flatMap((header, index) => (index % 2 === 0 ? [{ header, claims: json[index + 1] ?? {} }] : [])),
  };
}

const tenant = '00000000-0000-0000-0000-000000000000';
const otherTenant: Change = {
  claims: { iss: `https://login.microsoftonline.com/${tenant}/v2.0`, tid: tenant },
  reason: 'issuer_mismatch',
};
const asResource: Change = { header: { typ: 'at+jwt' }, reason: 'token_malformed' };

const examples: readonly Example[] = [
  {
    page: 'docs/issuers/keycloak.md',
    config: 0,
    token: 0,
    changes: {
      'another realm': { claims: { iss: 'https://keycloak.example.com/realms/test' }, reason: 'issuer_mismatch' },
      'no audience mapper': { claims: { aud: 'account' }, reason: 'audience_mismatch' },
      'at+jwt': asResource,
      'an ID token': { claims: { typ: 'ID', aud: 'orders', at_hash: 'x' }, reason: 'token_type_mismatch' },
      'an ID token without at_hash': { claims: { typ: 'ID', aud: 'orders' }, reason: 'claim_mismatch' },
      'a refresh token': { claims: { typ: 'Refresh' }, reason: 'claim_mismatch' },
      'another client': { claims: { azp: 'reporting' }, reason: 'subject_not_approved' },
      'without the role': { claims: { realm_access: { roles: [] } }, reason: 'permission_missing' },
      'a role of a client': {
        claims: { realm_access: undefined, resource_access: { orders: { roles: ['orders:read'] } } },
        reason: 'permission_missing',
      },
    },
  },
  {
    page: 'docs/issuers/entra-id.md',
    config: 0,
    token: 0,
    changes: {
      'another tenant': otherTenant,
      'another tenant under this issuer': { claims: { tid: tenant }, reason: 'claim_mismatch' },
      'another API': { claims: { aud: '00000003-0000-0000-c000-000000000000' }, reason: 'audience_mismatch' },
      'at+jwt': asResource,
      'an ID token': {
        claims: { azp: undefined, azpacr: undefined, idtyp: undefined, roles: undefined, nonce: 'n', name: 'Jane' },
        reason: 'claim_mismatch',
      },
      'for a user': { claims: { idtyp: 'user', scp: 'Orders.Read' }, reason: 'claim_mismatch' },
      'idtyp not switched on': { claims: { idtyp: undefined }, reason: 'claim_mismatch' },
      'version 1.0': {
        claims: { iss: 'https://sts.windows.net/11111111-2222-3333-4444-555555555555/', ver: '1.0' },
        reason: 'issuer_mismatch',
      },
      'scp for roles': { claims: { roles: undefined, scp: 'Orders.Read' }, reason: 'permission_missing' },
      'another application': { claims: { azp: tenant }, reason: 'subject_not_approved' },
    },
  },
  {
    page: 'docs/issuers/entra-id.md',
    config: 1,
    token: 1,
    changes: {
      'another tenant': { claims: { iss: `https://sts.windows.net/${tenant}/` }, reason: 'issuer_mismatch' },
      'the audience without api://': {
        claims: { aud: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee' },
        reason: 'audience_mismatch',
      },
      'at+jwt': asResource,
      'an ID token': {
        claims: { appid: undefined, appidacr: undefined, idtyp: undefined, roles: undefined },
        reason: 'claim_mismatch',
      },
      'azp for appid': { claims: { appid: undefined, azp: 'x' }, reason: 'claim_malformed' },
    },
  },
  {
    page: 'docs/issuers/auth0.md',
    config: 0,
    token: 0,
    changes: {
      'another tenant': { claims: { iss: 'https://acme-test.eu.auth0.com/' }, reason: 'issuer_mismatch' },
      'no slash at the end': { claims: { iss: 'https://acme.eu.auth0.com' }, reason: 'issuer_mismatch' },
      'another API': { claims: { aud: 'https://billing.example.com' }, reason: 'audience_mismatch' },
      'the profile of Auth0': { header: { typ: 'JWT' }, reason: 'token_malformed' },
      'an ID token': {
        header: { typ: 'JWT' },
        claims: { aud: 'awZfdIir8YFdGZWkvCejDoUb7SjTDicx', nonce: 'n' },
        reason: 'token_malformed',
      },
      'without client_id': { claims: { client_id: undefined }, reason: 'claim_malformed' },
      'no RBAC': { claims: { permissions: undefined }, reason: 'permission_missing' },
      'an audience that is a list': {
        claims: { aud: ['https://orders.example.com', 'https://acme.eu.auth0.com/userinfo'] },
        reason: null,
      },
    },
  },
  {
    page: 'docs/issuers/auth0.md',
    config: 1,
    token: 1,
    changes: {
      'another tenant': { claims: { iss: 'https://acme-test.eu.auth0.com/' }, reason: 'issuer_mismatch' },
      'another API': { claims: { aud: 'https://billing.example.com' }, reason: 'audience_mismatch' },
      'at+jwt': asResource,
      'an ID token': {
        claims: { aud: 'awZfdIir8YFdGZWkvCejDoUb7SjTDicx', gty: undefined, azp: undefined, nonce: 'n' },
        reason: 'audience_mismatch',
      },
      'with a user': { claims: { gty: undefined }, reason: 'claim_mismatch' },
    },
  },
  {
    page: 'docs/issuers/okta.md',
    config: 0,
    token: 0,
    changes: {
      'another server': { claims: { iss: 'https://acme.okta.com/oauth2/aus2x' }, reason: 'issuer_mismatch' },
      'the server of the org': { claims: { iss: 'https://acme.okta.com' }, reason: 'issuer_mismatch' },
      'another API': { claims: { aud: 'api://default' }, reason: 'audience_mismatch' },
      'for the APIs of Okta': {
        header: { typ: 'application/okta-internal-at+jwt' },
        reason: 'token_malformed',
      },
      'an ID token': { claims: { cid: undefined, scp: undefined, at_hash: 'x' }, reason: 'token_type_mismatch' },
      'an ID token without at_hash': { claims: { cid: undefined, scp: undefined }, reason: 'claim_malformed' },
      'scope for scp': { claims: { scp: undefined, scope: 'orders.read' }, reason: 'permission_missing' },
    },
  },
  { page: 'docs/issuers/cognito.md', config: 0, token: 0, changes: {}, reason: 'audience_mismatch' },
  { page: 'docs/issuers/cognito.md', config: 1, token: 0, changes: {}, reason: 'audience_mismatch' },
  {
    page: 'docs/issuers/cognito.md',
    config: 0,
    token: 1,
    changes: {
      'another pool': {
        claims: { iss: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_XyZ' },
        reason: 'issuer_mismatch',
      },
      'another service': { claims: { aud: 'https://billing.example.com' }, reason: 'audience_mismatch' },
      JWT: { header: { typ: 'JWT' }, reason: 'token_malformed' },
      'an ID token': {
        claims: { token_use: 'id', aud: '3n4b5urk1ft4fl3mg5e62d9ado', client_id: undefined, scope: undefined },
        reason: 'audience_mismatch',
      },
      'without aud': { claims: { aud: undefined }, reason: 'audience_mismatch' },
    },
  },
  {
    page: 'docs/issuers/cognito.md',
    config: 1,
    token: 2,
    changes: {
      'another pool': {
        claims: { iss: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_XyZ' },
        reason: 'issuer_mismatch',
      },
      'another client': { claims: { aud: '1example23456789' }, reason: 'audience_mismatch' },
      JWT: { header: { typ: 'JWT' }, reason: 'token_malformed' },
      'an ID token': { claims: { token_use: 'id', scope: undefined }, reason: 'claim_mismatch' },
      'another service': { claims: { scope: 'billing/read' }, reason: 'permission_missing' },
    },
  },
  {
    page: 'docs/issuers/google.md',
    config: 0,
    token: 0,
    changes: {
      'another issuer': { claims: { iss: 'accounts.google.com' }, reason: 'issuer_mismatch' },
      'another service': { claims: { aud: 'https://billing.example.com' }, reason: 'audience_mismatch' },
      'at+jwt': asResource,
      'a person who signed in': {
        claims: { at_hash: 'x', email: 'jane@example.com', hd: 'example.com' },
        reason: 'token_type_mismatch',
      },
      'a service account of somebody else': {
        claims: { email: 'checkout@shop-evil.iam.gserviceaccount.com' },
        reason: 'subject_not_approved',
      },
      'email not asked for': { claims: { email: undefined, email_verified: undefined }, reason: 'claim_mismatch' },
      'email not verified': { claims: { email_verified: false }, reason: 'claim_mismatch' },
    },
  },
  {
    page: 'docs/issuers/kubernetes.md',
    config: 0,
    token: 0,
    changes: {
      'another cluster': { claims: { iss: 'https://kubernetes.default.svc' }, reason: 'issuer_mismatch' },
      'the token that each pod has': {
        claims: { aud: ['https://kubernetes.default.svc.cluster.local'] },
        reason: 'audience_mismatch',
      },
      'at+jwt': asResource,
      'a token of old': {
        claims: { iss: 'kubernetes/serviceaccount', aud: undefined, exp: undefined, 'kubernetes.io': undefined },
        reason: 'issuer_mismatch',
      },
      'without kubernetes.io': { claims: { 'kubernetes.io': undefined }, reason: 'claim_mismatch' },
      'another namespace than in kubernetes.io': {
        claims: { sub: 'system:serviceaccount:test:checkout' },
        reason: 'claim_mismatch',
      },
    },
  },
  {
    page: 'docs/issuers/spire.md',
    config: 0,
    token: 0,
    changes: {
      'another trust domain': {
        claims: { sub: 'spiffe://evil.example/ns/shop/sa/checkout' },
        reason: 'issuer_mismatch',
      },
      'another service': { claims: { aud: ['spiffe://shop.example/billing'] }, reason: 'audience_mismatch' },
      'at+jwt': asResource,
      'a member that the standard has not': { header: { jti: 'x' }, reason: 'token_malformed' },
      'an iss, which is not asked about': { claims: { iss: 'https://oidc.shop.example' }, reason: null },
      'another workload': { claims: { sub: 'spiffe://shop.example/ns/test/sa/x' }, reason: 'subject_not_approved' },
    },
  },
];

/** Claims of a token with its times moved to now. */
function current(claims: Claims, nowS: number): Claims {
  const issuedAt = Number(claims['iat']);
  const times = ['iat', 'nbf', 'exp', 'auth_time'].filter((name) => claims[name] !== undefined);
  return { ...claims, ...Object.fromEntries(times.map((name) => [name, Number(claims[name]) - issuedAt + nowS])) };
}

function keyOf(header: Claims): AnyKey {
  return keyFor(header['alg'] as Algorithm, String(header['kid']));
}

/** The shown config with keys from a file in the place of those that the provider publishes. */
function withKeys({ issuers, routes }: ShownConfig, folder: string, key: AnyKey): ConfigTree {
  const file = join(folder, 'keys.json');
  const shown = Object.entries(issuers).map(([name, issuer]) => {
    const isSpiffe = issuer['profile'] === 'spiffe';
    // Entra ID and SPIRE publish keys without `alg`.
    const jwk = { ...key.jwk, alg: undefined, use: isSpiffe ? 'jwt-svid' : 'sig' };
    writeFileSync(file, JSON.stringify({ keys: [jwk] }));
    const places = ['discovery_url', 'jwks_url_because', 'jwks_origins', 'bundle_url'];
    const kept = Object.entries(issuer).filter(([setting]) => !places.includes(setting));
    return [name, { ...Object.fromEntries(kept), [isSpiffe ? 'bundle_file' : 'jwks_file']: file }];
  });
  return { issuers: Object.fromEntries(shown) as ConfigTree, routes };
}

let asked = 0;

async function reasonOf(proxy: ProxyProcess, token: string): Promise<unknown> {
  proxy.markSecret(token);
  const id = `example-${(asked += 1)}`;
  const headers = { Authorization: `Bearer ${token}`, 'X-Request-Id': id };
  const { status } = await proxy.request({ path: '/orders', headers });
  const { reason } = await proxy.logOf(id);
  t.equal(status === 200, reason === null, `${String(status)} ${String(reason)}`);
  return reason;
}

t.test('each page has its examples, and each block of it is tried', async (t) => {
  t.same([...new Set(examples.map(({ page }) => page))].sort(), providerPages);
  for (const page of providerPages) {
    const { configs, tokens } = shownOn(page);
    const ofPage = examples.filter((example) => example.page === page);
    t.same([...new Set(ofPage.map(({ config }) => config))].sort(), [...configs.keys()], `${page}: configs`);
    t.same([...new Set(ofPage.map(({ token }) => token))].sort(), [...tokens.keys()], `${page}: tokens`);
    const rest = fencedBlocks(page).filter(({ text }) => !/^(?:issuers:|\{)/.test(text));
    t.same(
      rest.map(({ text }) => text.split('\n')[0]),
      page.endsWith('/kubernetes.md') ? ['volumes:'] : [],
      page,
    );
  }
});

/** Of the life of Auth0's tokens, which the page says how to shorten. */
const warned = /^issuers\.auth0(?:-jwt)?\.max_lifetime is long: /;

t.test('configs that are shown pass check without a warning', async (t) => {
  for (const page of providerPages) {
    for (const shown of shownOn(page).configs) {
      const rest = {
        listen: { host: '127.0.0.1', port: 8080 },
        upstream: { url: 'http://127.0.0.1:3000' },
        store: { redis: { url: 'redis://127.0.0.1' } },
      };
      const { problems } = validateConfig(stringify({ ...rest, ...shown }), {
        file: 'sallyport.yaml',
        folder: '/',
        env: {},
        readFile: () => accept(''),
      });
      t.same(
        problems.filter(({ message }) => !warned.test(message)),
        [],
        `${page}: ${Object.keys(shown.issuers).join()}`,
      );
    }
  }
});

t.test('tokens that are shown are taken as the page says, and what differs in one part is refused', async (t) => {
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  for (const { page, config, token, changes, reason = null } of examples) {
    const { configs, tokens } = shownOn(page);
    const [shown, example] = [configs[config], tokens[token]];
    if (shown === undefined || example === undefined) throw new Error(`${page} lacks what is tried`);
    const key = keyOf(example.header);
    const name = `${page}, ${Object.keys(shown.issuers).join()}`;
    await t.test(name, async (t) => {
      const proxy = await startProxyProcess(t, { config: withKeys(shown, tempDir(t), key) });
      const nowS = Math.floor(Date.now() / 1_000);
      const claims = current(example.claims, nowS);
      t.equal(await reasonOf(proxy, tokenBy(key, claims, example.header)), reason, 'as it is shown');
      if (reason !== null) return;
      const always: Readonly<Record<string, Change>> = {
        expired: { claims: current(example.claims, nowS - 2 * 86_400), reason: 'token_expired' },
        'without exp': { claims: { exp: undefined }, reason: 'claim_malformed' },
        'without aud': { claims: { aud: undefined }, reason: 'audience_mismatch' },
        HS256: { header: { alg: 'HS256' }, reason: 'algorithm_refused' },
      };
      for (const [difference, change] of Object.entries({ ...changes, ...always })) {
        const changed = tokenBy(key, { ...claims, ...change.claims }, { ...example.header, ...change.header });
        t.equal(await reasonOf(proxy, changed), change.reason, difference);
      }
      const forged = tokenBy({ ...key, algorithm: 'RS256', privateKey: other }, claims, example.header);
      t.equal(await reasonOf(proxy, forged), 'signature_invalid', 'signed by another key');
      t.same(await proxy.exposures(), []);
    });
  }
});

t.test('each page says how to find out more, where its token comes from, and that nothing was run', async (t) => {
  for (const page of providerPages) {
    const text = readProjectFile(page);
    t.match(text, /\(\.\.\/policy-tests\.md#explain\)/, page);
    t.match(text, /\(\.\.\/cli\.md#doctor\)/, page);
    t.match(text, /\(\.\.\/issuers\.md#\w+\)/, page);
    t.match(text, /(?:cannot be run here|was (?:not )?run for this page)\. The token is rebuilt from/, page);
    t.match(text, /\]\(https:\/\//, page);
    t.match(readProjectFile('docs/issuers.md'), page.replace('docs/', ''), `${page} is linked`);
  }
});

t.test('docs/issuers/kubernetes.md: the volume is for the audience of the config', async (t) => {
  const page = 'docs/issuers/kubernetes.md';
  const [volume = ''] = fencedBlocks(page).flatMap(({ text }) => (text.startsWith('volumes:') ? [text] : []));
  const audiences = [...volume.matchAll(/audience: ([\w-]+)/g)].map(([, audience]) => audience);
  t.same(audiences, [shownOn(page).configs[0]?.issuers['cluster']?.['audience']]);
});
