import { X509Certificate } from 'node:crypto';
import { accept, refuse, type Result } from './result.js';

/** Of a CA file. A bundle of every public authority has some 250 KB. */
export const maxCaFileBytes = 1024 * 1024;

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

/**
 * Reads the certificates of the CA file that an operator named; a refusal names it. A file that cannot be used never
 * stands for the system's authorities.
 *
 * @param text what the file holds, or what is wrong in words that follow its path.
 */
export function readCaFile(caFile: string, text: Result<string, string>): Result<readonly string[], string> {
  const certificates = text.ok ? readCaBundle(text.value) : text;
  return certificates.ok ? certificates : refuse(`the CA file ${caFile} ${certificates.error}`);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
