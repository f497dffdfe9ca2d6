import { openToOthers } from '../../lib/secret-file-access.js';
import { syncFolder } from '../../lib/files.js';
import { fileFailure, codeOf } from '../../lib/errors.js';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { accept, refuse, type Result } from '../../lib/result.js';
import { readLines } from '../../adapters/files/lines.js';

/** A file to which lines are added and kept, whatever ends the process. */
export interface JournalFile {
  /** Writes the line soon, in order; it has its end. */
  readonly append: (line: string) => void;
  /** Waits until all lines appended before are on disk. Those that wait at once share one write and one sync. */
  readonly commit: () => Promise<Result<null, string>>;
  readonly close: () => Promise<void>;
}

/** What a journal file is opened to. */
interface OpenJournal {
  readonly file: JournalFile;
  /** Whole lines that were there. */
  readonly lines: number;
}

const common = constants.O_NOFOLLOW | constants.O_NOCTTY | constants.O_APPEND | constants.O_NONBLOCK;
const ownerOnly = 0o600;

/** What each of our lines begins with. */
const openingBrace = 0x7b;

/** Longer than any line of ours. */
const maxLineBytes = 64 * 1024;

/**
 * Makes a new journal of mode 0600. Refuses, in words that follow the path, where there is one or it cannot be written.
 */
export async function createJournalFile(path: string): Promise<Result<JournalFile, string>> {
  try {
    const handle = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | common, ownerOnly);
    await syncFolder(dirname(path));
    return accept(journalFile(handle, 0));
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') return refuse('exists');
    return refuse(`cannot be made (${code}): the journal has to stand beside the input`);
  }
}

/**
 * Opens a journal and hands over its lines, oldest first. What a crash left of a last line is cut off: nobody acted on
 * it. `onLine` says what is wrong with a line, or `null`.
 */
export async function openJournalFile(
  path: string,
  onLine: (line: string) => string | null,
): Promise<Result<OpenJournal, string>> {
  let handle: FileHandle;
  try {
    handle = await open(path, constants.O_RDWR | common);
  } catch (error) {
    return refuse(fileFailure(error, 'is a symbolic link'));
  }
  const read = await readJournal(handle, onLine).catch((error: unknown) => refuse(`cannot be read (${codeOf(error)})`));
  if (read.ok) return accept({ file: journalFile(handle, read.value.bytes), lines: read.value.lines });
  await handle.close();
  return read;
}

/** The whole lines of a journal, oldest first. */
export async function* readJournalLines(path: string): AsyncGenerator<string, void, undefined> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    for await (const { bytes, isEnded } of readLines(chunksOf(handle), maxLineBytes)) {
      if (isEnded && bytes !== null) yield bytes.toString('utf8');
    }
  } finally {
    await handle.close();
  }
}

function chunksOf(handle: FileHandle): AsyncIterable<Buffer> {
  return handle.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>;
}

async function readJournal(
  handle: FileHandle,
  onLine: (line: string) => string | null,
): Promise<Result<{ lines: number; bytes: number }, string>> {
  const stats = await handle.stat();
  if (!stats.isFile()) return refuse('is no regular file');
  const problem = openToOthers(stats.mode);
  if (problem !== null) return refuse(problem);
  let lines = 0;
  let bytes = 0;
  let scanned = 0;
  for await (const text of readLines(chunksOf(handle), maxLineBytes)) {
    scanned = text.nextAt;
    if (!text.isEnded) {
      // Without one line that is ours this may be anything.
      if (lines === 0 && text.bytes?.[0] !== openingBrace) return refuse('is no journal');
      break;
    }
    const problem = text.bytes === null ? 'is too long' : onLine(text.bytes.toString('utf8'));
    if (problem !== null) return refuse(`line ${String(text.line)} ${problem}`);
    lines += 1;
    bytes = text.nextAt;
  }
  if ((await handle.stat()).size !== scanned) return refuse('is being written to: only one import may run over a file');
  if (bytes < scanned) await handle.truncate(bytes);
  return accept({ lines, bytes });
}

/** Lines that are written and synced together, and those that wait for it. */
interface Batch {
  readonly lines: string[];
  readonly isKept: Promise<Result<null, string>>;
  readonly settle: (result: Result<null, string>) => void;
}

/** Lines that gather without anybody waiting for them. */
const maxGathered = 512;

function newBatch(): Batch {
  let settle: Batch['settle'] = () => undefined;
  const isKept = new Promise<Result<null, string>>((resolve) => {
    settle = resolve;
  });
  return { lines: [], isKept, settle };
}

function journalFile(handle: FileHandle, bytes: number): JournalFile {
  let size = bytes;
  let failure: string | null = null;
  let gathering = newBatch();
  /** The last batch that was begun. */
  let begun: Promise<Result<null, string>> = Promise.resolve(accept(null));
  let isWriting = false;

  /** Writes what gathers while the last sync runs, batch after batch. */
  async function drain(): Promise<void> {
    if (isWriting) return;
    isWriting = true;
    while (gathering.lines.length > 0) {
      const batch = gathering;
      gathering = newBatch();
      begun = batch.isKept;
      failure ??= await keep(Buffer.from(batch.lines.join(''), 'utf8'));
      batch.settle(failure === null ? accept(null) : refuse(failure));
    }
    isWriting = false;
  }

  /** Writes and syncs; returns why it could not. */
  async function keep(block: Buffer): Promise<string | null> {
    try {
      for (let written = 0; written < block.length;) written += (await handle.write(block, written)).bytesWritten;
      await handle.datasync();
      size += block.length;
      // Two imports of one file would each miss what the other did.
      return (await handle.stat()).size === size
        ? null
        : 'another process writes to the journal: only one import may run over a file';
    } catch (error) {
      return writeFailure(codeOf(error));
    }
  }

  const commit = (): Promise<Result<null, string>> => {
    if (gathering.lines.length === 0) return begun;
    const { isKept } = gathering;
    void drain();
    return isKept;
  };
  return {
    append: (line) => {
      gathering.lines.push(line);
      if (gathering.lines.length >= maxGathered) void drain();
    },
    commit,
    close: async () => {
      await commit();
      await handle.close();
    },
  };
}

function writeFailure(code: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return 'the disk is full: the journal cannot be written; make room and go on with --resume';
  }
  return `the journal cannot be written (${code}); go on with --resume`;
}
