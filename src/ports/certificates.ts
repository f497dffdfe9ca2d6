/** What operators learn of certificates: types only. */
import type { CertificateState } from '../lib/certificate-validity.js';

/**
 * Certificates whose end somebody has to see coming: what callers are shown, and who vouches for callers, receiver and
 * store.
 */
export type CertificateName = 'listener' | 'client_ca' | 'upstream_ca' | 'store_ca';

/** How it stands with a certificate in use, for the log, `/status` and metrics. */
export interface CertificateStatus {
  readonly certificate: CertificateName;
  /** RFC 3339. */
  readonly validFrom: string;
  readonly validTo: string;
  /** The same, in seconds since the epoch. */
  readonly notBeforeS: number;
  readonly notAfterS: number;
  /** Whole days; below 0 once it has expired. */
  readonly daysLeft: number;
  readonly state: CertificateState;
}
