/** Signatures by hand: RFC 8017, RFC 7518 §3.3 to §3.5, RFC 8032. What is none is `false`, and nothing throws. */
import { createHash } from 'node:crypto';
import { curves, inverse, modulo, power, sumOfMultiples } from './model-curves.js';

/** The public half of an RSA key: modulus and exponent. */
export interface PublicNumbers {
  readonly n: bigint;
  readonly e: bigint;
}

/** A key and the one algorithm that it verifies. */
export type ModelKey =
  | (PublicNumbers & { readonly kind: 'rsa'; readonly algorithm: string })
  | { readonly kind: 'ec'; readonly algorithm: string; readonly x: bigint; readonly y: bigint }
  | { readonly kind: 'ed'; readonly algorithm: string; readonly octets: Buffer };

/** Whether the key signed this, by its own algorithm. */
export function isSignedBy(key: ModelKey, input: string, signature: Buffer): boolean {
  switch (key.kind) {
    case 'rsa':
      return key.algorithm.startsWith('PS')
        ? isSignedWithPss(input, signature, key, hashOf(key.algorithm))
        : isSigned(input, signature, key, hashOf(key.algorithm));
    case 'ec':
      return isSignedOnCurve(input, signature, key);
    case 'ed':
      return isSignedByEdwards(input, signature, key.octets);
  }
}

function hashOf(algorithm: string): string {
  return `sha${algorithm.slice(2)}`;
}

/** RFC 8017 §9.2: what the signature to the power of e has to be, byte for byte, before the digest. */
const digestPrefixes: Readonly<Record<string, string>> = {
  sha256: '3031300d060960864801650304020105000420',
  sha384: '3041300d060960864801650304020205000430',
  sha512: '3051300d060960864801650304020305000440',
};

export function isSigned(input: string, signature: Buffer, { n, e }: PublicNumbers, hash = 'sha256'): boolean {
  const length = Math.ceil(n.toString(16).length / 2);
  const number = numberOf(signature);
  if (signature.length !== length || length < 256 || number >= n) return false;
  const tail = `00${digestPrefixes[hash] ?? ''}${digestOf(hash, Buffer.from(input, 'latin1')).toString('hex')}`;
  const expected = `0001${'ff'.repeat(length - 2 - tail.length / 2)}${tail}`;
  return power(number, e, n) === BigInt(`0x${expected}`);
}

/** RFC 8017 §8.1.2 and §9.1.2, with a salt as long as the hash (RFC 7518 §3.5). */
function isSignedWithPss(input: string, signature: Buffer, { n, e }: PublicNumbers, hash: string): boolean {
  const bits = n.toString(2).length - 1;
  const number = numberOf(signature);
  if (signature.length !== Math.ceil((bits + 1) / 8) || number >= n) return false;
  const length = Math.ceil(bits / 8);
  const text = power(number, e, n)
    .toString(16)
    .padStart(2 * length, '0');
  if (text.length > 2 * length) return false;
  const message = Buffer.from(text, 'hex');
  const digest = digestOf(hash, Buffer.from(input, 'latin1'));
  const maskedLength = length - digest.length - 1;
  const stamp = message.subarray(maskedLength, maskedLength + digest.length);
  const mask = maskOf(hash, stamp, maskedLength);
  const block = message.subarray(0, maskedLength).map((byte, index) => byte ^ (mask[index] ?? 0));
  const spare = 8 * length - bits;
  if (message.at(-1) !== 0xbc || (message[0] ?? 0) >> (8 - spare) !== 0) return false;
  block[0] = (block[0] ?? 0) & (0xff >> spare);
  const zeros = maskedLength - digest.length - 1;
  if (block.subarray(0, zeros).some((byte) => byte !== 0) || block[zeros] !== 1) return false;
  const salt = block.subarray(zeros + 1);
  return digestOf(hash, Buffer.concat([Buffer.alloc(8), digest, salt])).equals(stamp);
}

/** MGF1, RFC 8017 appendix B.2.1. */
function maskOf(hash: string, seed: Buffer, length: number): Buffer {
  const parts: Buffer[] = [];
  for (let counter = 0; Buffer.concat(parts).length < length; counter++) {
    const number = Buffer.alloc(4);
    number.writeUInt32BE(counter);
    parts.push(digestOf(hash, Buffer.concat([seed, number])));
  }
  return Buffer.concat(parts).subarray(0, length);
}

/** RFC 7518 §3.4: r and s, each as long as the curve's numbers. */
function isSignedOnCurve(
  input: string,
  signature: Buffer,
  { algorithm, x, y }: Extract<ModelKey, { kind: 'ec' }>,
): boolean {
  const curve = curves.find(({ hash }) => hash === hashOf(algorithm));
  if (curve === undefined || signature.length !== 2 * curve.bytes) return false;
  const [r, s] = [numberOf(signature.subarray(0, curve.bytes)), numberOf(signature.subarray(curve.bytes))];
  if (r < 1n || r >= curve.n || s < 1n || s >= curve.n) return false;
  // No hash is longer than the curve's number.
  const digest = numberOf(digestOf(curve.hash, Buffer.from(input, 'latin1')));
  const shrink = inverse(s, curve.n);
  const point = sumOfMultiples(curve, modulo(digest * shrink, curve.n), curve.g, modulo(r * shrink, curve.n), [x, y]);
  return point !== null && modulo(point[0], curve.n) === r;
}

