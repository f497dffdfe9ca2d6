/** What was read of files, so that another process can take the same config of the very same texts. */
import { accept, type Result } from '../../lib/result.js';
import type { Files } from '../../ports/system.js';

/** Texts of files by their paths, as they were when a config was read. */
export type FileSnapshot = ReadonlyMap<string, string>;

/** What was found where a file was looked for. */
export interface AskedFile {
  /** Of what it held, or why that could not be had. */
  readonly digest: Result<string, string>;
  /** More than this was not read. */
  readonly maxBytes: number;
}

/** Files by their paths, those that could not be read included. */
export type AskedFiles = ReadonlyMap<string, AskedFile>;

/** Is told of each file that is asked for, and of what it held. */
export type OnFile = (path: string, text: Result<string, string>, maxBytes: number) => void;

/** Tells of each file that is read. */
export function tellReads(files: Files, onFile: OnFile): Files {
  return {
    ...files,
    read: async (path, limits) => {
      const text = await files.read(path, limits);
      onFile(path, text, limits.maxBytes);
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
