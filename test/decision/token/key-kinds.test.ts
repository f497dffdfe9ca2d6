import t from 'tap';
import { checkJwk } from '../../../src/decision/token/jwk.js';
import { algorithmNames, type Algorithm, type KeyRules } from '../../../src/decision/token/profiles.js';
import type { JsonObject, JsonValue } from '../../../src/lib/strict-json.js';
import { keyFor } from '../../support/profile-tokens.js';

type Changes = Readonly<Record<string, JsonValue | undefined>>;

function jwkOf(algorithm: Algorithm, changes: Changes = {}): JsonObject {
  const members = Object.entries({ ...keyFor(algorithm).jwk, ...changes });
  return Object.fromEntries(members.filter((entry): entry is [string, JsonValue] => entry[1] !== undefined));
}

function rulesFor(algorithms: readonly Algorithm[], use: KeyRules['use'] = 'sig'): KeyRules {
  return { algorithms: new Set(algorithms), use };
}

function algorithmOf(jwk: JsonObject, rules: KeyRules): string {
  const checked = checkJwk(jwk, rules);
  return checked.ok ? checked.value.algorithm : checked.error;
}

t.test('a key verifies the one algorithm that it says', (t) => {
  for (const algorithm of algorithmNames) {
    t.equal(algorithmOf(jwkOf(algorithm), rulesFor(algorithmNames)), algorithm, algorithm);
    t.equal(algorithmOf(jwkOf(algorithm), rulesFor([algorithm])), algorithm, `${algorithm} alone`);
    t.equal(
      algorithmOf(jwkOf(algorithm, { alg: undefined }), rulesFor([algorithm])),
      algorithm,
      `${algorithm}, not said`,
    );
    const others = algorithmNames.filter((name) => name !== algorithm);
    t.notOk(checkJwk(jwkOf(algorithm), rulesFor(others)).ok, `${algorithm} among the others`);
  }
  t.end();
});

t.test('what is imported is the public key alone', (t) => {
  const { n, e } = keyFor('PS256').jwk;
  t.match(checkJwk(jwkOf('PS256', { x5c: ['x'] }), rulesFor(['PS256'])), {
    ok: true,
    value: { keyId: 'key-PS256', algorithm: 'PS256', publicKey: { kty: 'RSA', n: String(n), e: String(e) } },
  });
  const { x, y } = keyFor('ES384').jwk;
  t.same(checkJwk(jwkOf('ES384'), rulesFor(['ES384'])), {
    ok: true,
    value: { keyId: 'key-ES384', algorithm: 'ES384', publicKey: { kty: 'EC', crv: 'P-384', x, y } },
  });
  t.match(checkJwk(jwkOf('EdDSA'), rulesFor(['EdDSA'])), {
    value: { publicKey: { kty: 'OKP', crv: 'Ed25519', x: String(keyFor('EdDSA').jwk.x) } },
  });
  t.end();
});

/** Coordinates with a byte too few, one too many, and none. */
const short = Buffer.alloc(31, 1).toString('base64url');
const long = Buffer.alloc(33, 1).toString('base64url');

const refused: readonly { name: string; jwk: JsonObject; rules: KeyRules; error: RegExp }[] = [
  { name: 'no kty', jwk: { kid: 'a' }, rules: rulesFor(['ES256']), error: /^kty is not EC$/ },
  { name: 'RSA for ES256', jwk: jwkOf('RS256'), rules: rulesFor(['ES256']), error: /^kty is not EC$/ },
  { name: 'EC for RS256', jwk: jwkOf('ES256'), rules: rulesFor(['RS256', 'EdDSA']), error: /^kty is not RSA or OKP$/ },
  { name: 'P-256 for ES384', jwk: jwkOf('ES256'), rules: rulesFor(['ES384']), error: /^crv is not P-384$/ },
  {
    name: 'P-256 that says ES384',
    jwk: jwkOf('ES256', { alg: 'ES384' }),
    rules: rulesFor(['ES256', 'ES384']),
    error: /^alg is not ES256$/,
  },
  {
    name: 'secp256k1',
    jwk: jwkOf('ES256', { crv: 'secp256k1' }),
    rules: rulesFor(['ES256']),
    error: /^crv is not P-256$/,
  },
  { name: 'X25519', jwk: jwkOf('EdDSA', { crv: 'X25519' }), rules: rulesFor(['EdDSA']), error: /^crv is not Ed25519$/ },
  { name: 'Ed448', jwk: jwkOf('EdDSA', { crv: 'Ed448' }), rules: rulesFor(['EdDSA']), error: /^crv is not Ed25519$/ },
  {
    name: 'a secret',
    jwk: { kty: 'oct', kid: 'a', alg: 'HS256', k: 'c2VjcmV0' },
    rules: rulesFor(algorithmNames),
    error: /^kty is not RSA or EC or OKP$/,
  },
  {
    name: 'an RSA key for HS256',
    jwk: jwkOf('RS256', { alg: 'HS256' }),
    rules: rulesFor(algorithmNames),
    error: /^alg is not RS256 or /,
  },
  { name: 'PS256 for RS256', jwk: jwkOf('PS256'), rules: rulesFor(['RS256']), error: /^alg is not RS256$/ },
  {
    name: 'RSA that may be two',
    jwk: jwkOf('RS256', { alg: undefined }),
    rules: rulesFor(['RS256', 'PS256']),
    error: /^alg is missing, and RS256 and PS256 are allowed$/,
  },
  { name: 'alg null', jwk: jwkOf('ES256', { alg: null }), rules: rulesFor(['ES256']), error: /^alg is not ES256$/ },
  { name: 'no kid', jwk: jwkOf('ES256', { kid: undefined }), rules: rulesFor(['ES256']), error: /^kid is not/ },
  {
    name: 'for encryption',
    jwk: jwkOf('ES256', { use: 'enc' }),
    rules: rulesFor(['ES256']),
    error: /^use is not sig$/,
  },
  {
    name: 'a private half',
    jwk: jwkOf('ES256', { d: 'x' }),
    rules: rulesFor(['ES256']),
    error: /the private key is published/,
  },
  {
    name: 'x too short',
    jwk: jwkOf('ES256', { x: short }),
    rules: rulesFor(['ES256']),
    error: /^x is not 32 base64url bytes$/,
  },
  {
    name: 'y too long',
    jwk: jwkOf('ES256', { y: long }),
    rules: rulesFor(['ES256']),
    error: /^y is not 32 base64url bytes$/,
  },
  { name: 'no x', jwk: jwkOf('ES256', { x: undefined }), rules: rulesFor(['ES256']), error: /^x is not 32/ },
  { name: 'y of another kind', jwk: jwkOf('ES256', { y: 5 }), rules: rulesFor(['ES256']), error: /^y is not 32/ },
  {
    name: 'x with padding',
    jwk: jwkOf('EdDSA', { x: `${'A'.repeat(43)}=` }),
    rules: rulesFor(['EdDSA']),
    error: /^x is not 32/,
  },
  { name: 'no x of Ed25519', jwk: jwkOf('EdDSA', { x: undefined }), rules: rulesFor(['EdDSA']), error: /^x is not 32/ },
];

