/** Certificates of callers for requests that nobody sent: no TLS is begun, and no authority is asked. */
import { hash, X509Certificate } from 'node:crypto';
import { verifiesCertificates } from '../../config/sections/listeners/listen.js';
import type { CompiledConfig } from '../../config/types.js';
import { callerCertificate, type CallerCertificate } from '../../decision/binding/certificate.js';
import type { Ruling } from './decide.js';

/** Reads a certificate in PEM, of several the first; `null` where there is none. It is taken for verified. */
export function readCertificate(pem: string): CallerCertificate | null {
  try {
    return callerCertificate(new X509Certificate(pem), true);
  } catch {
    return null;
  }
}

/** A certificate of which only this is known. */
export function assumeCertificate(
  name: string | null,
  { thumbprint, isVerified = true }: { readonly thumbprint?: string | undefined; readonly isVerified?: boolean } = {},
): CallerCertificate {
  return { digest: thumbprint ?? hash('sha256', name ?? '', 'base64url'), isVerified, name, endsAtMs: Infinity };
}

/** The same as a proxy with this config has it: where nobody verifies certificates of callers, it vouches for none. */
export function shownTo(
  { listen }: Pick<CompiledConfig, 'listen'>,
  certificate: CallerCertificate | null,
): CallerCertificate | null {
  if (certificate === null) return null;
  return { ...certificate, isVerified: verifiesCertificates(listen) && certificate.isVerified };
}

/** The same as whoever decided had it: a decide listener is told nothing of certificates. */
export function knownTo(
  { listener }: Pick<Ruling, 'listener'>,
  certificate: CallerCertificate | null,
): CallerCertificate | null {
  return listener === null ? certificate : null;
}
