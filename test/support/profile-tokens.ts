/** Keys and tokens of every algorithm, for issuers of every profile. */
import { constants, generateKeyPairSync, sign, type JsonWebKey, type KeyObject } from 'node:crypto';
import { base64url, type Claims } from './tokens.js';
import type { Algorithm } from '../../src/decision/token/profiles.js';

export interface AnyKey {
  readonly keyId: string;
  readonly algorithm: Algorithm;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The public half as a key set lists it. */
  readonly jwk: JsonWebKey & { readonly kid: string; readonly alg: string; readonly use: string };
}

const made = new Map<string, { readonly privateKey: KeyObject; readonly publicKey: KeyObject }>();

const curves: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };

/** The process's key for this algorithm and id. RSA keys are shared between the RSA algorithms. */
export function keyFor(algorithm: Algorithm, keyId = `key-${algorithm}`): AnyKey {
  const name = /^[RP]S/.test(algorithm) ? 'RSA' : `${algorithm}/${keyId}`;
  const pair = made.get(name) ?? newPair(algorithm);
  made.set(name, pair);
  const jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid: keyId, alg: algorithm, use: 'sig' };
  return { keyId, algorithm, ...pair, jwk };
}

function newPair(algorithm: Algorithm): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519');
  const namedCurve = curves[algorithm];
  return namedCurve === undefined
    ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : generateKeyPairSync('ec', { namedCurve });
}

/** What the key signs by this algorithm, which may be another one than the key's. */
export function signatureBy(algorithm: Algorithm, key: KeyObject, input: string | Buffer): Buffer {
  const hash = algorithm === 'EdDSA' ? null : `sha${algorithm.slice(2)}`;
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  const options = algorithm.startsWith('PS') ? { key, ...pss } : { key, dsaEncoding: 'ieee-p1363' as const };
  return sign(hash, Buffer.from(input), options);
}

/** A token with this header and these claims to the letter; `undefined` takes a member away. */
export function tokenBy(key: AnyKey, claims: Claims, header: Claims = {}): string {
  return tokenOfText(key, JSON.stringify(claims), header);
}

/** The same with a payload that may be no claims at all. */
export function tokenOfText(key: AnyKey, payload: string, header: Claims = {}): string {
  const head = JSON.stringify({ alg: key.algorithm, kid: key.keyId, ...header });
  const input = `${base64url(head)}.${base64url(payload)}`;
  return `${input}.${signatureBy(key.algorithm, key.privateKey, input).toString('base64url')}`;
}
