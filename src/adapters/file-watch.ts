import { stat } from 'node:fs/promises';
import type { Result } from '../decision/result.js';
import type { FileWatch, WatchOptions } from '../ports.js';
import { readText, textDigest } from './text-file.js';

const defaultIntervalMs = 500;

/**
 * A file's times tell a change only when it is older than this: two writes within one tick of the file system's clock
 * look the same, and some file systems count in seconds.
 */
const settledAfterMs = 3_000;

/**
 * Calls back with what a file holds each time that changes: by writing, by renaming another file over it, by moving a
 * symbolic link on the way to it (a ConfigMap's `..data`), by its going and coming back.
 *
 * It looks, rather than listens: `fs.watch` follows the inode, so it goes deaf at the first rename, and says nothing on
 * many network file systems. A change counts once two looks in a row agree, so that a half-written file is not acted on.
 */
export function watchFile(path: string, onChange: (content: Result<string, string>) => void, options: WatchOptions): FileWatch {
  const intervalMs = options.intervalMs ?? defaultIntervalMs;
  /** What the caller last acted on: a digest, or why there was none; `null` where the caller did not say why. */
  let known = options.digest;
  /** A change seen once. */
  let pending: string | null = null;
  /** Identity and times of the file whose digest is `known`, once they are old enough to be trusted. */
  let settled: string | null = null;
  let closed = false;
  let timer = schedule();

  function schedule(): NodeJS.Timeout {
    return setTimeout(() => void poll(), intervalMs).unref();
  }

  async function poll(): Promise<void> {
    const change = await look();
    if (closed) return;
    timer = schedule();
    if (change !== null) onChange(change);
  }

  async function look(): Promise<Result<string, string> | null> {
    const identity = await identityOf(path);
    if (identity !== null && identity === settled && pending === null) return null;
    const content = await readText(path, options);
    const sight = content.ok ? textDigest(content.value) : `unreadable: ${content.error}`;
    if (sight === known || (known === null && !content.ok)) {
      known = sight;
      pending = null;
      settled = identity;
      return null;
    }
    settled = null;
    const confirmed = pending === sight;
    pending = confirmed ? null : sight;
    if (!confirmed) return null;
    known = sight;
    return content;
  }

  return {
    loaded: (digest) => {
      known = digest;
      settled = null;
    },
    close: () => {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/** What changes whenever the file is written or replaced, or `null` while it is too young for that to be certain. */
async function identityOf(path: string): Promise<string | null> {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    if (Math.abs(Date.now() - Number(mtimeMs > ctimeMs ? mtimeMs : ctimeMs)) < settledAfterMs) return null;
    return [dev, ino, size, mtimeNs, ctimeNs].join('/');
  } catch {
    return null;
  }
}
