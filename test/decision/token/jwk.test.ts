import { createPublicKey } from 'node:crypto';
import t from 'tap';
import { parseServiceToken } from '../../../src/decision/token/service-token.js';
import { verifySignature } from '../../../src/decision/token/compact-jws.js';
import type { JsonObject, JsonValue } from '../../../src/lib/strict-json.js';
import { checkJwk } from '../../../src/decision/token/jwk.js';
import { rsaKey } from '../../support/keys.js';
import { mintToken } from '../../support/tokens.js';
import { coreKeyRules } from '../../../src/decision/token/profiles.js';

const key = rsaKey();
const n = key.jwk.n ?? '';
/** As Java writes it: a zero octet in front, and padded. */
const padded = Buffer.concat([Buffer.alloc(1), Buffer.from(n, 'base64url')])
  .toString('base64')
  .replaceAll('+', '-')
  .replaceAll('/', '_');
const good: JsonObject = { kty: 'RSA', kid: 'd-1', n, e: 'AQAB', alg: 'RS256', use: 'sig' };

/** `undefined` takes a member away. */
function withMembers(changes: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  const members = Object.entries({ ...good, ...changes }).filter(
    (member): member is [string, JsonValue] => member[1] !== undefined,
  );
  return Object.fromEntries(members);
}

/** A modulus whose remainders are those of the broken generator; roca.test.ts says why. */
function rocaModulus(): string {
  let primorial = 2n;
  for (let odd = 3n; odd <= 167n; odd += 2n) primorial *= odd; // a multiple of each prime up to 167
  let power = 1n;
  for (let exponent = 0; exponent < 1000; exponent += 1) power = (power * 65537n) % primorial;
  const value = ((1n << 2047n) / primorial + 1n) * primorial + power;
  return Buffer.from(value.toString(16), 'hex').toString('base64url');
}

/** An odd number of exactly so many bits: the check looks at size and parity, not at primes. */
function modulus(bits: number): string {
  const value = (1n << BigInt(bits - 1)) | 5n;
  const hex = value.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex').toString('base64url');
}

function bytes(...values: number[]): string {
  return Buffer.from(values).toString('base64url');
}

t.test('keys that may verify', (t) => {
  const cases: { name: string; changes: Readonly<Record<string, JsonValue | undefined>> }[] = [
    { name: 'as the Core lists it', changes: {} },
    { name: 'kty, kid, n and e alone', changes: { alg: undefined, use: undefined } },
    { name: 'key_ops with verify', changes: { use: undefined, key_ops: ['verify'] } },
    { name: 'members that mean nothing here', changes: { x5c: ['…'], x5t: 'x', ext: true } },
    { name: 'as Java pads it, with a zero octet in front', changes: { n: padded } },
    { name: 'the exponent 3', changes: { e: bytes(3) } },
    { name: 'an exponent of 64 bits', changes: { e: bytes(255, 255, 255, 255, 255, 255, 255, 255) } },
    { name: 'a modulus of 2048 bits', changes: { n: modulus(2048) } },
    { name: 'a modulus of 2049 bits', changes: { n: modulus(2049) } },
    { name: 'a modulus of 8192 bits', changes: { n: modulus(8192) } },
    { name: 'a kid of 256 characters', changes: { kid: 'k'.repeat(256) } },
  ];
  for (const { name, changes } of cases) {
    const jwk = withMembers(changes);
    t.same(
      checkJwk(jwk, coreKeyRules),
      {
        ok: true,
        value: { keyId: jwk['kid'], algorithm: 'RS256', publicKey: { kty: 'RSA', n: jwk['n'], e: jwk['e'] } },
      },
      name,
    );
  }
  t.end();
});