/** RFC 8032 §5.1: edwards25519. */
const edPrime = 2n ** 255n - 19n;
const edOrder = 2n ** 252n + 27742317777372353535851937790883648493n;
const edD = modulo(-121665n * inverse(121666n, edPrime), edPrime);
const edBaseY = modulo(4n * inverse(5n, edPrime), edPrime);

type EdPoint = readonly [x: bigint, y: bigint];

const edBase: EdPoint = [edX(edBaseY, 0n) ?? 0n, edBaseY];

function isSignedByEdwards(input: string, signature: Buffer, octets: Buffer): boolean {
  const key = readEdPoint(octets);
  if (key === null || signature.length !== 64) return false;
  const [start, s] = [signature.subarray(0, 32), littleEndian(signature.subarray(32))];
  if (s >= edOrder) return false;
  const message = Buffer.concat([start, octets, Buffer.from(input, 'latin1')]);
  const k = littleEndian(digestOf('sha512', message)) % edOrder;
  // R = S·B - k·A, compared as it is spelled.
  const [x, y] = edSum(edMultiple(s, edBase), edMultiple(k, [modulo(-key[0], edPrime), key[1]]));
  const spelled = y | ((x & 1n) << 255n);
  return spelled === littleEndian(start);
}

/** RFC 8032 §5.1.3; `null` where the octets spell no point. */
export function readEdPoint(octets: Buffer): EdPoint | null {
  const number = littleEndian(octets);
  const y = number & (2n ** 255n - 1n);
  const x = y < edPrime ? edX(y, number >> 255n) : null;
  return x === null ? null : [x, y];
}

/** Whether eight times the point is nothing: for such a key one signature holds for every message. */
export function isOfLowOrder(point: EdPoint): boolean {
  const [x, y] = edMultiple(8n, point);
  return x === 0n && y === 1n;
}

function edX(y: bigint, sign: bigint): bigint | null {
  const square = modulo((y * y - 1n) * inverse(edD * y * y + 1n, edPrime), edPrime);
  let x = power(square, (edPrime + 3n) / 8n, edPrime);
  if (modulo(x * x - square, edPrime) !== 0n) {
    x = modulo(x * power(2n, (edPrime - 1n) / 4n, edPrime), edPrime);
  }
  if (modulo(x * x - square, edPrime) !== 0n || (x === 0n && sign === 1n)) return null;
  return (x & 1n) === sign ? x : edPrime - x;
}

/** X, Y, Z and XY/Z, so that adding takes no division (RFC 8032 §5.1.4). */
type Extended = readonly [bigint, bigint, bigint, bigint];

function edMultiple(factor: bigint, [x, y]: EdPoint): EdPoint {
  const start: Extended = [x, y, 1n, modulo(x * y, edPrime)];
  let result: Extended = [0n, 1n, 1n, 0n];
  for (const bit of factor.toString(2)) {
    result = edAdd(result, result);
    if (bit === '1') result = edAdd(result, start);
  }
  const shrink = inverse(result[2], edPrime);
  return [modulo(result[0] * shrink, edPrime), modulo(result[1] * shrink, edPrime)];
}

function edSum(one: EdPoint, other: EdPoint): EdPoint {
  const [x, y, z] = edAdd(
    [...one, 1n, modulo(one[0] * one[1], edPrime)],
    [...other, 1n, modulo(other[0] * other[1], edPrime)],
  );
  const shrink = inverse(z, edPrime);
  return [modulo(x * shrink, edPrime), modulo(y * shrink, edPrime)];
}

function edAdd([x1, y1, z1, t1]: Extended, [x2, y2, z2, t2]: Extended): Extended {
  const a = modulo((y1 - x1) * (y2 - x2), edPrime);
  const b = modulo((y1 + x1) * (y2 + x2), edPrime);
  const c = modulo(2n * t1 * t2 * edD, edPrime);
  const d = modulo(2n * z1 * z2, edPrime);
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [modulo(e * f, edPrime), modulo(g * h, edPrime), modulo(f * g, edPrime), modulo(e * h, edPrime)];
}

function digestOf(hash: string, bytes: Buffer): Buffer {
  return createHash(hash).update(bytes).digest();
}

export function numberOf(bytes: Buffer): bigint {
  return BigInt(`0x${bytes.toString('hex') || '0'}`);
}

function littleEndian(bytes: Buffer): bigint {
  return numberOf(Buffer.from(bytes).reverse());
}
