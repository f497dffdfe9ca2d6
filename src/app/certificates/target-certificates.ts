/** Certificates that targets of the calling side are shown: read, and taken up when they change. */
import type { TargetSettings, TokenSourceSettings } from '../../config/types.js';
import { coalesce } from '../../lib/promises.js';
import { accept, type Result } from '../../lib/result.js';
import type { Files, FileWatch, Log } from '../../ports/system.js';
import { maxPemBytes, warnOfExposure } from '../config/named-files.js';
import type { StartFailure } from '../start-failure.js';
import { readCertificatePair, type CertificatePair } from './certificates.js';

export type CertificateFiles = NonNullable<TargetSettings['certificate']>;

/** By the names of targets. */
export type TargetCertificates = ReadonlyMap<string, CertificatePair>;

/** Reads those of all targets; whatever is wrong with one refuses all. Targets of the same files are shown the same. */
export async function readTargetCertificates(
  targets: readonly TargetSettings[],
  files: Files,
): Promise<Result<TargetCertificates, StartFailure>> {
  const read = new Map<string, CertificatePair>();
  for (const { names, certificate } of shownTo(targets)) {
    const pair = await readCertificatePair(certificate, files);
    if (!pair.ok) return pair;
    for (const name of names) read.set(name, pair.value);
  }
  return accept(read);
}

interface WatchDeps {
  readonly files: Files;
  readonly log: Log;
  /** Milliseconds between two looks. */
  readonly intervalMs: number | undefined;
  /** Told of a pair that fits and is another one, for all that are shown it at once. */
  readonly onChange: (targets: readonly string[], pair: CertificatePair) => void;
}

/** Watches the files of all targets. A pair that does not fit leaves the old one in place. */
export function watchTargetCertificates(
  targets: readonly TargetSettings[],
  first: TargetCertificates,
  { files, log, intervalMs, onChange }: WatchDeps,
): Pick<FileWatch, 'close'> {
  let isClosed = false;
  const watches = shownTo(targets).flatMap(({ names, certificate }) => {
    const shown = first.get(names[0] ?? '');
    if (shown === undefined) return [];
    let { cert, key } = shown;
    const reload = coalesce(async () => {
      const read = await readCertificatePair(certificate, files);
      if (isClosed) return;
      if (!read.ok) {
        const problem = read.error.messages.join('; ');
        for (const target of names) {
          log.warn('the certificate for a target was not reloaded; the old one stays in use', { target, problem });
        }
        return;
      }
      if (read.value.cert === cert && read.value.key === key) return;
      ({ cert, key } = read.value);
      for (const target of names) log.info('the certificate for a target was reloaded', { target });
      warnOfExposure(certificate.keyFile, files, log);
      onChange(names, read.value);
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

interface ShownTo {
  readonly names: readonly string[];
  readonly certificate: CertificateFiles;
}

/** Each pair of files once, with the targets that are shown it. */
function shownTo(targets: readonly TargetSettings[]): readonly ShownTo[] {
  const shown: { readonly names: string[]; readonly certificate: CertificateFiles }[] = [];
  for (const { name, certificate } of targets) {
    if (certificate === null) continue;
    const known = shown.find((each) => isSameFiles(each.certificate, certificate));
    if (known === undefined) shown.push({ names: [name], certificate });
    else known.names.push(name);
  }
  return shown;
}

/** The files of the certificate that a token is asked for with; `null` where it is asked for with something else. */
export function certificateFilesOf(token: TokenSourceSettings): CertificateFiles | null {
  return token.kind === 'oauth' && token.auth.method === 'tls_client_auth' ? token.auth : null;
}

/** Whether a token is asked for with the certificate that this target is shown. */
export function isAskedForAsShown(token: TokenSourceSettings, { certificate }: TargetSettings): boolean {
  const files = certificateFilesOf(token);
  return files !== null && certificate !== null && isSameFiles(files, certificate);
}

function isSameFiles(a: CertificateFiles, b: CertificateFiles): boolean {
  return a.certFile === b.certFile && a.keyFile === b.keyFile;
}
