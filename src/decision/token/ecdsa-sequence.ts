const derSequence = 0x30;
const derInteger = 0x02;
/** From this length on it takes a byte that says so. */
const derLongLength = 0x80;

/** A signature by ECDSA, two numbers of the same length, as the sequence that OpenSSL reads (RFC 3279 §2.2.3). */
export function ecdsaSequence(signature: Buffer): Buffer {
  const half = signature.length / 2;
  const numbers = [...derIntegerOf(signature.subarray(0, half)), ...derIntegerOf(signature.subarray(half))];
  const length = numbers.length < derLongLength ? [numbers.length] : [derLongLength + 1, numbers.length];
  return Buffer.from([derSequence, ...length, ...numbers]);
}

/** In as few bytes as it has, with a zero before what would be a sign (X.690 §8.3). */
function derIntegerOf(number: Buffer): readonly number[] {
  const first = number.findIndex((byte) => byte !== 0);
  const bytes = number.subarray(first < 0 ? number.length - 1 : first);
  const sign = (bytes[0] ?? 0) >= 0x80 ? [0] : [];
  return [derInteger, sign.length + bytes.length, ...sign, ...bytes];
}
