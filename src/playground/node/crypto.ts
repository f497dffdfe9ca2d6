/**
 * Stands in for `node:crypto` in a page: digests are those of the real one, and keys are made up. What decides asks for
 * signatures at once, which no browser answers. So a key here signs by a digest of a secret that nobody outside of the
 * page has, and holds whatever others signed for wrong: nothing is let through for it.
 */
import { sha1 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { Buffer } from './buffer.js';

type Bytes = string | Uint8Array;
type Encoding = 'base64' | 'base64url' | 'hex';

const digests: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = { sha1, sha256 };

/** The digest of all that it was given. */
class Hash {
  private readonly parts: Uint8Array[] = [];

  constructor(private readonly algorithm: string) {}

  update(part: Bytes): this {
    this.parts.push(Buffer.from(part as string));
    return this;
  }

  digest(): Buffer;
  digest(encoding: Encoding): string;
  digest(encoding?: Encoding): Buffer | string {
    const digest = digests[this.algorithm];
    if (digest === undefined) throw new Error(`there is no ${this.algorithm} in a page`);
    const bytes = Buffer.from(digest(Buffer.concat(this.parts)));
    return encoding === undefined ? bytes : bytes.toString(encoding);
  }
}

export function createHash(algorithm: string): Hash {
  return new Hash(algorithm);
}

export function hash(algorithm: string, data: Bytes, encoding: Encoding = 'hex'): string {
  return createHash(algorithm).update(data).digest(encoding);
}

export function timingSafeEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

export function randomBytes(size: number): Buffer {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(size)));
}

/** Only one that a request came with is shown, and nobody comes with one here. */
export function randomUUID(): string {
  return crypto.randomUUID();
}

/** What Node.js names them does not matter: they come back to `sign` and `verify`, which do not ask. */
export const constants = { RSA_PKCS1_PSS_PADDING: 6, RSA_PSS_SALTLEN_DIGEST: -1 };

interface KeyForm {
  readonly asymmetricKeyType: 'rsa' | 'ec' | 'ed25519';
  readonly asymmetricKeyDetails: { readonly modulusLength?: number; readonly namedCurve?: string };
  /** Of its signatures. */
  readonly bytes: number;
}

interface MadeUpKey extends KeyForm {
  readonly type: 'public' | 'private';
  /** `null` of a key of somebody else, which made no signature that could be checked here. */
  readonly secret: Buffer | null;
  readonly equals: (other: MadeUpKey) => boolean;
}

interface KeyPair {
  readonly publicKey: MadeUpKey;
  readonly privateKey: MadeUpKey;
}

interface KeyOptions {
  readonly modulusLength?: number;
  readonly namedCurve?: string;
}

/** As Node.js names them: the names of JOSE stand for them too. */
const curves: Readonly<Record<string, { readonly namedCurve: string; readonly bytes: number }>> = {
  'P-256': { namedCurve: 'prime256v1', bytes: 64 },
  'P-384': { namedCurve: 'secp384r1', bytes: 96 },
  'P-521': { namedCurve: 'secp521r1', bytes: 132 },
};

function formOf(type: string, { modulusLength = 2048, namedCurve = '' }: KeyOptions): KeyForm {
  if (type === 'rsa') {
    return { asymmetricKeyType: type, asymmetricKeyDetails: { modulusLength }, bytes: Math.ceil(modulusLength / 8) };
  }
  const curve = curves[namedCurve];
  if (type === 'ec' && curve !== undefined) {
    const { bytes, ...asymmetricKeyDetails } = curve;
    return { asymmetricKeyType: type, asymmetricKeyDetails, bytes };
  }
  if (type === 'ed25519') return { asymmetricKeyType: type, asymmetricKeyDetails: {}, bytes: 64 };
  throw new Error('a page knows no such key');
}

function keyOf(form: KeyForm, type: MadeUpKey['type'], secret: MadeUpKey['secret']): MadeUpKey {
  return { ...form, type, secret, equals: (other) => secret !== null && other.secret === secret };
}

export function generateKeyPairSync(type: string, options: KeyOptions = {}): KeyPair {
  const form = formOf(type, options);
  const secret = randomBytes(32);
  return { publicKey: keyOf(form, 'public', secret), privateKey: keyOf(form, 'private', secret) };
}

export function generateKeyPair(
  type: string,
  options: KeyOptions,
  made: (error: null, publicKey: MadeUpKey, privateKey: MadeUpKey) => void,
): void {
  const { publicKey, privateKey } = generateKeyPairSync(type, options);
  made(null, publicKey, privateKey);
}

/** A key of somebody else: its form is known, and nothing that it signed can be checked. */
export function createPublicKey({ key }: { readonly key: Readonly<Record<string, string>> }): MadeUpKey {
  const { kty, crv = '', n = '' } = key;
  const type = kty === 'RSA' ? 'rsa' : kty === 'EC' ? 'ec' : 'ed25519';
  const modulusLength = Buffer.from(n, 'base64url').length * 8;
  return keyOf(formOf(type, { modulusLength, namedCurve: crv }), 'public', null);
}

/** As long as a signature of the key's kind. */
function signatureBy(secret: Buffer, bytes: number, data: Uint8Array): Buffer {
  const first = createHash('sha256').update(secret).update(data).digest();
  return Buffer.alloc(bytes, first);
}

export function sign(_hash: string | null, data: Uint8Array, { key }: { readonly key: MadeUpKey }): Buffer {
  if (key.secret === null) throw new Error('a public key signs nothing');
  return signatureBy(key.secret, key.bytes, data);
}

/** The two numbers of a sequence as Node.js reads it (RFC 3279 §2.2.3), side by side in so many bytes. */
function numbersIn(sequence: Uint8Array, bytes: number): Uint8Array {
  const numbers = Buffer.alloc(bytes);
  // Behind the tag and one byte of length, or two.
  let at = sequence[1] === 0x81 ? 3 : 2;
  for (const end of [bytes / 2, bytes]) {
    const length = sequence[at + 1] ?? 0;
    const number = sequence.subarray(at + 2, at + 2 + length).slice(-bytes / 2);
    numbers.set(number, end - number.length);
    at += 2 + length;
  }
  return numbers;
}

type Verdict = (error: null, holds: boolean) => void;

/** With options beside its key, what `sign` made; a key by itself has ECDSA's two numbers as a sequence. */
export function verify(
  _hash: string | null,
  data: Uint8Array,
  given: MadeUpKey | { readonly key: MadeUpKey },
  signature: Uint8Array,
  answer?: Verdict,
): boolean {
  const isAlone = !('key' in given);
  const { secret, bytes, asymmetricKeyType } = isAlone ? given : given.key;
  const shown = isAlone && asymmetricKeyType === 'ec' ? numbersIn(signature, bytes) : signature;
  const holds = secret !== null && timingSafeEqual(shown, signatureBy(secret, bytes, data));
  answer?.(null, holds);
  return holds;
}

/** Nobody reads certificates here: whoever asks takes one that cannot be read for none. */
export class X509Certificate {
  readonly raw = Buffer.alloc(0);

  constructor() {
    throw new Error('a page reads no certificate');
  }
}
