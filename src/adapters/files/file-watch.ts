import { realpath, stat } from 'node:fs/promises';
import { accept, type Result } from '../../lib/result.js';
import type { AskedWatch, WatchOptions } from '../../ports/system.js';
import { readText, textDigest } from './read-file.js';

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
 * many network file systems. A change counts once two looks in a row agree and `leastAgeMs` went by between them, so
 * that a half-written file is not acted on. That time is our own: clocks of file servers go wrong. Only the move of a
 * link need not wait, since that cannot be half done.
 */
export function watchFile(path: string, onChange: (content: Content) => void, options: WatchOptions): AskedWatch {
  const intervalMs = options.intervalMs ?? defaultIntervalMs;
  /** What the caller last acted on: a digest, or why there was none; `null` where the caller did not say why. */
  let known = options.digest;
  /** Where the links on the way led to then. */
  let knownPlace: string | null = null;
  /** A change that does not count yet. */
  let pending: Look | null = null;
  /** Identity and times of the file whose digest is `known`, once they are old enough to be trusted. */
  let trusted: string | null = null;
  let asking: Asking[] = [];
  let looking = false;
  let closed = false;
  let timer = schedule(intervalMs);

  function schedule(ms: number): NodeJS.Timeout {
    return setTimeout(() => void poll(), ms).unref();
  }

  async function poll(): Promise<void> {
    // Who asks while a look is under way may mean what was written after it began.
    const asked = asking;
    asking = [];
    looking = true;
    const seen = await look(asked.length > 0);
    looking = false;
    if (closed) {
      for (const { tell } of asked) tell(null);
      return;
    }
    const askedMeanwhile = asking.length > 0;
    timer = schedule(nextLookMs(askedMeanwhile, asked.length > 0));
    if (seen === null) {
      asking = [...asked.map(({ tell }) => ({ tell, wait: null })), ...asking];
      for (const { wait } of asked) wait?.();
      return;
    }
    for (const { tell } of asked) tell(seen.content);
    if (seen.changed && asked.length === 0) onChange(seen.content);
  }

  function nextLookMs(askedMeanwhile: boolean, stillAsked: boolean): number {
    if (askedMeanwhile) return 0;
    return stillAsked ? Math.min(intervalMs, defaultIntervalMs) : intervalMs;
  }

  /** What the file holds, where that is certain; `null` where it is not, or is of no interest. */
  async function look(isAsked: boolean): Promise<{ readonly content: Content; readonly changed: boolean } | null> {
    const { identity, isOld } = await identityOf(path);
    if (identity !== null && identity === trusted && pending === null && !isAsked) return null;
    const place = await placeOf(path);
    const content = await readText(path, options);
    const sight = sightOf(content.ok ? accept(textDigest(content.value)) : content);
    if (sight === known || (known === null && !content.ok)) {
      known = sight;
      knownPlace = place;
      pending = null;
      trusted = isOld ? identity : null;
      return { content, changed: false };
    }
    trusted = null;
    const before = pending;
    const now = { sight, identity, sinceMs: performance.now() };
    if (before === null || before.sight !== sight || before.identity !== identity) {
      pending = now;
      return null;
    }
    const isMoved = place !== null && knownPlace !== null && place !== knownPlace;
    if (!isMoved && now.sinceMs - before.sinceMs < (options.leastAgeMs?.() ?? 0)) return null;
    known = sight;
    knownPlace = place;
    pending = null;
    return { content, changed: true };
  }

  return {
    settled: (onWait) =>
      new Promise((resolve) => {
        if (closed) {
          resolve(null);
          return;
        }
        asking.push({ tell: resolve, wait: onWait });
        if (looking) return;
        clearTimeout(timer);
        timer = schedule(0);
      }),
    loaded: (digest) => {
      known = sightOf(digest);
      trusted = null;
    },
    close: () => {
      closed = true;
      clearTimeout(timer);
      for (const { tell } of asking.splice(0)) tell(null);
    },
  };
}

type Content = Result<string, string>;

/** Somebody who wants to know what counts, and that it takes a while. */
interface Asking {
  readonly tell: (content: Content | null) => void;
  /** `null` once it was called. */
  readonly wait: (() => void) | null;
}

/** A file as it was seen. */
interface Look {
  readonly sight: string;
  readonly identity: string | null;
  /** When it was first seen so. */
  readonly sinceMs: number;
}

function sightOf(digest: Result<string, string>): string {
  return digest.ok ? digest.value : `unreadable: ${digest.error}`;
}

/** What changes whenever the file is written or replaced, and whether it is old enough for that to be certain. */
async function identityOf(path: string): Promise<{ readonly identity: string | null; readonly isOld: boolean }> {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    const isOld = Math.abs(Date.now() - Number(mtimeMs > ctimeMs ? mtimeMs : ctimeMs)) >= settledAfterMs;
    return { identity: [dev, ino, size, mtimeNs, ctimeNs].join('/'), isOld };
  } catch {
    return { identity: null, isOld: false };
  }
}

/** Where the path leads, links followed; `null` where it leads nowhere. */
async function placeOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch {
    return null;
  }
}
