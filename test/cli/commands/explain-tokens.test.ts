import t from 'tap';
import { makeProof, proofKey } from '../../support/dpop.js';
import { startJwksServer } from '../../support/jwks-server.js';
import { rsaKey } from '../../support/keys.js';
import { mintToken } from '../../support/tokens.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import type { CapturedIo } from '../captured-io.js';
import { type Given, explain, get } from './run-explain.js';

t.test('claims from a file, with what is missing filled in', async (t) => {
  const claims = (content: unknown): Given => ({
    files: { 'claims.json': typeof content === 'string' ? content : JSON.stringify(content) },
  });
  const words = [...get('/orders'), '--claims', 'claims.json'];
  const rows: readonly { name: string; claims: unknown; ends: string; says?: RegExp }[] = [
    { name: 'good', claims: { sub: 'checkout', permissions: ['orders:read'] }, ends: 'allowed: route list-orders' },
    {
      name: 'audience',
      claims: { sub: 'checkout', aud: ['orders'] },
      ends: 'denied: 401 audience_mismatch (route list-orders)',
      says: /aud is \["orders"\]; core asks for "orders"/,
    },
    {
      name: 'issuer',
      claims: { sub: 'checkout', iss: 'x' },
      ends: 'denied: 401 issuer_mismatch (route list-orders)',
      says: /iss is "x"; core asks for/,
    },
    {
      name: 'source',
      claims: { sub: 'checkout', source: null },
      ends: 'denied: 401 source_mismatch (route list-orders)',
      says: /source is missing; core asks for "microservice"/,
    },
    {
      name: 'type',
      claims: { sub: 'checkout', token_type: 'user' },
      ends: 'denied: 401 token_type_mismatch (route list-orders)',
      says: /token_type is "user"/,
    },
    {
      name: 'expired',
      claims: { sub: 'checkout', exp: 1, iat: 0 },
      ends: 'denied: 401 token_expired (route list-orders)',
      says: /exp 1 \(1970-01-01T00:00:01Z\)/,
    },
    {
      name: 'too long',
      claims: { sub: 'checkout', exp: 99_999_999_999 },
      ends: 'denied: 401 lifetime_too_long (route list-orders)',
      says: /core allows 7200 s of life/,
    },
    {
      name: 'permissions as a text',
      claims: { sub: 'checkout', permissions: 'orders:read' },
      ends: 'denied: 401 claim_malformed (route list-orders)',
      says: /permissions is "orders:read"/,
    },
    {
      name: 'a session',
      claims: { sub: 'checkout', sessionHandle: 'h' },
      ends: 'denied: 401 session_claim_present (route list-orders)',
    },
  ];
  for (const { name, claims: content, ends, says } of rows) {
    const io = await explain(t, words, claims(content));
    t.equal(io.out().trimEnd().split('\n').at(-1), ends, name);
    if (says !== undefined) t.match(io.out(), says, name);
  }
  for (const content of ['', '[]', '{"sub":1,"sub":2}', '{']) {
    const io = await explain(t, words, claims(content));
    t.equal(io.code(), 2, content);
    t.match(io.err(), /^error: claims\.json: .*; allowed: a JSON object of claims/, content);
  }
  t.equal((await explain(t, words)).code(), 2, 'no such file');
});

t.test('--at decides as at another time', async (t) => {
  const claims = JSON.stringify({
    sub: 'checkout',
    permissions: ['orders:read'],
    iat: 1_700_000_000,
    exp: 1_700_000_300,
  });
  const at = async (time: string): Promise<CapturedIo> =>
    explain(t, [...get('/orders'), '--claims', 'c', '--at', time], { files: { c: claims } });
  t.equal((await at('2023-11-14T22:13:30Z')).code(), 0);
  t.match((await at('2023-11-14T22:20:00Z')).out(), /token_expired/);
  t.equal((await at('yesterday')).code(), 2);
});

