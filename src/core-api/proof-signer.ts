/** Signs proofs that somebody has the key that a token is bound to (DPoP, RFC 9449 §4). */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  randomBytes,
  sign,
  type KeyObject,
} from 'node:crypto';
import { accept, refuse, type Result } from '../lib/result.js';
import type { ProofSigner } from '../ports/tokens.js';
import { keyThumbprint, membersOf } from './bound-to.js';

/** Random bytes of a `jti`. */
const proofIdBytes = 18;

const wrongKey = 'the key is no private key of P-256, Ed25519 or RSA with 2,048 to 4,096 bits in PEM';

/**
 * Makes a key of P-256 that lives as long as the program, or takes a private key in PEM: P-256, Ed25519 or RSA. Refuses
 * another one in words that quote nothing of it.
 */
export function createProofSigner(privateKeyPem?: string): Result<ProofSigner, string> {
  const privateKey = privateKeyPem === undefined ? newKey() : read(privateKeyPem);
  if (privateKey === null) return refuse(wrongKey);
  const publicKey = createPublicKey(privateKey);
  const [jwk, thumbprint] = [membersOf(publicKey), keyThumbprint(publicKey)];
  return jwk === null || thumbprint === null ? refuse(wrongKey) : accept(signerFor(privateKey, jwk, thumbprint));
}

/** Makes a signer with a key of P-256 of its own. */
export function newProofSigner(): ProofSigner {
  const made = createProofSigner();
  if (!made.ok) throw new Error(made.error);
  return made.value;
}

function newKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
}

function signerFor(privateKey: KeyObject, jwk: object, thumbprint: string): ProofSigner {
  const { name, signed } = algorithmOf(privateKey);
  const header = encode({ typ: 'dpop+jwt', alg: name, jwk });
  return {
    thumbprint,
    prove: ({ method, url, token, nonce, nowMs }) => {
      const { origin, pathname } = new URL(url);
      const claims = {
        jti: randomBytes(proofIdBytes).toString('base64url'),
        htm: method,
        htu: origin + pathname,
        iat: Math.floor(nowMs / 1_000),
        ...(token === null ? {} : { ath: hash('sha256', token, 'base64url') }),
        ...(nonce === null ? {} : { nonce }),
      };
      const input = `${header}.${encode(claims)}`;
      return `${input}.${signed(Buffer.from(input)).toString('base64url')}`;
    },
  };
}

function read(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    // What is wrong with a key may say something of it.
    return null;
  }
}

interface ProofAlgorithm {
  /** RFC 7518 §3.1, RFC 8037 §3.1. */
  readonly name: 'ES256' | 'EdDSA' | 'RS256';
  readonly signed: (input: Buffer) => Buffer;
}

function algorithmOf(key: KeyObject): ProofAlgorithm {
  switch (key.asymmetricKeyType) {
    case 'ed25519':
      return { name: 'EdDSA', signed: (input) => sign(null, input, key) };
    case 'rsa':
      return { name: 'RS256', signed: (input) => sign('sha256', input, key) };
    default:
      return { name: 'ES256', signed: (input) => sign('sha256', input, { key, dsaEncoding: 'ieee-p1363' }) };
  }
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
