import { createHash, X509Certificate } from 'node:crypto';

/** What `x5t#S256` says of a certificate (RFC 8705, section 3.1): the SHA-256 of its DER, in base64url. */
export function certificateDigest(pem: string): string {
  return createHash('sha256').update(new X509Certificate(pem).raw).digest('base64url');
}
