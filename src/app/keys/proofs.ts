import type { ListenSettings } from '../../config/types.js';
import { isNonce, nonceAt, nonceLifetimeMs, readNonceKeys, type NonceKeys } from '../../decision/binding/nonce.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { ProofKeeper } from '../../ports/auth.js';
import type { ReservationParts } from '../../ports/idempotency.js';
import type { Clock, Files, FileWatch, Log } from '../../ports/system.js';
import { createUsedProofs } from '../../proxy/auth/used-proofs.js';
import { invalidFile, warnOfExposure } from '../config/named-files.js';
import { startFailure, type StartFailure } from '../start-failure.js';

/** Some dozens of keys. */
const maxFileBytes = 4_096;

/** The file with keys of nonces, read. */
export interface NonceKeyFile {
  readonly path: string;
  readonly digest: string;
  readonly keys: NonceKeys;
}

/** What proofs of possession are judged with while the proxy runs. */
interface OpenProofs {
  readonly keeper: ProofKeeper;
  /** The nonce that is handed out now; `null` where none is asked for. */
  readonly nonce: (() => string) | null;
  readonly close: () => void;
}

interface ProofDeps {
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  /** Milliseconds between two looks at the key file. */
  readonly watchIntervalMs: number | undefined;
}

/** Reads the keys of nonces; `null` where no file is named. */
export async function readNonceKeyFile(
  dpop: ListenSettings['dpop'],
  files: Files,
): Promise<Result<NonceKeyFile | null, StartFailure>> {
  const path = dpop?.nonceKeyFile ?? null;
  if (path === null) return accept(null);
  const text = await files.read(path, { maxBytes: maxFileBytes });
  if (!text.ok) return refuse(startFailure('unreadable', `${path}: ${text.error}`));
  const keys = readNonceKeys(text.value);
  return typeof keys === 'string' ? invalidFile(path, keys) : accept({ path, digest: files.digest(text.value), keys });
}

/** Opens what knows of proofs; `null` where none are taken. */
export function openProofs(
  dpop: ListenSettings['dpop'],
  parts: Pick<ReservationParts, 'store' | 'replicas'> | null,
  file: NonceKeyFile | null,
  deps: ProofDeps,
): OpenProofs | null {
  if (dpop === null || parts === null) return null;
  const nonces = file === null ? null : watchNonceKeys(file, deps);
  return {
    keeper: { use: createUsedProofs(parts, dpop.clockSkewMs), isNonce: nonces?.isNonce ?? null },
    nonce: nonces?.nonce ?? null,
    close: () => nonces?.close(),
  };
}

interface Nonces {
  readonly nonce: () => string;
  readonly isNonce: (nonce: string) => boolean;
  readonly close: () => void;
}

/**
 * Makes nonces with the first key of the file, and takes the file up when it changes. Nonces of a key that has left the
 * file are taken until the last one that it made is too old.
 */
function watchNonceKeys(first: NonceKeyFile, { files, clock, log, watchIntervalMs: intervalMs }: ProofDeps): Nonces {
  const { path } = first;
  let { keys } = first;
  let gone: readonly { readonly key: Buffer; readonly untilMs: number }[] = [];

  const watch: FileWatch = files.watch(
    path,
    (content) => {
      const read = content.ok ? readNonceKeys(content.value) : content.error;
      if (typeof read === 'string') {
        log.warn('the keys of nonces were not reloaded; the old ones stay in use', { problem: `${path}: ${read}` });
        return;
      }
      replace(read);
      log.info('the keys of nonces were reloaded', { keys: read.length });
      warnOfExposure(path, files, log);
    },
    { digest: first.digest, maxBytes: maxFileBytes, intervalMs },
  );

  function replace(next: NonceKeys): void {
    const untilMs = clock.monotonic() + nonceLifetimeMs;
    gone = [...living(), ...keys.map((key) => ({ key, untilMs }))].filter(
      ({ key }, index, all) =>
        !next.some((kept) => kept.equals(key)) && all.findLastIndex((other) => other.key.equals(key)) === index,
    );
    keys = next;
  }

  function living(): typeof gone {
    const nowMs = clock.monotonic();
    return gone.filter(({ untilMs }) => untilMs > nowMs);
  }

  return {
    nonce: () => nonceAt(clock.now(), keys),
    isNonce: (nonce) => isNonce(nonce, clock.now(), [...keys, ...living().map(({ key }) => key)]),
    close: watch.close,
  };
}
