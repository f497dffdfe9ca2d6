import { createHmac, createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import type { Denial } from '../../../src/decision/denial.js';
import type { IssuerRules } from '../../../src/decision/route/policy.js';
import type { Principal } from '../../../src/decision/token/principal.js';
import type { Result } from '../../../src/lib/result.js';
import type { KeyAsker, KeyLookup, KeySource } from '../../../src/ports/auth.js';
import { verifyCredential } from '../../../src/proxy/auth/verify-service-token.js';
import type { IssuerInForce } from '../../../src/proxy/auth/active-config.js';
import { issuerRules, nowMs, nowS, principal } from '../../decision/samples.js';
import { rsaKey, withKeyId } from '../../support/keys.js';
import { base64url, mintToken, signToken, type Claims } from '../../support/tokens.js';
import { keyState } from '../../support/key-state.js';

type Verdict = Result<Principal, Denial>;

const key = rsaKey('d-1');
const otherKey = rsaKey('d-2');

const found = (publicKey: KeyObject, keyId = 'd-1'): KeyLookup => ({ kind: 'found', key: { keyId, key: publicKey } });
const unknown: KeyLookup = { kind: 'unknown' };
const unavailable: KeyLookup = { kind: 'unavailable' };

interface StubSource extends KeySource {
  readonly asked: string[];
}

function source(answer: (keyId: string) => KeyLookup | Promise<KeyLookup>): StubSource {
  const asked: string[] = [];
  return {
    asked,
    find: (keyId) => {
      asked.push(keyId);
      return answer(keyId);
    },
    state: () => keyState({ issuer: 'stub' }),
  };
}

function issuer(
  answer: KeyLookup | Promise<KeyLookup>,
  rules: Partial<IssuerRules> = {},
): IssuerInForce & { readonly keys: StubSource } {
  return { rules: issuerRules(rules), keys: source(() => answer) };
}

const other: Partial<IssuerRules> = { name: 'other', issuer: 'https://other.example.com' };
const never = new Promise<KeyLookup>(() => undefined);
const later = (lookup: KeyLookup): Promise<KeyLookup> =>
  new Promise((resolve) =>
    setImmediate(() => {
      resolve(lookup);
    }),
  );

function outcomeOf(verdict: Verdict): string {
  return verdict.ok ? `accepted by ${verdict.value.issuerName}` : verdict.error.reason;
}

/** Fails where the answer is a promise: the fast path has to stay one. */
function atOnce(token: string, issuers: readonly IssuerInForce[]): string {
  const verdict = verifyCredential(token, issuers, nowMs);
  return verdict instanceof Promise ? 'a promise' : outcomeOf(verdict);
}

t.test('a token that holds names its principal, at once where the key is known', (t) => {
  const token = mintToken({ key, nowMs, claims: { jti: 't-1' } });
  t.same(verifyCredential(token, [issuer(found(key.publicKey))], nowMs), {
    ok: true,
    value: principal({ tokenId: 't-1', expiresAtS: nowS + 300 }),
  });
  t.end();
});

t.test('the steps of one issuer, in order', (t) => {
  const signed = (text: string): string => signToken('{"alg":"RS256","kid":"d-1"}', text, key.privateKey);
  const [header = '', payload = '', signature = ''] = mintToken({ key, nowMs }).split('.');
  const resign = (text: string): string => `${header}.${base64url(text)}.${signature}`;
  const foreign = mintToken({ key: otherKey, header: { kid: 'd-1' }, nowMs }).split('.')[2] ?? '';
  const good = found(key.publicKey);
  const mint = (claims?: Claims, from = key, header?: Claims): string =>
    mintToken({ key: from, claims, header, nowMs });
  const cases = [
    { name: 'not a token', token: 'abc', lookup: good, expected: 'token_malformed', asked: 0 },
    {
      name: 'another algorithm',
      token: mint({}, key, { alg: 'HS256' }),
      lookup: good,
      expected: 'algorithm_refused',
      asked: 0,
    },
    { name: 'no kid', token: mint({}, key, { kid: undefined }), lookup: good, expected: 'key_id_refused', asked: 0 },
    {
      name: 'a static key is not looked up',
      token: mint({}, withKeyId(key, 's-1')),
      lookup: good,
      expected: 'key_id_refused',
      asked: 0,
    },
    {
      name: 'a rejected key is not looked up',
      token: mint({}, withKeyId(key, 'd-bad')),
      lookup: good,
      expected: 'key_id_refused',
      asked: 0,
    },
    { name: 'an unknown key', token: mint(), lookup: unknown, expected: 'key_unknown', asked: 1 },
    { name: 'no keys to be had', token: mint(), lookup: unavailable, expected: 'keys_unavailable', asked: 1 },
    {
      name: 'the signature of another key',
      token: `${header}.${payload}.${foreign}`,
      lookup: good,
      expected: 'signature_invalid',
      asked: 1,
    },
    {
      name: 'an unsigned payload is not read',
      token: resign('not JSON'),
      lookup: good,
      expected: 'signature_invalid',
      asked: 1,
    },
    { name: 'nor its claims', token: resign('{"exp":1}'), lookup: good, expected: 'signature_invalid', asked: 1 },
    {
      name: 'a signed payload that is no JSON',
      token: signed('not JSON'),
      lookup: good,
      expected: 'token_malformed',
      asked: 1,
    },
    {
      name: 'a signed payload with a claim twice',
      token: signed('{"iss":"a","iss":"b"}'),
      lookup: good,
      expected: 'token_malformed',
      asked: 1,
    },
    {
      name: 'signed claims that do not match',
      token: mint({ aud: 'billing' }),
      lookup: good,
      expected: 'audience_mismatch',
      asked: 1,
    },
    {
      name: 'expired',
      token: mintToken({ key, nowMs: nowMs - 3_600_000 }),
      lookup: good,
      expected: 'token_expired',
      asked: 1,
    },
  ];
  for (const { name, token, lookup, expected, asked } of cases) {
    const only = issuer(lookup, { keyIds: { accept: ['d-*'], reject: ['d-bad'] } });
    t.equal(atOnce(token, [only]), expected, name);
    t.equal(only.keys.asked.length, asked, `${name}: look-ups`);
  }
  t.equal(atOnce(mintToken({ key, nowMs }), []), 'key_id_refused', 'without any issuer');
  t.end();
});

t.test('the public key as a secret, or no signature at all', (t) => {
  const pem = key.publicKey.export({ type: 'spki', format: 'pem' });
  const claims = mintToken({ key, nowMs }).split('.')[1] ?? '';
  const forge = (alg: string, secret: string | Buffer): string => {
    const input = `${base64url(JSON.stringify({ alg, kid: 'd-1' }))}.${claims}`;
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
  };
  const none = base64url('{"alg":"none","kid":"d-1"}');
  for (const input of [
    forge('HS256', pem),
    forge('RS256', pem),
    forge('RS256', Buffer.alloc(0)),
    `${none}.${claims}.`,
    `${none}.${claims}.AA`,
  ]) {
    t.match(atOnce(input, [issuer(found(key.publicKey))]), /^(algorithm_refused|signature_invalid|token_malformed)$/);
  }
  t.equal(
    atOnce(forge('RS256', pem), [issuer(found(createSecretKey(Buffer.from(pem))))]),
    'signature_invalid',
    'even where a source hands out a secret',
  );
  t.end();
});

t.test('several issuers', async (t) => {
  const mine = found(key.publicKey);
  const foreign = found(otherKey.publicKey);
  const mint = (claims?: Claims): string => mintToken({ key, nowMs, claims });
  const token = mint();
  const expired = mintToken({ key, nowMs: nowMs - 3_600_000 });
  const nobody = { keyIds: { accept: ['x-*'], reject: [] } };
  const shared = [issuer(mine), issuer(mine, other)];
  const turned = [issuer(mine, other), issuer(mine)];
  const cases = [
    {
      name: 'the second knows the key',
      token,
      issuers: [issuer(unknown, other), issuer(mine)],
      expected: 'accepted by core',
    },
    {
      name: 'both have a key of that id',
      token,
      issuers: [issuer(foreign, other), issuer(mine)],
      expected: 'accepted by core',
    },
    {
      name: 'the first cannot say',
      token,
      issuers: [issuer(unavailable, other), issuer(mine)],
      expected: 'accepted by core',
    },
    { name: 'a shared key set, meant for the first', token, issuers: shared, expected: 'accepted by core' },
    {
      name: 'a shared key set, meant for the second',
      token: mint({ iss: other.issuer }),
      issuers: shared,
      expected: 'accepted by other',
    },
    {
      name: 'a shared key set, meant for neither',
      token: mint({ iss: 'x' }),
      issuers: shared,
      expected: 'issuer_mismatch',
    },
    {
      name: 'the first of two whose claims hold',
      token,
      issuers: [issuer(mine, { name: 'first' }), issuer(mine)],
      expected: 'accepted by first',
    },
    {
      name: 'only candidates are asked',
      token,
      issuers: [issuer(mine, { ...other, ...nobody }), issuer(mine)],
      expected: 'accepted by core',
    },
    { name: 'expired tells more than another issuer', token: expired, issuers: shared, expected: 'token_expired' },
    { name: 'in either order', token: expired, issuers: turned, expected: 'token_expired' },
    {
      name: 'another audience tells more than another issuer',
      token: mint({ aud: 'x' }),
      issuers: turned,
      expected: 'audience_mismatch',
    },
    {
      name: 'a bad signature tells more than an unknown key',
      token,
      issuers: [issuer(foreign), issuer(unknown, other)],
      expected: 'signature_invalid',
    },
    {
      name: 'keys that cannot be had and an unknown one',
      token,
      issuers: [issuer(unknown), issuer(unavailable, other)],
      expected: 'keys_unavailable',
    },
    {
      name: 'keys that cannot be had and a bad signature',
      token,
      issuers: [issuer(foreign), issuer(unavailable, other)],
      expected: 'keys_unavailable',
    },
    {
      name: 'once a signature held it is the caller',
      token: expired,
      issuers: [issuer(unavailable, other), issuer(mine)],
      expected: 'token_expired',
    },
    { name: 'none knows it', token, issuers: [issuer(unknown), issuer(unknown, other)], expected: 'key_unknown' },
  ];
  for (const { name, token, issuers, expected } of cases) {
    t.equal(atOnce(token, issuers), expected, name);
    const slow = issuers.map(({ rules, keys }) => ({
      rules,
      keys: source((keyId) => Promise.resolve(keys.find(keyId))),
    }));
    t.equal(outcomeOf(await verifyCredential(token, slow, nowMs)), expected, `${name}, fetched`);
    const mixed = [...slow.slice(0, 1), ...issuers.slice(1)];
    // A known key does not wait for one that has to be fetched, whatever the order.
    const known = expected === 'accepted by first' ? 'accepted by core' : expected;
    t.equal(outcomeOf(await verifyCredential(token, mixed, nowMs)), known, `${name}, the first fetched`);
  }
});

t.test("of two equally telling reasons the first issuer's is given", (t) => {
  const known = found(key.publicKey);
  const token = mintToken({ key, nowMs, claims: { iat: nowS + 30, exp: nowS + 330 } });
  const strict = issuer(known, { clockSkewS: 0 });
  const brief = issuer(known, { clockSkewS: 60, maxLifetimeS: 100 });
  t.equal(atOnce(token, [strict, brief]), 'token_not_yet_valid');
  t.equal(atOnce(token, [brief, strict]), 'lifetime_too_long');
  t.end();
});

t.test("one issuer's trouble is no other's: a good token waits for no other key server", async (t) => {
  const mine = found(key.publicKey);
  const token = mintToken({ key, nowMs });
  t.equal(
    atOnce(token, [issuer(never, other), issuer(mine)]),
    'accepted by core',
    'a server that never answers, beside a known key',
  );
  t.equal(
    outcomeOf(await verifyCredential(token, [issuer(never, other), issuer(later(mine))], nowMs)),
    'accepted by core',
    'beside a slow one',
  );
  const last = issuer(mine, other);
  t.equal(atOnce(token, [issuer(mine), last]), 'accepted by core');
  t.same(last.keys.asked, [], 'and who comes after the one that accepted is not asked');
});

t.test('a key source that breaks its word is our fault', async (t) => {
  const token = mintToken({ key, nowMs });
  const broken = (): Promise<KeyLookup> => Promise.reject(new TypeError('a bug'));
  t.equal(outcomeOf(await verifyCredential(token, [issuer(broken())], nowMs)), 'keys_unavailable');
  t.equal(
    outcomeOf(await verifyCredential(token, [issuer(broken(), other), issuer(later(found(key.publicKey)))], nowMs)),
    'accepted by core',
  );
  t.equal(
    atOnce(token, [issuer(broken(), other), issuer(found(key.publicKey))]),
    'accepted by core',
    'and is not an unhandled rejection',
  );
  await later(unknown);
});

t.test('a key that is too weak, or of another kind, refuses the token', (t) => {
  const weak = rsaKey('d-1', 1024);
  const exponentOne = createPublicKey({ key: { kty: 'RSA', n: key.jwk.n ?? '', e: 'AQ' }, format: 'jwk' });
  t.equal(atOnce(mintToken({ key: weak, nowMs }), [issuer(found(key.publicKey))]), 'signature_invalid');
  t.equal(atOnce(mintToken({ key, nowMs }), [issuer(found(exponentOne))]), 'signature_invalid');
  t.equal(atOnce(mintToken({ key, nowMs }), [issuer(found(key.privateKey))]), 'signature_invalid');
  t.end();
});

t.test("names out of an object's prototype", (t) => {
  const claims = { sub: '__proto__', permissions: ['constructor', '__proto__'], jti: 'hasOwnProperty' };
  const rules = { keyIds: { accept: ['__proto__'], reject: [] } };
  const verdict = verifyCredential(
    mintToken({ key: withKeyId(key, '__proto__'), nowMs, claims }),
    [issuer(found(key.publicKey), rules)],
    nowMs,
  );
  t.same(verdict, {
    ok: true,
    value: principal({
      subject: '__proto__',
      permissions: ['constructor', '__proto__'],
      tokenId: 'hasOwnProperty',
      keyId: '__proto__',
    }),
  });
  t.end();
});

t.test('a changed token is never accepted', (t) => {
  const token = mintToken({ key, nowMs, claims: { jti: 't-1' } });
  const issuers = [issuer(found(key.publicKey))];
  t.equal(atOnce(token, issuers), 'accepted by core');
  const insert = fc.tuple(
    fc.nat(token.length),
    fc.nat(2),
    fc.string({ unit: fc.constantFrom(...Array.from('AQgwz09-_.=+/ \n\u0000é')), maxLength: 3 }),
  );
  const change = insert.map(([at, removed, text]) => token.slice(0, at) + text + token.slice(at + removed));
  const shuffled = fc
    .shuffledSubarray(token.split('.'), { minLength: 0, maxLength: 3 })
    .map((parts) => parts.join('.'));
  const respelled = fc.constantFrom(
    `${token}.`,
    `.${token}`,
    `${token}.${token}`,
    `${token}=`,
    ` ${token}`,
    `${token} `,
    token.toLowerCase(),
  );
  fc.assert(
    fc.property(
      fc.oneof({ weight: 10, arbitrary: change }, shuffled, respelled),
      (changed) => changed === token || !atOnce(changed, issuers).startsWith('accepted'),
    ),
    { numRuns: 2000 },
  );
  for (const at of Array.from({ length: token.length }, (_, position) => position)) {
    const changed = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
    if (atOnce(changed, issuers).startsWith('accepted')) t.fail(`character ${String(at)} may be changed`);
  }
  t.end();
});

t.test('a thousand mixed tokens at once, sources that hang, fail and rotate: each gets its own answer', async (t) => {
  const keys = [key, otherKey];
  let lookups = 0;
  const moody = source(async (keyId) => {
    lookups += 1;
    const turn = lookups % 4;
    if (turn === 0) await later(unknown);
    if (turn === 1) return unavailable;
    if (turn === 2) throw new TypeError('a bug');
    const known = keys.find((candidate) => candidate.keyId === keyId);
    return known === undefined ? unknown : found(known.publicKey, keyId);
  });
  const hanging = {
    rules: issuerRules({ ...other, keyIds: { accept: ['hang-*'], reject: [] } }),
    keys: source(() => never),
  };
  const issuers = [hanging, { rules: issuerRules(), keys: moody }];
  const verdicts = await Promise.all(
    Array.from({ length: 1000 }, async (_, index) => {
      const signer = keys[index % 2] ?? key;
      const forged = index % 5 === 0;
      const hand = forged ? { ...signer, privateKey: rsaKey('forger').privateKey } : signer;
      const token = mintToken({ key: hand, nowMs, claims: { sub: `caller-${String(index)}` } });
      return { index, forged, keyId: signer.keyId, verdict: await verifyCredential(token, issuers, nowMs) };
    }),
  );
  let accepted = 0;
  for (const { index, forged, keyId, verdict } of verdicts) {
    if (!verdict.ok) {
      if (!['keys_unavailable', 'signature_invalid'].includes(verdict.error.reason)) {
        t.fail(`${String(index)}: ${verdict.error.reason}`);
      }
      continue;
    }
    accepted += 1;
    if (forged || verdict.value.subject !== `caller-${String(index)}` || verdict.value.keyId !== keyId) {
      t.fail(`${String(index)} got another's answer`);
    }
  }
  t.equal(accepted > 0, true, 'where the key was found and the signature held');
});

t.test('a token that ends while its key is waited for is refused', async (t) => {
  const token = mintToken({ key, nowMs });
  const asked: unknown[] = [];
  const waitingUntil = (endMs: number): KeyAsker => ({
    address: () => '',
    isKnown: () => false,
    isGone: () => false,
    now: () => endMs,
  });
  const slow: IssuerInForce = {
    rules: issuerRules(),
    keys: {
      find: async (_keyId, patience) => {
        asked.push(patience);
        return later(found(key.publicKey));
      },
      state: () => keyState(),
    },
  };
  const endMs = nowMs + 305_000;
  const [late, last] = [waitingUntil(endMs), waitingUntil(endMs - 1)];
  t.equal(outcomeOf(await verifyCredential(token, [slow], nowMs, null, late)), 'token_expired');
  t.equal(outcomeOf(await verifyCredential(token, [slow], nowMs, null, last)), 'accepted by core');
  t.equal(outcomeOf(await verifyCredential(token, [slow], nowMs)), 'accepted by core');
  t.same(asked, [late, last, 'fetch']);
});

t.test("where one issuer's key is known and accepts, no other issuer is asked to fetch", async (t) => {
  const token = mintToken({ key, nowMs });
  const asked: unknown[] = [];
  const ignorant: IssuerInForce = {
    rules: issuerRules(other),
    keys: {
      find: (_keyId, patience) => {
        asked.push(patience);
        return patience === 'now' ? unknown : later(unknown);
      },
      state: () => keyState(),
    },
  };
  t.equal(atOnce(token, [ignorant, issuer(found(key.publicKey))]), 'accepted by core');
  t.same(asked, ['now']);
  t.equal(outcomeOf(await verifyCredential(token, [ignorant, issuer(unknown)], nowMs)), 'key_unknown');
  t.same(asked, ['now', 'now', 'fetch']);
});

t.test("whoever waits for one issuer's key is gone when another issuer has accepted", async (t) => {
  const token = mintToken({ key, nowMs });
  const waiting: KeyAsker[] = [];
  const asker: KeyAsker = { address: () => '192.0.2.1', isKnown: () => true, isGone: () => false, now: () => nowMs };
  const slow: IssuerInForce = {
    rules: issuerRules(other),
    keys: {
      find: (_keyId, patience) => {
        if (typeof patience === 'object') waiting.push(patience);
        return patience === 'now' ? unknown : never;
      },
      state: () => keyState(),
    },
  };
  const soon: IssuerInForce = {
    rules: issuerRules(),
    keys: {
      find: (_keyId, patience) => (patience === 'now' ? unknown : later(found(key.publicKey))),
      state: () => keyState(),
    },
  };
  const verdict = verifyCredential(token, [slow, soon], nowMs, null, asker);
  t.same(
    waiting.map((each) => [each.isGone(), each.address(), each.isKnown(), each.now()]),
    [[false, '192.0.2.1', true, nowMs]],
  );
  t.equal(outcomeOf(await verdict), 'accepted by core');
  t.same(
    waiting.map((each) => each.isGone()),
    [true],
  );
});

t.test('too many that wait are 503, and say so before keys that are unknown elsewhere', async (t) => {
  const token = mintToken({ key, nowMs });
  const full: KeyLookup = { kind: 'busy' };
  t.equal(atOnce(token, [issuer(full)]), 'overloaded');
  t.equal(outcomeOf(await verifyCredential(token, [issuer(later(full)), issuer(unknown, other)], nowMs)), 'overloaded');
  t.equal(atOnce(token, [issuer(full), issuer(unavailable, other)]), 'keys_unavailable');
});
