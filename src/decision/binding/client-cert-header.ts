/** The certificate that a proxy in front says its caller showed (RFC 9440). Pure. */
import { X509Certificate } from 'node:crypto';
import { memoize } from '../../lib/memo.js';
import { callerCertificate, isOver, type CallerCertificate } from './certificate.js';

/** A byte sequence (RFC 8941 §3.3.5), without parameters. */
const byteSequence = /^:([A-Za-z0-9+/]+={0,2}):$/;

/** A front has the connections of many callers; a certificate is one to three kilobytes. */
const memory = { maxNames: 512, maxLength: 8_192, areParts: true };

/** Reads `Client-Cert`; `null` where it holds no certificate, or several. What is wrong with it proves nothing. */
export const readClientCert: (value: string) => CallerCertificate | null = memoize(read, memory);

/**
 * The certificate that a caller showed: to us, or to a proxy in front that ended TLS and reports it. Where that report
 * is read, the proxy's own certificate never stands in for the caller's. One that was shown to us counts until it is
 * over; of others the proxy in front knows whether they count (RFC 9440 §2.4).
 *
 * @param header `Client-Cert`, or `null`.
 */
export function shownCertificate(
  { trusted, certificate = null }: { readonly trusted: boolean; readonly certificate?: CallerCertificate | null },
  header: string | null,
  isRead: boolean,
  nowMs: number,
): CallerCertificate | null {
  if (!trusted || !isRead) return certificate === null || isOver(certificate, nowMs) ? null : certificate;
  return header === null ? null : readClientCert(header);
}

function read(value: string): CallerCertificate | null {
  const [, encoded = ''] = byteSequence.exec(value) ?? [];
  const der = Buffer.from(encoded, 'base64');
  if (der.length === 0 || der.toString('base64') !== encoded) return null;
  try {
    const certificate = new X509Certificate(der);
    // What follows the certificate would change its digest and nothing else. The front says that it verified it
    // (RFC 9440 §2.4).
    return certificate.raw.equals(der) ? callerCertificate(certificate, true) : null;
  } catch {
    return null;
  }
}
