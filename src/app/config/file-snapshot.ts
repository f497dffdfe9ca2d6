/** What was read of files, so that another process can take the same config of the very same texts. */
import { accept } from '../../lib/result.js';
import type { Files } from '../../ports/system.js';

/** Texts of files by their paths, as they were when a config was read. */
export type FileSnapshot = ReadonlyMap<string, string>;

/** Keeps each text that is read. */
export function recordTexts(files: Files, kept: Map<string, string>): Files {
  return {
    ...files,
    read: async (path, limits) => {
      const text = await files.read(path, limits);
      if (text.ok) kept.set(path, text.value);
      return text;
    },
  };
}

/** Reads what is held, whatever the files say by now; the others as they are. */
export function snapshotFiles(held: FileSnapshot, files: Files): Files {
  return {
    ...files,
    read: (path, limits) => {
      const text = held.get(path);
      return text === undefined ? files.read(path, limits) : Promise.resolve(accept(text));
    },
  };
}