t.test('keys that may not, and why', (t) => {
  const cases: { name: string; changes: Readonly<Record<string, JsonValue | undefined>>; expected: RegExp }[] = [
    { name: 'no kty', changes: { kty: undefined }, expected: /^kty/ },
    { name: 'a secret', changes: { kty: 'oct', k: 'c2VjcmV0' }, expected: /^kty/ },
    { name: 'an elliptic curve', changes: { kty: 'EC' }, expected: /^kty/ },
    { name: 'kty in lower case', changes: { kty: 'rsa' }, expected: /^kty/ },
    { name: 'no kid', changes: { kid: undefined }, expected: /^kid/ },
    { name: 'an empty kid', changes: { kid: '' }, expected: /^kid/ },
    { name: 'a kid of 257 characters', changes: { kid: 'k'.repeat(257) }, expected: /^kid/ },
    { name: 'a kid that is a number', changes: { kid: 1 }, expected: /^kid/ },
    { name: 'a kid with a newline', changes: { kid: 'd-1\n' }, expected: /^kid/ },
    { name: 'alg HS256', changes: { alg: 'HS256' }, expected: /^alg/ },
    { name: 'alg PS256', changes: { alg: 'PS256' }, expected: /^alg/ },
    { name: 'alg null', changes: { alg: null }, expected: /^alg/ },
    { name: 'use enc', changes: { use: 'enc' }, expected: /^use/ },
    { name: 'use null', changes: { use: null }, expected: /^use/ },
    { name: 'key_ops without verify', changes: { key_ops: ['encrypt', 'sign'] }, expected: /^key_ops/ },
    { name: 'key_ops empty', changes: { key_ops: [] }, expected: /^key_ops/ },
    { name: 'key_ops no array', changes: { key_ops: 'verify' }, expected: /^key_ops/ },
    { name: 'the private exponent', changes: { d: 'AQAB' }, expected: /private key/ },
    ...['p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'].map((member) => ({
      name: `the private ${member}`,
      changes: { [member]: 'AQAB' },
      expected: /private key/,
    })),
    { name: 'no n', changes: { n: undefined }, expected: /^n / },
    { name: 'n empty', changes: { n: '' }, expected: /^n / },
    { name: 'n a number', changes: { n: 65537 }, expected: /^n / },
    { name: 'n no base64url', changes: { n: `${n.slice(0, -4)}+/+/` }, expected: /^n / },
    { name: 'padding within', changes: { e: 'AQ==AB' }, expected: /^e / },
    { name: 'n padded thrice', changes: { n: `${n}===` }, expected: /^n / },
    { name: 'n of absurd length', changes: { n: 'A'.repeat(4097) }, expected: /^n / },
    { name: 'n as long as is read', changes: { n: 'A'.repeat(4096) }, expected: /modulus has 1 bits/ },
    { name: 'n zero', changes: { n: 'AAAA' }, expected: /modulus has 1 bits/ },
    { name: 'a modulus of 1024 bits', changes: { n: modulus(1024) }, expected: /1024 bits/ },
    { name: 'a modulus of 2047 bits', changes: { n: modulus(2047) }, expected: /2047 bits/ },
    {
      name: 'a modulus of 2047 bits behind zero octets',
      changes: { n: `${'A'.repeat(12)}${modulus(2047)}` },
      expected: /2047 bits/,
    },
    { name: 'a modulus of 8193 bits', changes: { n: modulus(8193) }, expected: /8193 bits/ },
    { name: 'an even modulus', changes: { n: Buffer.alloc(256, 0xfe).toString('base64url') }, expected: /even/ },
    { name: 'a modulus of the generator of CVE-2017-15361', changes: { n: rocaModulus() }, expected: /CVE-2017-15361/ },
    { name: 'no e', changes: { e: undefined }, expected: /^e / },
    { name: 'e a number', changes: { e: 65537 }, expected: /^e / },
    { name: 'e 0', changes: { e: bytes(0) }, expected: /exponent/ },
    { name: 'e 1', changes: { e: bytes(1) }, expected: /exponent/ },
    { name: 'e 1 behind zero octets', changes: { e: bytes(0, 0, 1) }, expected: /exponent/ },
    { name: 'e 2', changes: { e: bytes(2) }, expected: /exponent/ },
    { name: 'e even', changes: { e: bytes(1, 0, 0) }, expected: /exponent/ },
    { name: 'e of 65 bits', changes: { e: bytes(1, 0, 0, 0, 0, 0, 0, 0, 1) }, expected: /64 bits/ },
  ];
  for (const { name, changes, expected } of cases) {
    const result = checkJwk(withMembers(changes), coreKeyRules);
    t.match(result.ok ? 'accepted' : result.error, expected, name);
  }
  t.end();
});

t.test('a key as the Core writes it verifies what its issuer signed', (t) => {
  const publicKey = createPublicKey({ key: { kty: 'RSA', n: padded, e: 'AQAB' }, format: 'jwk' });
  const token = parseServiceToken(mintToken({ key }));
  t.ok(token.ok && verifySignature(token.value, publicKey));
  t.match(padded, /=$/);
  t.end();
});
