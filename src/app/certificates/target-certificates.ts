/** Certificates that targets of the calling side are shown: read, and taken up when they change. */
import type { TargetSettings } from '../../config/types.js';
import { coalesce } from '../../lib/promises.js';
import { accept, type Result } from '../../lib/result.js';
import type { Files, FileWatch, Log } from '../../ports/system.js';
import { maxPemBytes, warnOfExposure } from '../config/named-files.js';
import type { StartFailure } from '../start-failure.js';
import { readCertificatePair, type CertificatePair } from './certificates.js';

/** By the names of targets. */
export type TargetCertificates = ReadonlyMap<string, CertificatePair>;

/** Reads those of all targets; whatever is wrong with one refuses all. */
export async function readTargetCertificates(
  targets: readonly TargetSettings[],
  files: Files,
): Promise<Result<TargetCertificates, StartFailure>> {
  const read = new Map<string, CertificatePair>();
  for (const { name, certificate } of targets) {
    if (certificate === null) continue;
    const pair = await readCertificatePair(certificate, files);
    if (!pair.ok) return pair;
    read.set(name, pair.value);
  }
  return accept(read);
}

interface WatchDeps {
  readonly files: Files;
  readonly log: Log;
  /** Milliseconds between two looks. */
  readonly intervalMs: number | undefined;
  /** Told of a pair that fits and is another one. */
  readonly onChange: (target: string, pair: CertificatePair) => void;
}

/** Watches the files of all targets. A pair that does not fit leaves the old one in place. */
export function watchTargetCertificates(
  targets: readonly TargetSettings[],
  first: TargetCertificates,
  { files, log, intervalMs, onChange }: WatchDeps,
): Pick<FileWatch, 'close'> {
  let isClosed = false;
  const watches = targets.flatMap(({ name, certificate }) => {
    const shown = first.get(name);
    if (certificate === null || shown === undefined) return [];
    let { cert, key } = shown;
    const reload = coalesce(async () => {
      const read = await readCertificatePair(certificate, files);
      if (isClosed) return;
      if (!read.ok) {
        log.warn('the certificate for a target was not reloaded; the old one stays in use', {
          target: name,
          problem: read.error.messages.join('; '),
        });
        return;
      }
      if (read.value.cert === cert && read.value.key === key) return;
      ({ cert, key } = read.value);
      log.info('the certificate for a target was reloaded', { target: name });
      warnOfExposure(certificate.keyFile, files, log);
      onChange(name, read.value);
    });
    return [
      [certificate.certFile, cert],
      [certificate.keyFile, key],
    ].map(([path = '', text = '']) =>
      files.watch(path, () => void reload(), { digest: files.digest(text), maxBytes: maxPemBytes, intervalMs }),
    );
  });
  return {
    close: () => {
      isClosed = true;
      for (const watch of watches) watch.close();
    },
  };
}
