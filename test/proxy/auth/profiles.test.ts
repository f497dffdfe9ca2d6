import { createHmac } from 'node:crypto';
import t from 'tap';
import { algorithmNames } from '../../../src/decision/token/profiles.js';
import type { IssuerRules } from '../../../src/decision/route/policy.js';
import type { KeyLookup } from '../../../src/ports/auth.js';
import type { ActiveIssuer } from '../../../src/proxy/auth/active-config.js';
import { createVerifiedTokens } from '../../../src/proxy/auth/verified-token-cache.js';
import { verifyCredential } from '../../../src/proxy/auth/credentials/service-token.js';
import { issuerRules, nowMs, nowS } from '../../decision/samples.js';
import { keyFor, tokenBy, tokenOfText, type AnyKey } from '../../support/profile-tokens.js';
import { base64url, type Claims } from '../../support/tokens.js';
import { outcomeOf, source } from './stub-issuers.js';

function issuer(name: string, key: AnyKey, changes: Partial<IssuerRules> = {}): ActiveIssuer {
  const iss = `https://${name}.example.com`;
  const found: KeyLookup = { kind: 'found', key: { keyId: key.keyId, algorithm: key.algorithm, key: key.publicKey } };
  const rules = issuerRules({
    name,
    profile: 'oauth',
    issuer: iss,
    expectedIssuer: iss,
    algorithms: new Set(algorithmNames),
    headerTypes: new Set(['at+jwt']),
    claims: { subject: ['sub'], permissions: ['scope'], require: [] },
    keyIds: { accept: ['*'], reject: [] },
    ...changes,
  });
  return { rules, keys: source((keyId) => (keyId === key.keyId ? found : { kind: 'unknown' })) };
}

const claims = {
  iss: 'https://idp.example.com',
  aud: 'orders',
  sub: 'checkout',
  client_id: 'c-1',
  jti: 'j-1',
  iat: nowS,
  exp: nowS + 300,
  scope: 'orders:read',
};
const type = { typ: 'at+jwt' };

async function outcome(token: string, issuers: readonly ActiveIssuer[]): Promise<string> {
  return outcomeOf(await verifyCredential(token, issuers, nowMs));
}

t.test('a token of every algorithm, under the key that is for it', async (t) => {
  for (const algorithm of algorithmNames) {
    const key = keyFor(algorithm);
    t.equal(await outcome(tokenBy(key, claims, type), [issuer('idp', key)]), 'accepted by idp', algorithm);
    const others = new Set(algorithmNames.filter((name) => name !== algorithm));
    const narrow = issuer('idp', key, { algorithms: others });
    t.equal(await outcome(tokenBy(key, claims, type), [narrow]), 'algorithm_refused', `${algorithm}, not allowed`);
  }
});

t.test('a header that says another algorithm than the key', async (t) => {
  for (const algorithm of algorithmNames) {
    const key = keyFor(algorithm);
    for (const alg of algorithmNames.filter((name) => name !== algorithm)) {
      const token = tokenBy(key, claims, { ...type, alg });
      t.equal(await outcome(token, [issuer('idp', key)]), 'algorithm_refused', `${alg} with a key for ${algorithm}`);
    }
    for (const alg of ['none', 'HS256', 'HS384', 'HS512', null, 1, ['RS256']]) {
      const token = tokenBy(key, claims, { ...type, alg });
      t.equal(await outcome(token, [issuer('idp', key)]), 'algorithm_refused', `${String(alg)} with ${algorithm}`);
    }
  }
});

t.test('what one key signed under the id of another', async (t) => {
  for (const algorithm of algorithmNames) {
    for (const other of algorithmNames.filter((name) => name !== algorithm)) {
      const forged = { ...keyFor(other), keyId: keyFor(algorithm).keyId };
      const token = tokenBy(forged, claims, { ...type, alg: algorithm });
      const expected = 'signature_invalid';
      t.equal(await outcome(token, [issuer('idp', keyFor(algorithm))]), expected, `${other} as ${algorithm}`);
    }
  }
});

t.test('the text of a public key as the secret of HMAC', async (t) => {
  const hash = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };
  for (const algorithm of algorithmNames) {
    const key = keyFor(algorithm);
    const secrets = [
      key.publicKey.export({ type: 'spki', format: 'pem' }),
      key.publicKey.export({ type: 'spki', format: 'der' }),
      JSON.stringify(key.jwk),
    ];
    for (const [alg, digest] of Object.entries(hash)) {
      for (const secret of secrets) {
        for (const said of [alg, algorithm]) {
          const input = `${base64url(JSON.stringify({ alg: said, kid: key.keyId, ...type }))}.${base64url(JSON.stringify(claims))}`;
          const token = `${input}.${createHmac(digest, secret).update(input).digest('base64url')}`;
          const verdict = await outcome(token, [issuer('idp', key)]);
          t.equal(verdict, said === alg ? 'algorithm_refused' : 'signature_invalid', `${alg} as ${said}, ${algorithm}`);
        }
      }
    }
  }
});

t.test('claims that are doubled, too deep, or no claims', async (t) => {
  const key = keyFor('ES256');
  const text = JSON.stringify(claims);
  const deep = `${'{"a":'.repeat(16)}1${'}'.repeat(16)}`;
  const rows = [
    ...Object.keys(claims).map((name) => text.replace('{', `{"${name}":1,`)),
    ...Object.keys(claims).map((name) =>
      text.replace('{', `{"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}":1,`),
    ),
    text.replace('{', `{"deep":${deep},`),
    text.replace('}', '},'),
    `[${text}]`,
    `"${'x'.repeat(5)}"`,
    'null',
  ];
  for (const row of rows) {
    t.equal(await outcome(tokenOfText(key, row, type), [issuer('idp', key)]), 'token_malformed', row);
  }
});

