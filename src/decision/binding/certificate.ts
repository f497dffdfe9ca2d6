/** Tokens that are bound to a certificate (RFC 8705 §3). Pure. */
import { hash, type X509Certificate } from 'node:crypto';
import { isPast, validityOf } from '../../lib/certificate-validity.js';
import { denial, type Denial } from '../denial.js';
import { certificateName } from './certificate-name.js';
import type { Confirmation } from './confirmation.js';

/** A certificate whose private key the caller has: its end of TLS was held to it. */
export interface CallerCertificate {
  /** SHA-256 of its DER, base64url without padding. */
  readonly digest: string;
  /** Whether an authority of `listen.tls.client_ca_file` vouches for it, or who ended TLS in front of us says so. */
  readonly isVerified: boolean;
  /** Its SPIFFE ID, or its subject; `null` where it has no name that could be written down. */
  readonly name: string | null;
  /** Its last moment, milliseconds since the epoch. */
  readonly endsAtMs: number;
}

/** @param isVerified whether somebody vouches for it. */
export function callerCertificate(certificate: X509Certificate, isVerified: boolean): CallerCertificate {
  return {
    digest: certificateDigest(certificate),
    isVerified,
    name: certificateName(certificate),
    endsAtMs: validityOf(certificate).notAfterMs,
  };
}

/**
 * Whether a certificate is over with which a connection began. TLS looks at that once, and not where a session is
 * resumed.
 */
export function isOver({ endsAtMs }: Pick<CallerCertificate, 'endsAtMs'>, nowMs: number): boolean {
  return isPast({ notAfterMs: endsAtMs }, nowMs);
}

/** `x5t#S256` of a certificate (RFC 8705 §3.1). */
export function certificateDigest({ raw }: Pick<X509Certificate, 'raw'>): string {
  return hash('sha256', raw, 'base64url');
}

/** Whether the caller has the certificate that its token is bound to: `null`, or why not. */
export function refusedCertificate(
  { certificate }: Pick<Confirmation, 'certificate'>,
  shown: CallerCertificate | null,
): Denial | null {
  if (certificate === null) return null;
  if (shown === null) return denial('certificate_missing');
  // The digest is no secret, since everybody may see the certificate: the comparison need not take constant time.
  return shown.digest === certificate ? null : denial('certificate_mismatch');
}

/** By what name a caller is known whose certificate somebody vouches for; `null` where there is none. */
export function verifiedName(shown: CallerCertificate | null): string | null {
  return shown?.isVerified === true ? shown.name : null;
}

/**
 * Whether a route takes callers with this certificate: `null`, or why not.
 *
 * @param accepted SPIFFE IDs and subjects; `null` where the route asks for none.
 */
export function refusedCaller(accepted: ReadonlySet<string> | null, shown: CallerCertificate | null): Denial | null {
  if (accepted === null) return null;
  const name = verifiedName(shown);
  return name !== null && accepted.has(name) ? null : denial('client_certificate_refused');
}
