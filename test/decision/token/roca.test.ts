import t from 'tap';
import { isRocaModulus } from '../../../src/decision/token/jwk.js';
import { rsaKey } from '../../support/keys.js';

const primes = [
  3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113,
  127, 131, 137, 139, 149, 151, 157, 163, 167,
].map(BigInt);

/** Twice the product of the primes. */
const primorial = primes.reduce((product, prime) => product * prime, 2n);

function power(exponent: number): bigint {
  let value = 1n;
  for (let at = 0; at < exponent; at += 1) value = (value * 65537n) % primorial;
  return value;
}

/** Built as the flawed generator builds numbers. */
function flawed(exponent: number, factor: bigint): bigint {
  return factor * primorial + power(exponent);
}

t.test('moduli of a broken generator are known by their remainders', (t) => {
  const [p, q] = [flawed(5, 2n ** 820n + 77n), flawed(1234, 2n ** 819n + 3n)];
  t.equal(isRocaModulus(p * q), true, 'a product of two such numbers');
  for (let factor = 1n; factor < 10n; factor += 1n) {
    t.equal(isRocaModulus(flawed(9, 2n ** 820n + factor)), true, `factor ${String(factor)}`);
  }
  t.equal(isRocaModulus(p * q + 2n), false, 'its neighbour');
  const { jwk } = rsaKey();
  t.equal(
    isRocaModulus(BigInt(`0x${Buffer.from(jwk.n ?? '', 'base64url').toString('hex')}`)),
    false,
    'a sound modulus',
  );
  t.end();
});

t.test('each of the primes counts', (t) => {
  const modulus = flawed(77, 2n ** 1_640n + 5n);
  for (const prime of primes) {
    let other = modulus;
    while (other % prime !== 0n) other += primorial / prime;
    t.equal(isRocaModulus(other), false, String(prime));
  }
  t.end();
});
