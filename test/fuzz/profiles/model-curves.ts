/** Elliptic curves by hand: slow, with big integers, and nothing of any library. */

/** A point, `null` for the one at infinity. */
export type Point = readonly [x: bigint, y: bigint] | null;

/** y² = x³ - 3x + b over a prime field (FIPS 186-5, SP 800-186 §3.2.1). */
export interface Curve {
  readonly name: 'P-256' | 'P-384' | 'P-521';
  readonly p: bigint;
  readonly b: bigint;
  /** Number of points. */
  readonly n: bigint;
  readonly g: readonly [bigint, bigint];
  /** Of a coordinate, and of a number modulo `n`. */
  readonly bytes: number;
  readonly hash: 'sha256' | 'sha384' | 'sha512';
}

const hex = (digits: string): bigint => BigInt(`0x${digits.replaceAll(' ', '')}`);

export const curves: readonly Curve[] = [
  {
    name: 'P-256',
    p: 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n,
    b: hex('5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b'),
    n: hex('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551'),
    g: [
      hex('6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296'),
      hex('4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5'),
    ],
    bytes: 32,
    hash: 'sha256',
  },
  {
    name: 'P-384',
    p: 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n,
    b: hex('b3312fa7e23ee7e4988e056be3f82d19181d9c6efe814112 0314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aef'),
    n: hex('ffffffffffffffffffffffffffffffffffffffffffffffff c7634d81f4372ddf581a0db248b0a77aecec196accc52973'),
    g: [
      hex('aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b98 59f741e082542a385502f25dbf55296c3a545e3872760ab7'),
      hex('3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147c e9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f'),
    ],
    bytes: 48,
    hash: 'sha384',
  },
  {
    name: 'P-521',
    p: 2n ** 521n - 1n,
    b: hex(
      '51953eb9618e1c9a1f929a21a0b68540eea2da725b99b315f3b8b489918ef109e1 56193951ec7e937b1652c0bd3bb1bf073573df883d2c34f1ef451fd46b503f00',
    ),
    n: hex(
      '1fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff a51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409',
    ),
    g: [
      hex(
        'c6858e06b70404e9cd9e3ecb662395b4429c648139053fb521f828af606b4d3dba a14b5e77efe75928fe1dc127a2ffa8de3348b3c1856a429bf97e7e31c2e5bd66',
      ),
      hex(
        '11839296a789a3bc0045c8a5fb42c7d1bd998f54449579b446817afbd17273e662 c97ee72995ef42640c550b9013fad0761353c7086a272c24088be94769fd16650',
      ),
    ],
    bytes: 66,
    hash: 'sha512',
  },
];

/** What is left modulo a number, never below 0. */
export function modulo(value: bigint, modulus: bigint): bigint {
  const rest = value % modulus;
  return rest < 0n ? rest + modulus : rest;
}

export function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let result = 1n;
  for (const bit of exponent.toString(2)) {
    result = (result * result) % modulus;
    if (bit === '1') result = (result * base) % modulus;
  }
  return result;
}

/** Euclid's; the modulus is a prime and the value none of its multiples. */
export function inverse(value: bigint, modulus: bigint): bigint {
  let [low, high, lowFactor, highFactor] = [modulo(value, modulus), modulus, 1n, 0n];
  while (low > 1n) {
    const quotient = high / low;
    [low, high] = [high - quotient * low, low];
    [lowFactor, highFactor] = [highFactor - quotient * lowFactor, lowFactor];
  }
  return modulo(lowFactor, modulus);
}

export function isOnCurve({ p, b }: Curve, x: bigint, y: bigint): boolean {
  return x < p && y < p && modulo(y * y - (x * x * x - 3n * x + b), p) === 0n;
}

/** x = X/Z², y = Y/Z³: additions without a division. `null` is infinity. */
type Jacobian = readonly [bigint, bigint, bigint] | null;

/** The sum of two multiples of points, bit by bit for both at once. */
export function sumOfMultiples(curve: Curve, first: bigint, one: Point, second: bigint, other: Point): Point {
  const [left, right] = [start(one), start(other)];
  const both = add(curve, left, right);
  const length = Math.max(first.toString(2).length, second.toString(2).length);
  const [firstBits, secondBits] = [first, second].map((factor) => factor.toString(2).padStart(length, '0'));
  let sum: Jacobian = null;
  for (let at = 0; at < length; at++) {
    const bits = `${firstBits?.[at] ?? ''}${secondBits?.[at] ?? ''}`;
    sum = double(curve, sum);
    if (bits !== '00') sum = add(curve, sum, bits === '11' ? both : bits === '10' ? left : right);
  }
  if (sum === null) return null;
  const [x, y, z] = sum;
  const shrink = inverse(z, curve.p);
  return [modulo(x * shrink * shrink, curve.p), modulo(y * shrink * shrink * shrink, curve.p)];
}

function start(point: Point): Jacobian {
  return point === null ? null : [point[0], point[1], 1n];
}

function double({ p }: Curve, point: Jacobian): Jacobian {
  if (point === null || point[1] === 0n) return null;
  const [x, y, z] = point;
  const squared = (y * y) % p;
  const s = (4n * x * squared) % p;
  const m = modulo(3n * (x - z * z) * (x + z * z), p);
  const nextX = modulo(m * m - 2n * s, p);
  return [nextX, modulo(m * (s - nextX) - 8n * squared * squared, p), modulo(2n * y * z, p)];
}

function add(curve: Curve, one: Jacobian, other: Jacobian): Jacobian {
  if (one === null) return other;
  if (other === null) return one;
  const { p } = curve;
  const [x1, y1, z1] = one;
  const [x2, y2, z2] = other;
  const [square1, square2] = [(z1 * z1) % p, (z2 * z2) % p];
  const [u1, u2] = [(x1 * square2) % p, (x2 * square1) % p];
  const [s1, s2] = [(y1 * square2 * z2) % p, (y2 * square1 * z1) % p];
  const h = modulo(u2 - u1, p);
  const r = modulo(s2 - s1, p);
  if (h === 0n) return r === 0n ? double(curve, one) : null;
  const hh = (h * h) % p;
  const hhh = (h * hh) % p;
  const v = (u1 * hh) % p;
  const x3 = modulo(r * r - hhh - 2n * v, p);
  return [x3, modulo(r * (v - x3) - s1 * hhh, p), (h * z1 * z2) % p];
}
