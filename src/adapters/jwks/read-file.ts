import { accept, refuse, type Result } from '../../lib/result.js';
import type { Files, FileWatch } from '../../ports/system.js';
import type { NamedOrigin, LoadedKeySet, LoadLimits } from './fetch-url.js';

/** A key set in a file, which calls back when the file changes. The watch begins with the first load. */
export function createFileOrigin(path: string, files: Files, onChange: () => void): NamedOrigin {
  let watch: FileWatch | null = null;
  let reading = false;
  let closed = false;

  async function load(limits: LoadLimits): Promise<Result<LoadedKeySet, string>> {
    // A read cannot be called off. On a file system that hangs, each one more would take a thread from the whole
    // process.
    if (reading) return refuse('the last attempt to read the file has not ended');
    reading = true;
    const text = await files.read(path, limits);
    reading = false;
    const digest = text.ok ? accept(files.digest(text.value)) : text;
    if (watch !== null) watch.loaded(digest);
    else if (!closed) {
      watch = files.watch(path, onChange, { digest: digest.ok ? digest.value : null, maxBytes: limits.maxBytes });
    }
    // A file says nothing of how long it holds; it is read again at the age that is allowed, and whenever it changes.
    return text.ok
      ? accept({ bytes: Buffer.from(text.value), freshnessMs: null, mustRevalidate: false })
      : refuse(`the file ${text.error}`);
  }

  return {
    load,
    metadata: () => null,
    close: () => {
      closed = true;
      watch?.close();
    },
  };
}
