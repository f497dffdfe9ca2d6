/** What a token is to be bound to (RFC 7800 §3), by what its holder has. */
import { createPublicKey, X509Certificate, type JsonWebKey, type KeyObject } from 'node:crypto';
import { certificateDigest } from '../decision/binding/certificate.js';
import type { Confirmation } from '../decision/binding/confirmation.js';
import { thumbprintOf } from '../decision/binding/thumbprint.js';
import { accept, refuse, type Result } from '../lib/result.js';

const accepted = 'a certificate, or a key of P-256, Ed25519 or RSA with 2,048 to 4,096 bits, in PEM';

/** Reads a certificate or a key, public or private; a private key is not kept. Says in words what else is needed. */
export function readBoundTo(pem: string): Result<Confirmation, string> {
  try {
    if (pem.includes('-----BEGIN CERTIFICATE-----')) {
      return accept({ certificate: certificateDigest(new X509Certificate(pem)), key: null });
    }
    const thumbprint = keyThumbprint(createPublicKey(pem));
    return thumbprint === null ? refuse(`is not ${accepted}`) : accept({ certificate: null, key: thumbprint });
  } catch {
    // What is wrong with a key may say something of it.
    return refuse(`is not ${accepted}`);
  }
}

/** The thumbprint of a key that receivers take proofs of (docs/bound-tokens.md); `null` of another one. */
export function keyThumbprint(publicKey: KeyObject): string | null {
  const members = membersOf(publicKey);
  return members === null ? null : thumbprintOf(members);
}

/** RFC 7638 §3.2, RFC 8037 §2: the members that make the public key. */
export function membersOf(publicKey: KeyObject): Readonly<Record<string, string>> | null {
  const { namedCurve, modulusLength = 0 } = publicKey.asymmetricKeyDetails ?? {};
  const jwk: JsonWebKey = publicKey.export({ format: 'jwk' });
  const { x = '', y = '', n = '', e = '' } = jwk;
  switch (publicKey.asymmetricKeyType) {
    case 'ec':
      return namedCurve === 'prime256v1' ? { crv: 'P-256', kty: 'EC', x, y } : null;
    case 'ed25519':
      return { crv: 'Ed25519', kty: 'OKP', x };
    case 'rsa':
      return modulusLength >= 2048 && modulusLength <= 4096 ? { e, kty: 'RSA', n } : null;
    default:
      return null;
  }
}