t.test('a real token on standard input is verified', async (t) => {
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const config = {
    issuers: {
      core: {
        issuer: 'https://api.example.com',
        jwks_url: jwks.url,
        audience: 'orders',
        source: 'microservice',
        token_type: 'service',
      },
    },
  };
  const ask = async (stdin: string): Promise<CapturedIo> =>
    explain(t, [...get('/orders'), '--token-stdin'], { config, stdin });
  const good = await ask(`Bearer ${mintToken({ key })}\n`);
  t.equal(good.code(), 0);
  t.match(good.out(), /verified with the keys that its issuer publishes/);
  t.match(good.out(), /service of issuer core \(https:\/\/api\.example\.com\), key d-1/);
  t.notMatch(good.out(), /eyJ|assumed|grants nothing/);
  const odd = await ask(mintToken({ key, claims: { permissions: ['orders:read orders:write', 'é', 'x'] } }));
  t.match(odd.out(), /denied: 403 permission_missing/);
  t.match(
    odd.out(),
    /grants nothing and is not passed on: "orders:read orders:write", "é"; a permission is visible ASCII without blank, " and \\\n/,
  );
  const forged = await ask(mintToken({ key: rsaKey('d-2'), header: { kid: 'd-1' } }));
  t.equal(forged.code(), 1);
  t.match(forged.out(), /denied: 401 signature_invalid/);
  const unknown = await ask(mintToken({ key: rsaKey('d-2') }));
  t.match(unknown.out(), /core has no key d-2; it has d-1\n/);
  t.match((await ask(mintToken({ key: rsaKey('s-1') }))).out(), /core accepts key ids d-\*; the token's is s-1/);
  t.match((await ask('not a token')).out(), /denied: 401 credential_malformed/);
  const empty = await ask(' \n');
  t.equal(empty.code(), 2);
  await jwks.close();
  const away = await ask(mintToken({ key }));
  t.equal(away.code(), 3, 'the keys are out of reach');
  t.match(away.out(), /the keys of core cannot be had: /);
  t.match(away.out(), /denied: 503 keys_unavailable/);
});

t.test('several issuers: the one that is named, or that the route takes', async (t) => {
  const rules = { audience: 'orders', source: 'microservice', token_type: 'service' };
  const config = {
    issuers: {
      core: { issuer: 'https://api.example.com', ...rules },
      eu: { issuer: 'https://eu.example.com', ...rules, audience: 'eu' },
    },
  };
  const read = {
    config: {
      ...config,
      routes: [{ name: 'r', methods: ['GET'], path: '/r', subjects: ['a'], permissions: [], issuers: ['eu'] }],
    },
  };
  t.match((await explain(t, [...get('/r'), '--subject', 'a'], read)).out(), /filled in as issuer eu would/);
  const other = await explain(t, [...get('/r'), '--subject', 'a', '--issuer', 'core'], read);
  t.match(other.out(), /denied: 401 issuer_not_accepted/);
  t.match(other.out(), /the route takes tokens of eu/);
  const wrong = await explain(t, [...get('/r'), '--subject', 'a', '--issuer', 'us'], read);
  t.equal(wrong.code(), 2);
  t.match(wrong.err(), /no issuer "us"; allowed: core, eu/);
});

t.test('what an issuer is said to have made is by its key alone', async (t) => {
  const svid = 'spiffe://shop.example/checkout';
  const spiffe = (trust_domain: string): object => ({
    profile: 'spiffe',
    trust_domain,
    audience: 'orders',
    bundle_file: '/b.json',
  });
  const config: ConfigTree = {
    issuers: {
      core: { issuer: 'https://api.example.com', audience: 'orders', source: 'microservice', token_type: 'service' },
      spire: { ...spiffe('shop.example'), algorithms: ['RS256'] },
      other: spiffe('other.example'),
    },
    routes: [{ name: 'r', methods: ['GET'], path: '/r', subjects: [svid], permissions: [] }],
  };
  const ask = async (claims: object, ...words: readonly string[]): Promise<string> =>
    (
      await explain(t, [...get('/r'), '--claims', 'claims.json', ...words], {
        config,
        files: { 'claims.json': JSON.stringify({ sub: svid, ...claims }) },
      })
    ).out();
  const byCore = { iss: 'https://api.example.com', source: 'wrong' };
  for (const words of [[], ['--issuer', 'core']]) {
    const refused = await ask(byCore, ...words);
    t.match(refused, /denied: 401 source_mismatch/, words.join(' '));
    t.match(refused, / source is "wrong"; core asks for "microservice"\n/);
    t.notMatch(refused, /spire/);
  }
  t.match(await ask({ ...byCore, source: 'microservice' }), /token +ok +service of issuer core /);
  t.match(await ask({}, '--issuer', 'spire'), /token +ok +service of issuer spire /);
  t.match(await ask({}, '--issuer', 'other'), /denied: 401 issuer_mismatch/);
  // The trust domain says whose they are: their `iss` may be missing, or any.
  for (const claims of [{}, { iss: null }, { iss: 'https://oidc.shop.example' }]) {
    t.match(await ask(claims), /token +ok +service of issuer spire /, JSON.stringify(claims));
  }
  t.match(await ask({ aud: 'others' }, '--issuer', 'core'), /denied: 401 audience_mismatch/);
  t.match(await ask({ iss: 'https://x.example', sub: 'checkout' }), /denied: 401 issuer_mismatch/);
});

t.test('a token that is bound to a key, with a proof and without', async (t) => {
  const key = rsaKey();
  const own = proofKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const origin = 'https://orders.example';
  const rules = { audience: 'orders', source: 'microservice', token_type: 'service' };
  const core = { issuer: 'https://api.example.com', jwks_url: jwks.url, ...rules, binding: 'require' };
  const config = { issuers: { core }, listen: { dpop: { origins: [origin] } } };
  const token = mintToken({ key, claims: { cnf: { jkt: own.thumbprint } } });
  const ask = async (...words: readonly string[]): Promise<CapturedIo> =>
    explain(t, [...get('/orders'), '--token-stdin', ...words], { config, stdin: token });
  const proved = await ask('--header', `DPoP: ${makeProof(own, { uri: `${origin}/orders`, token })}`);
  t.equal(proved.code(), 0);
  t.match(proved.out(), /proof +ok +its sender has the key that it is bound to\n/);
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /denied: 401 proof_missing/],
    [['--header', 'DPoP: x'], /proof_malformed/],
    [
      ['--header', `DPoP: ${makeProof(own, { uri: `${origin}/order`, token })}`],
      /htu has to be this path under https:/,
    ],
    [['--header', `DPoP: ${makeProof(own, { uri: `${origin}/orders`, token, nowMs: 0 })}`], /max_age, 60 s/],
  ];
  for (const [words, says] of rows) {
    const io = await ask(...words);
    t.equal(io.code(), 1);
    t.match(io.out(), says);
    t.notMatch(io.out(), /eyJ/);
  }
  const files = { c: JSON.stringify({ sub: 'checkout', permissions: ['orders:read'] }) };
  const assumed = await explain(t, [...get('/orders'), '--claims', 'c'], { config, files });
  t.equal(assumed.code(), 0, 'what is assumed is bound to nothing, and passes');
});
