import type { StoreSettings } from '../../config/types.js';
import { readCaBundle } from '../../lib/pem.js';
import type { Files, FileWatch, Log } from '../../ports/system.js';
import type { CertificateExpiry } from '../certificates/certificate-expiry.js';
import { maxPemBytes } from '../config/named-files.js';

/** Who vouches for the store, while the proxy runs. */
export interface StoreAuthorities {
  /** PEM text; `null` for the system's. */
  readonly ca: () => string | null;
  readonly close: () => void;
}

interface StoreAuthoritiesDeps {
  /** Is told what is in use from now on. */
  readonly expiry: Pick<CertificateExpiry, 'useAuthorities'>;
  readonly files: Files;
  readonly log: Log;
  /** Milliseconds between two looks. */
  readonly watchIntervalMs: number | undefined;
}

/**
 * Takes the file up when it changes, for connections to come. One that cannot be used leaves the old authorities in
 * place.
 */
export function watchStoreAuthorities(
  settings: StoreSettings | null,
  first: string | null,
  { expiry, files, log, watchIntervalMs: intervalMs }: StoreAuthoritiesDeps,
): StoreAuthorities {
  const path = settings?.kind === 'redis' ? (settings.tls?.caFile ?? null) : null;
  let ca = first;
  let watch: FileWatch | null = null;
  if (path !== null && first !== null) {
    watch = files.watch(
      path,
      (content) => {
        const problem = content.ok ? problemOf(content.value) : content.error;
        if (!content.ok || problem !== null) {
          log.warn('the authorities of the store were not reloaded; the old ones stay in use', {
            problem: `${path}: ${problem ?? ''}`,
          });
          return;
        }
        ca = content.value;
        log.info('the authorities of the store were reloaded');
        expiry.useAuthorities('store_ca', ca);
      },
      { digest: files.digest(first), maxBytes: maxPemBytes, intervalMs },
    );
  }
  return { ca: () => ca, close: () => watch?.close() };
}

function problemOf(pem: string): string | null {
  const certificates = readCaBundle(pem);
  return certificates.ok ? null : certificates.error;
}
