import { X509Certificate } from 'node:crypto';

/** When a certificate counts. */
export interface Validity {
  /** Milliseconds since the epoch. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

export type CertificateState = 'valid' | 'expiring' | 'expired' | 'not_yet_valid';

/** Long enough for whoever renews certificates to notice that the renewal fails. */
const renewalDays = 14;

const dayMs = 24 * 60 * 60 * 1000;

/** Of one certificate. */
export function validityOf({ validFrom, validTo }: Pick<X509Certificate, 'validFrom' | 'validTo'>): Validity {
  return { notBeforeMs: Date.parse(validFrom), notAfterMs: Date.parse(validTo) };
}

/**
 * Of authorities in PEM, one at least: as long as one of them counts. An old one often stays beside the one that
 * follows it.
 */
export function validityOfBundle(certificates: readonly string[]): Validity {
  const each = certificates.map((pem) => validityOf(new X509Certificate(pem)));
  return {
    notBeforeMs: Math.min(...each.map((one) => one.notBeforeMs)),
    notAfterMs: Math.max(...each.map((one) => one.notAfterMs)),
  };
}

/** How it stands with a certificate now. */
export function certificateState({ notBeforeMs, notAfterMs }: Validity, nowMs: number): CertificateState {
  if (!(nowMs >= notBeforeMs)) return 'not_yet_valid';
  if (isPast({ notAfterMs }, nowMs)) return 'expired';
  return daysLeft({ notAfterMs }, nowMs) < renewalDays ? 'expiring' : 'valid';
}

/**
 * Whether its time is over, of which `notAfter` is the last moment (RFC 5280 §4.1.2.5). An end that is no time is past.
 */
export function isPast({ notAfterMs }: Pick<Validity, 'notAfterMs'>, nowMs: number): boolean {
  return !(nowMs <= notAfterMs);
}

/** Whole days until it expires; below 0 once it has. */
export function daysLeft({ notAfterMs }: Pick<Validity, 'notAfterMs'>, nowMs: number): number {
  return Math.floor((notAfterMs - nowMs) / dayMs);
}
