/** The few key pairs that all worlds share: making one is slow. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { rsaKey } from '../../support/keys.js';

export type KeyKind = 'RSA' | 'P-256' | 'P-384' | 'P-521' | 'Ed25519';

export interface KeyPair {
  readonly kind: KeyKind;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The public members of a JWK. */
  readonly jwk: Readonly<Record<string, unknown>>;
}

const kindOf: Readonly<Record<string, KeyKind>> = {
  ES256: 'P-256',
  ES384: 'P-384',
  ES512: 'P-521',
  EdDSA: 'Ed25519',
};

/** The kind of key that an algorithm needs. */
export function kindFor(algorithm: string): KeyKind {
  return kindOf[algorithm] ?? 'RSA';
}

const made = new Map<string, KeyPair>();

/** The pair of this kind and name. */
export function keyPair(kind: KeyKind, name: string): KeyPair {
  const known = made.get(`${kind} ${name}`);
  if (known !== undefined) return known;
  const pair = newPair(kind, name);
  const keys: KeyPair = { kind, ...pair, jwk: { ...pair.publicKey.export({ format: 'jwk' }) } };
  made.set(`${kind} ${name}`, keys);
  return keys;
}

function newPair(kind: KeyKind, name: string): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  if (kind === 'RSA') return rsaKey(`pool-${name}`, name === 'weak' ? 1536 : 2048);
  return kind === 'Ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: kind });
}
