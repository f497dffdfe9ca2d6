import { createPrivateKey, createPublicKey, generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto';

/** An RSA key pair with its public half as a JWKS would list it. */
export interface RsaKey {
  readonly keyId: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly jwk: PublicJwk;
}

export type PublicJwk = JsonWebKey & { readonly kid: string; readonly alg: 'RS256'; readonly use: 'sig' };

const made = new Map<string, RsaKey>();

/** The process's key of this id and size: made once, since making one costs a tenth of a second and more. */
export function rsaKey(keyId = 'd-1', bits = 2048): RsaKey {
  const name = `${keyId}/${String(bits)}`;
  const known = made.get(name);
  if (known !== undefined) return known;
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: bits });
  const key: RsaKey = { keyId, privateKey, publicKey, jwk: publicJwk(keyId, publicKey) };
  made.set(name, key);
  return key;
}

/** A key pair that was kept: its private half in PEM. */
export function readRsaKey(pem: string, keyId = 'd-1'): RsaKey {
  const privateKey = createPrivateKey(pem);
  const publicKey = createPublicKey(privateKey);
  return { keyId, privateKey, publicKey, jwk: publicJwk(keyId, publicKey) };
}

/** The same key pair under another `kid`. */
export function withKeyId(key: RsaKey, keyId: string): RsaKey {
  return { ...key, keyId, jwk: publicJwk(keyId, key.publicKey) };
}

function publicJwk(keyId: string, publicKey: KeyObject): PublicJwk {
  return { ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: 'RS256', use: 'sig' };
}
