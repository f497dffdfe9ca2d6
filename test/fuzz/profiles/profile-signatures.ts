/** Signatures that are nearly right. */
import { constants, publicDecrypt, sign } from 'node:crypto';
import { signatureBy } from '../../support/profile-tokens.js';
import { pick, type Draw } from '../draw.js';
import type { KeyPair } from './key-pool.js';
import { curves } from './model-curves.js';
import { numberOf } from './model-signatures.js';

/** Order of the points of edwards25519 (RFC 8032 §5.1). */
const edwardsOrder = 2n ** 252n + 27742317777372353535851937790883648493n;

/** Cut, prolonged, zeros, another form of the same numbers, or the same numbers modulo something. */
export function brokenSignature(
  draw: Draw,
  signature: Buffer,
  input: string,
  pair: KeyPair,
  algorithm: string,
): Buffer {
  const flipped = Buffer.from(signature);
  const at = draw.below(flipped.length);
  flipped[at] = (flipped[at] ?? 0) ^ (1 << draw.below(8));
  const curve = curves.find(({ name }) => name === pair.kind);
  return pick(draw, [
    flipped,
    signature.subarray(0, -1),
    signature.subarray(1),
    Buffer.concat([signature, Buffer.alloc(1)]),
    Buffer.concat([Buffer.alloc(1), signature]),
    Buffer.alloc(signature.length),
    Buffer.concat([signature, signature]),
    ...(curve === undefined
      ? []
      : [
          sign(curve.hash, Buffer.from(input), { key: pair.privateKey, dsaEncoding: 'der' }),
          sign(curve.hash, Buffer.from(input), { key: pair.privateKey, dsaEncoding: 'der' }),
          withNumbers(signature, curve.bytes, (r, s) => [r, curve.n - s]),
          withNumbers(signature, curve.bytes, (r, s) => [r + curve.n, s]),
          withNumbers(signature, curve.bytes, (r) => [r, 0n]),
          withNumbers(signature, curve.bytes, (r, s) => [s, r]),
          // Each number with a byte more, or in as few as it needs.
          withNumbers(signature, curve.bytes, (r, s) => [r, s], curve.bytes + 1),
          withNumbers(signature, curve.bytes, (r, s) => [r, s], curve.bytes + 16),
        ]),
    ...(algorithm === 'EdDSA' ? [shiftedEdwards(signature)] : []),
  ]);
}

function withNumbers(
  signature: Buffer,
  bytes: number,
  change: (r: bigint, s: bigint) => readonly [bigint, bigint],
  length = bytes,
): Buffer {
  const numbers = change(numberOf(signature.subarray(0, bytes)), numberOf(signature.subarray(bytes)));
  return Buffer.concat(
    numbers.map((number) =>
      Buffer.from(
        number
          .toString(16)
          .padStart(2 * length, '0')
          .slice(-2 * length),
        'hex',
      ),
    ),
  );
}

/** The same signature for readers who do not look whether S is below the order (RFC 8032 §5.1.7). */
function shiftedEdwards(signature: Buffer): Buffer {
  const s = numberOf(Buffer.from(signature.subarray(32)).reverse()) + edwardsOrder;
  const text = Buffer.from(s.toString(16).padStart(64, '0').slice(-64), 'hex').reverse();
  return Buffer.concat([signature.subarray(0, 32), text]);
}

/** What holds where the key is an open one: the message as it is padded, and what the neutral point signs. */
export function openSignature(signature: Buffer, { kind, publicKey }: KeyPair): Buffer {
  if (kind !== 'RSA') return Buffer.concat([Buffer.of(1), Buffer.alloc(63)]);
  return publicDecrypt({ key: publicKey, padding: constants.RSA_NO_PADDING }, signature);
}

/** A PSS signature that begins with a zero, as one in 256 does, without it: some readers take that. */
export function withoutLeadingZero(
  signature: Buffer,
  input: string,
  { privateKey }: KeyPair,
  algorithm: string,
): Buffer {
  let found = signature;
  for (let tries = 0; found[0] !== 0 && tries < 300; tries++) {
    found = signatureBy(algorithm as Parameters<typeof signatureBy>[0], privateKey, input);
  }
  return found.subarray(1);
}
