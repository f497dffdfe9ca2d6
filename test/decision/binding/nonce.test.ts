import { randomBytes } from 'node:crypto';
import t from 'tap';
import { challengesOf } from '../../../src/decision/binding/challenges.js';
import {
  isNonce,
  nonceAt,
  nonceLifetimeMs,
  readNonceKeys,
  type NonceKeys,
} from '../../../src/decision/binding/nonce.js';

const one: NonceKeys = [randomBytes(32)];
const two: NonceKeys = [randomBytes(32), one[0]];
const minuteMs = 60_000;
const nowMs = 1_750_000_020_000;

t.test('a nonce is taken for five minutes, by whoever has the key', (t) => {
  const nonce = nonceAt(nowMs, one);
  t.match(nonce, /^[A-Za-z0-9_-]{30}$/);
  t.equal(nonceAt(nowMs + 39_000, one), nonce, 'the same within its minute');
  t.not(nonceAt(nowMs + minuteMs, one), nonce);
  for (const [atMs, expected] of [
    [nowMs, true],
    [nowMs - minuteMs, true],
    [nowMs - 2 * minuteMs, false],
    [nowMs + 5 * minuteMs, true],
    [nowMs + 6 * minuteMs, false],
  ] as const) {
    t.equal(isNonce(nonce, atMs, one), expected, String(atMs - nowMs));
  }
  t.notOk(isNonce(nonceAt(nowMs + minuteMs, one), nowMs + nonceLifetimeMs, one), 'of a clock that is ahead, either');
  t.ok(isNonce(nonce, nowMs, two), 'a second key is taken');
  t.notOk(isNonce(nonceAt(nowMs, two), nowMs, one), 'a key that is not there is none');
  t.end();
});

t.test('what is no nonce', (t) => {
  const nonce = nonceAt(nowMs, one);
  for (const text of [
    '',
    'x',
    nonce.slice(1),
    `${nonce}=`,
    `${nonce}A`,
    nonce.slice(0, -1),
    'A'.repeat(30),
    `${nonce} `,
    // Cut down to bytes it would be the nonce.
    nonce.replace(/./g, (character) => String.fromCharCode(character.charCodeAt(0) + 256)),
    nonce.replace(/.$/, (character) => String.fromCharCode(character.charCodeAt(0) + 256)),
  ]) {
    t.notOk(isNonce(text, nowMs, one), JSON.stringify(text));
  }
  const last = nonce.slice(-1) === 'A' ? 'Q' : 'A';
  t.notOk(isNonce(nonce.slice(0, -1) + last, nowMs, one));
  t.notOk(
    isNonce(`${nonce.slice(0, 7)}${nonce[7] === 'A' ? 'B' : 'A'}${nonce.slice(8)}`, nowMs, one),
    'another minute',
  );
  t.end();
});

t.test('the file of keys', (t) => {
  const hex = randomBytes(32).toString('hex');
  const base64 = randomBytes(32).toString('base64');
  const url = randomBytes(48).toString('base64url');
  t.same(readNonceKeys(`${hex}\n`), [Buffer.from(hex, 'hex')]);
  t.same(readNonceKeys(`${base64}\r\n${url}`), [Buffer.from(base64, 'base64'), Buffer.from(url, 'base64url')]);
  t.equal(readNonceKeys('\n'), 'it holds no key');
  t.equal(readNonceKeys(`${hex}\nshort`), 'line 2 is no base64 or hex of 32 bytes or more');
  t.equal(readNonceKeys(`${hex} `), 'line 1 is no base64 or hex of 32 bytes or more');
  t.equal(readNonceKeys(hex.slice(2)), 'line 1 is no base64 or hex of 32 bytes or more');
  t.end();
});

t.test('what a 401 asks for', (t) => {
  const bearer = ['WWW-Authenticate', 'Bearer realm="sallyport"'];
  t.same(challengesOf(false, null)(), bearer);
  t.same(challengesOf(true, null)(), [
    ...bearer,
    'WWW-Authenticate',
    'DPoP realm="sallyport", algs="ES256 Ed25519 EdDSA PS256 RS256"',
  ]);
  t.same(challengesOf(true, () => 'n')(), [
    ...bearer,
    'WWW-Authenticate',
    'DPoP realm="sallyport", error="use_dpop_nonce", algs="ES256 Ed25519 EdDSA PS256 RS256"',
    'DPoP-Nonce',
    'n',
  ]);
  t.end();
});
