import { hash } from 'node:crypto';

/**
 * Names a public key (RFC 7638 §3): SHA-256 of the members that make it, in the order of their names, base64url.
 *
 * @param publicKey these members of its JWK, and no other.
 */
export function thumbprintOf(publicKey: Readonly<Record<string, string>>): string {
  return hash('sha256', JSON.stringify(publicKey, Object.keys(publicKey).sort()), 'base64url');
}
