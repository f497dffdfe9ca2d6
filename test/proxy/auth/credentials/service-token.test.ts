import { createHmac, createPublicKey, createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import type { KeyLookup } from '../../../../src/ports/auth.js';
import { verifyCredential } from '../../../../src/proxy/auth/credentials/service-token.js';
import { nowMs, nowS, principal } from '../../../decision/samples.js';
import { rsaKey, withKeyId } from '../../../support/keys.js';
import { base64url, mintToken, signToken, type Claims } from '../../../support/tokens.js';
import {
  atOnce,
  found,
  issuer,
  key,
  later,
  other,
  otherKey,
  outcomeOf,
  source,
  unavailable,
  unknown,
} from '../stub-issuers.js';

t.test('a token that holds names its principal, at once where the key is known', (t) => {
  const token = mintToken({ key, nowMs, claims: { jti: 't-1' } });
  t.same(verifyCredential(token, [issuer(found(key.publicKey))], nowMs), {
    ok: true,
    value: principal({
      tokenId: 't-1',
      expiresAtS: nowS + 300,
      name: 'service\nhttps://api.example.com\ncheckout',
    }),
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
      name: 'service\nhttps://api.example.com\n__proto__',
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
