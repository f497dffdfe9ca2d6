import { X509Certificate } from 'node:crypto';
import { accept, refuse, type Result } from './result.js';

const certificate = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----/g;
const beginning = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/g;

/**
 * Reads the certificates of a PEM file of authorities. Refuses, in words for operators, a text without any and one that
 * is broken anywhere: Node would fall back to the system's authorities, or silently trust fewer than are listed.
 */
export function readCaBundle(pem: string): Result<readonly string[], string> {
  const certificates = pem.match(certificate) ?? [];
  const begun = pem.match(beginning)?.length ?? 0;
  if (begun === 0) return refuse('holds no PEM certificate');
  if (begun !== certificates.length || !certificates.every(isCertificate)) {
    return refuse('holds a broken PEM certificate');
  }
  return accept(certificates);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
