import type { ListenerTls } from '../../config/types.js';
import { accept } from '../../lib/result.js';
import type { Files, FileWatch, Log } from '../../ports/system.js';
import type { TlsMaterial } from '../../proxy/inbound/listener.js';
import type { CertificateExpiry } from './certificate-expiry.js';
import { coalesce } from '../coalesce.js';
import { warnOfExposure } from '../secret-files.js';
import { maxPemBytes, readListenerCertificates, type ListenerCertificates } from './certificates.js';

interface CertificateWatchDeps {
  readonly setTls: (material: TlsMaterial) => void;
  /** Is told what is in use from now on. */
  readonly expiry: Pick<CertificateExpiry, 'useListener'>;
  readonly files: Files;
  readonly log: Log;
  /** Milliseconds between two looks. */
  readonly intervalMs?: number;
}

/**
 * Takes the listener's certificates up when their files change. A pair that does not fit leaves the old one in place.
 */
export function watchCertificates(
  tls: ListenerTls,
  first: ListenerCertificates,
  deps: CertificateWatchDeps,
): Pick<FileWatch, 'close'> {
  const { files, log } = deps;
  let closed = false;
  const reload = coalesce(async () => {
    const read = await readListenerCertificates(tls, files);
    if (closed) return;
    if (read.ok) for (const [path, digest] of read.value.digests) watches.get(path)?.loaded(accept(digest));
    const problems = read.ok ? take(read.value) : read.error.messages;
    // Certificate and key are two files: between the writing of one and of the other, they do not fit.
    if (problems.length > 0) log.warn('the certificates were not reloaded; the old ones stay in use', { problems });
  });

  function take(certificates: ListenerCertificates): readonly string[] {
    try {
      deps.setTls(tlsMaterial(tls, certificates));
    } catch {
      return [`${tls.certFile}: cannot be used for TLS`];
    }
    log.info('the certificates were reloaded', { valid_to: certificates.leaf.validTo });
    warnOfExposure(tls.keyFile, files, log);
    deps.expiry.useListener(certificates);
    return [];
  }

  const pace = deps.intervalMs === undefined ? {} : { intervalMs: deps.intervalMs };
  const watches = new Map(
    [...first.digests].map(([path, digest]) => [
      path,
      files.watch(path, () => void reload(), { digest, maxBytes: maxPemBytes, ...pace }),
    ]),
  );
  return {
    close: () => {
      closed = true;
      for (const watch of watches.values()) watch.close();
    },
  };
}

/** The certificates as the listener takes them. */
export function tlsMaterial(tls: ListenerTls, { cert, key, clientCa }: ListenerCertificates): TlsMaterial {
  return { cert, key, clientCa, clientAuth: tls.clientAuth };
}