t.test('issuers that choose key ids as they like are told apart by what the token says', async (t) => {
  const key = keyFor('RS256', 'same');
  const other = keyFor('ES256', 'same');
  const idp = issuer('idp', key);
  const partner = issuer('partner', other);
  const issuers = [partner, idp];
  t.equal(await outcome(tokenBy(key, claims, type), issuers), 'accepted by idp');
  t.equal(
    await outcome(tokenBy(other, { ...claims, iss: 'https://partner.example.com' }, type), issuers),
    'accepted by partner',
  );
  t.equal(
    await outcome(tokenBy(other, claims, type), issuers),
    'algorithm_refused',
    'one key does not speak for the other issuer',
  );
  t.equal(await outcome(tokenBy(key, { ...claims, iss: 'https://x.example.com' }, type), issuers), 'issuer_mismatch');
  t.equal(await outcome(tokenOfText(key, '[]', type), issuers), 'token_malformed');

  const asked = (one: ActiveIssuer): number => (one.keys as ReturnType<typeof source>).asked.length;
  const [before, beforeOther] = [asked(idp), asked(partner)];
  t.equal(await outcome(tokenBy(key, claims, type), issuers), 'accepted by idp');
  t.equal(asked(idp), before + 1);
  t.equal(asked(partner), beforeOther, 'whom it is not from is not asked for a key');
});

t.test('the token of one of several providers is remembered', async (t) => {
  const [key, other] = [keyFor('RS256', 'same'), keyFor('ES256', 'same')];
  const issuers = [issuer('idp', key), issuer('partner', other)];
  const verified = createVerifiedTokens(1_000_000);
  const token = tokenBy(key, claims, type);
  t.equal(outcomeOf(await verifyCredential(token, issuers, nowMs, verified)), 'accepted by idp');
  t.equal(verified.size(), 1);
  t.match(verified.find(token, nowMs), { issuerName: 'idp', subject: 'checkout', permissions: ['orders:read'] });
  t.equal(verified.find(token, nowMs + 306_000), null, 'no longer than it lives');
});

t.test('two entries for one provider: the audience says which is meant', async (t) => {
  const key = keyFor('RS256');
  const named = (name: string, audience: string): ActiveIssuer =>
    issuer('idp', key, { name, audience, audiences: new Set([audience]) });
  const issuers = [named('orders', 'orders'), named('billing', 'billing')];
  t.equal(await outcome(tokenBy(key, { ...claims, aud: ['billing'] }, type), issuers), 'accepted by billing');
  t.equal(await outcome(tokenBy(key, { ...claims, aud: ['orders', 'billing'] }, type), issuers), 'accepted by orders');
  t.equal(await outcome(tokenBy(key, { ...claims, aud: 'x' }, type), issuers), 'audience_mismatch');
});

t.test('beside a Core', async (t) => {
  const core = keyFor('RS256', 'd-1');
  const key = keyFor('ES256', 'd-1');
  const cores: ActiveIssuer = {
    rules: issuerRules(),
    keys: source(() => ({ kind: 'found', key: { keyId: 'd-1', algorithm: 'RS256', key: core.publicKey } })),
  };
  const lax: Partial<IssuerRules> = { headerTypes: new Set(['jwt', 'absent']) };
  const issuers = [cores, issuer('idp', key, lax)];
  const coreClaims: Claims = {
    iss: 'https://api.example.com',
    aud: 'orders',
    sub: 'checkout',
    source: 'microservice',
    token_type: 'service',
    permissions: [],
    exp: nowS + 300,
  };
  t.equal(await outcome(tokenBy(core, coreClaims, { typ: 'JWT' }), issuers), 'accepted by core');
  t.equal(await outcome(tokenBy(key, claims, { typ: 'JWT' }), issuers), 'accepted by idp');
  t.equal(
    await outcome(tokenBy(key, coreClaims, { typ: 'JWT' }), issuers),
    'issuer_mismatch',
    'ES256 is none for the Core',
  );
  t.equal(
    await outcome(tokenBy(core, claims, { typ: 'JWT' }), issuers),
    'algorithm_refused',
    'nor the key of the Core for others',
  );
});

t.test('SPIFFE and Kubernetes beside each other', async (t) => {
  const [one, two] = [keyFor('ES256', 'a'), keyFor('RS256', 'a')];
  const spire = issuer('spire', one, {
    profile: 'spiffe',
    issuer: 'spiffe://shop.example',
    expectedIssuer: null,
    trustDomain: 'shop.example',
    headerTypes: new Set(['jwt', 'jose', 'absent']),
  });
  const cluster = issuer('cluster', two, { profile: 'kubernetes', headerTypes: new Set(['jwt', 'absent']) });
  const workload = { aud: ['orders'], sub: 'spiffe://shop.example/api', exp: nowS + 60 };
  const account = {
    iss: 'https://cluster.example.com',
    aud: ['orders'],
    sub: 'system:serviceaccount:shop:api',
    iat: nowS,
    exp: nowS + 60,
    'kubernetes.io': { namespace: 'shop', serviceaccount: { name: 'api', uid: 'u' } },
  };
  const verdict = await verifyCredential(tokenBy(one, workload), [cluster, spire], nowMs);
  t.match(verdict, {
    ok: true,
    value: { kind: 'service', issuer: 'spiffe://shop.example', subject: 'spiffe://shop.example/api' },
  });
  const pod = await verifyCredential(tokenBy(two, account), [spire, cluster], nowMs);
  t.match(pod, { ok: true, value: { kind: 'service', issuer: 'https://cluster.example.com', subject: 'shop/api' } });
});