t.test('what is refused as a key', (t) => {
  for (const { name, jwk, rules, error } of refused) t.match(checkJwk(jwk, rules), { ok: false, error }, name);
  t.end();
});

t.test('`use` of a bundle has to be said', (t) => {
  const rules = rulesFor(['ES256'], 'jwt-svid');
  t.equal(algorithmOf(jwkOf('ES256', { use: 'jwt-svid', alg: undefined }), rules), 'ES256');
  t.equal(algorithmOf(jwkOf('ES256', { use: 'x509-svid' }), rules), 'use is not jwt-svid');
  t.equal(algorithmOf(jwkOf('ES256', { use: undefined }), rules), 'use is not jwt-svid');
  t.equal(algorithmOf(jwkOf('ES256'), rules), 'use is not jwt-svid');
  t.equal(algorithmOf(jwkOf('ES256', { use: 'jwt-svid' }), rulesFor(['ES256'])), 'use is not sig');
  t.end();
});

const prime = 2n ** 255n - 19n;
const d = mod(-121665n * inverse(121666n));

function mod(value: bigint): bigint {
  return ((value % prime) + prime) % prime;
}

function power(base: bigint, exponent: bigint): bigint {
  let [result, square, left] = [1n, mod(base), exponent];
  for (; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = mod(result * square);
    square = mod(square * square);
  }
  return result;
}

function inverse(value: bigint): bigint {
  return power(value, prime - 2n);
}

type Point = readonly [x: bigint, y: bigint];

/** RFC 8032 §5.1.4. */
function add([x1, y1]: Point, [x2, y2]: Point): Point {
  const product = mod(d * x1 * x2 * y1 * y2);
  return [mod((x1 * y2 + x2 * y1) * inverse(1n + product)), mod((y1 * y2 + x1 * x2) * inverse(1n - product))];
}

/** RFC 8032 §5.1.3; `null` where no x goes with it. */
function xOf(y: bigint): bigint | null {
  const square = mod((y * y - 1n) * inverse(d * y * y + 1n));
  const root = power(square, (prime + 3n) / 8n);
  if (mod(root * root) === square) return root;
  const other = mod(root * power(2n, (prime - 1n) / 4n));
  return mod(other * other) === square ? other : null;
}

function encoded(y: bigint, sign: 0n | 1n): string {
  const hex = (y | (sign << 255n)).toString(16).padStart(64, '0');
  return Buffer.from(hex, 'hex').reverse().toString('base64url');
}

t.test('every point of low order is refused, and every second spelling', (t) => {
  const y8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022n;
  const low = [0n, 1n, prime - 1n, y8, prime - y8];
  for (const y of low) {
    const x = xOf(y);
    t.not(x, null, `${String(y)} is on the curve`);
    const once: Point = [x ?? 0n, y];
    const eight = [once, once, once].reduce((point) => add(point, point), once);
    t.same(eight, [0n, 1n], `eight times ${String(y)} is nothing`);
    for (const sign of [0n, 1n] as const) {
      t.match(
        checkJwk(jwkOf('EdDSA', { x: encoded(y, sign) }), rulesFor(['EdDSA'])),
        { ok: false, error: /low order/ },
        `${String(y)} ${String(sign)}`,
      );
    }
  }
  for (const y of [prime, prime + 1n, prime + 18n]) {
    t.match(checkJwk(jwkOf('EdDSA', { x: encoded(y, 0n) }), rulesFor(['EdDSA'])), { ok: false, error: /low order/ });
  }
  t.ok(checkJwk(jwkOf('EdDSA', { x: encoded(2n, 0n) }), rulesFor(['EdDSA'])).ok, 'another y');
  t.end();
});
