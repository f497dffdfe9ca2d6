/** Tokens that are bound to a certificate (RFC 8705 §3). Pure. */
import { denial, type Denial } from '../denial.js';
import type { Confirmation } from './confirmation.js';

/** A certificate whose private key the caller has: its end of TLS was held to it. */
export interface CallerCertificate {
  /** SHA-256 of its DER, base64url without padding. */
  readonly digest: string;
  /** Whether an authority of `listen.tls.client_ca_file` vouches for it, or who ended TLS in front of us says so. */
  readonly isVerified: boolean;
}

/** Whether the caller has the certificate that its token is bound to: `null`, or why not. */
export function refusedCertificate(
  { certificate }: Pick<Confirmation, 'certificate'>,
  shown: CallerCertificate | null,
): Denial | null {
  if (certificate === null) return null;
  if (shown === null) return denial('certificate_missing');
  // A digest of what everybody may see is no secret: that comparing it takes longer the nearer it is tells nothing.
  return shown.digest === certificate ? null : denial('certificate_mismatch');
}
