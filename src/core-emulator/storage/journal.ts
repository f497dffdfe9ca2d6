import type { FileHandle } from 'node:fs/promises';

/** A log of changes, on disk before anybody is told of them. */
export interface Journal {
  /** Adds a line. Lines are written in the order of the calls. */
  readonly append: (line: string) => void;
  /**
   * Settles when every line so far is on disk. Rejects where a write failed, and for ever after: nothing more is
   * promised.
   */
  readonly settled: () => Promise<void>;
  /** Whether a write failed. */
  readonly hasFailed: () => boolean;
  /** Writes what is left and closes the file. */
  readonly close: () => Promise<void>;
}

/** Keeps nothing. */
export const noJournal: Journal = {
  append: () => undefined,
  settled: () => Promise.resolve(),
  hasFailed: () => false,
  close: () => Promise.resolve(),
};

/**
 * Writes to the end of an open file. Lines that come while others are written go together, with one sync for all of
 * them.
 */
export function createJournal(file: FileHandle): Journal {
  let written: Promise<void> = Promise.resolve();
  let waiting: string[] | null = null;
  let hasFailed = false;

  const write = async (lines: readonly string[]): Promise<void> => {
    await file.appendFile(`${lines.join('\n')}\n`);
    await file.datasync();
  };

  const startBatch = (): string[] => {
    const lines: string[] = [];
    // After a failed write none follows: what it left may be torn.
    written = written.then(() => {
      waiting = null;
      return write(lines);
    });
    // Who waits for it is told; that nobody does is no crash.
    written.catch(() => {
      hasFailed = true;
    });
    return lines;
  };

  return {
    append: (line) => {
      waiting ??= startBatch();
      waiting.push(line);
    },
    settled: () => written,
    hasFailed: () => hasFailed,
    close: async () => {
      try {
        await written;
      } finally {
        await file.close();
      }
    },
  };
}
