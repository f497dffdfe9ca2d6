/** Proofs that a program has the key that its token is bound to (DPoP, RFC 9449 §4). */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  randomBytes,
  sign,
  type KeyObject,
} from 'node:crypto';
import { keyThumbprint, membersOf } from '../../core-api/bound-to.js';

/** A request that is about to be sent. */
export interface ProvedRequest {
  /** As it is sent: upper case. */
  readonly method: string;
  /** Where it is sent, as this program writes it; its query and fragment are no part of the proof. */
  readonly url: string | URL;
  readonly token: string;
  /** The last `DPoP-Nonce` of that service, where it gave one. */
  readonly nonce?: string;
}

/** A key of this program. */
export interface ProofKey {
  /** Its thumbprint (RFC 7638): `cnf.jkt` of tokens that are bound to it. */
  readonly thumbprint: string;
  /** The fields of one request: a proof counts once. */
  readonly headers: (request: ProvedRequest) => { readonly authorization: string; readonly dpop: string };
}

/** Random bytes of a `jti`. */
const proofIdBytes = 18;

/**
 * Makes a key of P-256 that lives as long as the program, or takes a private key in PEM: P-256, Ed25519 or RSA. Throws
 * a `TypeError` for another one.
 */
export function createProofKey(privateKeyPem?: string): ProofKey {
  const privateKey =
    privateKeyPem === undefined ? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey : read(privateKeyPem);
  const publicKey = createPublicKey(privateKey);
  const [jwk, thumbprint] = [membersOf(publicKey), keyThumbprint(publicKey)];
  if (jwk === null || thumbprint === null) throw new TypeError(`createProofKey: ${wrongKey}`);
  const { name, signed } = signerOf(privateKey);
  const header = encode({ typ: 'dpop+jwt', alg: name, jwk });
  return {
    thumbprint,
    headers: ({ method, url, token, nonce }) => {
      const { origin, pathname } = new URL(url);
      const claims = {
        jti: randomBytes(proofIdBytes).toString('base64url'),
        htm: method,
        htu: origin + pathname,
        iat: Math.floor(Date.now() / 1_000),
        ath: hash('sha256', token, 'base64url'),
        ...(nonce === undefined ? {} : { nonce }),
      };
      const input = `${header}.${encode(claims)}`;
      return { authorization: `DPoP ${token}`, dpop: `${input}.${signed(Buffer.from(input)).toString('base64url')}` };
    },
  };
}

const wrongKey = 'the key is no private key of P-256, Ed25519 or RSA with 2,048 to 4,096 bits in PEM';

function read(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    // What is wrong with a key may say something of it.
    throw new TypeError(`createProofKey: ${wrongKey}`);
  }
}

interface Signer {
  /** RFC 7518 §3.1, RFC 8037 §3.1. */
  readonly name: 'ES256' | 'EdDSA' | 'RS256';
  readonly signed: (input: Buffer) => Buffer;
}

function signerOf(key: KeyObject): Signer {
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
