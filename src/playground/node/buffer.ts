/** `Buffer` for browsers, with base64 as Node.js reads and writes it, and UTF-8 as it reads that. */
import { Buffer as PlainBuffer } from 'buffer/index.js';

type Decode = (value: unknown, encoding?: unknown, length?: unknown) => Uint8Array;
type Encode = (this: Uint8Array, encoding?: string, start?: number, end?: number) => string;

const plain = PlainBuffer as unknown as { from: Decode; readonly prototype: { toString: Encode } };
const { from } = plain;
const { toString } = plain.prototype;

const isBase64 = (encoding: unknown): boolean => encoding === 'base64' || encoding === 'base64url';

/** Reads both alphabets of base64 (RFC 4648 §5) up to the first `=`, without what is in neither, as Node.js does. */
plain.from = (value, encoding, length) => {
  if (typeof value !== 'string' || !isBase64(encoding)) return from(value, encoding, length);
  const [digits = ''] = value.split('=', 1);
  const known = digits
    .replace(/[^\w+/-]/g, '')
    .replaceAll('-', '+')
    .replaceAll('_', '/');
  return from(known.slice(0, known.length % 4 === 1 ? -1 : undefined), 'base64');
};

/** A sequence that breaks off is one character, as in Node.js and everywhere (WHATWG Encoding §4.1); a mark stays. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

plain.prototype.toString = function (encoding = 'utf8', ...range) {
  const [start = 0, end = this.length] = range;
  if (encoding === 'utf8') return utf8.decode(this.subarray(Math.max(0, start), Math.max(0, end)));
  if (encoding !== 'base64url') return toString.call(this, encoding, ...range);
  return toString
    .call(this, 'base64', ...range)
    .replace(/=+$/, '')
    .replaceAll('+', '-')
    .replaceAll('/', '_');
};

export const Buffer: typeof globalThis.Buffer = PlainBuffer as unknown as typeof globalThis.Buffer;
