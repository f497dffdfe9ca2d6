import { codeOf } from '../../lib/errors.js';
import { openToOthers } from '../../lib/secret-file-access.js';
import { syncFolder } from '../../lib/files.js';
import { createReadStream } from 'node:fs';
import { lstat, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { lockFile } from './file-lock.js';
import { createJournal, type Journal } from './journal.js';
import type { Change, Records } from './records.js';

/** Why a data file cannot be used: `in_use` by another process, or `unusable` as it is. */
export class DataFileError extends Error {
  constructor(
    readonly kind: 'in_use' | 'unusable',
    message: string,
  ) {
    super(message);
    this.name = 'DataFileError';
  }
}

/** First line, which tells the file from others: a path that was mistyped must not cost somebody their file. */
const header = '{"format":"sallyport-core","version":1}';

/**
 * Reads a data file into the records, writes it anew without what is over, and keeps every change from then on. The
 * file is this process's alone until the journal is closed. Throws a `DataFileError` where it cannot be used, and the
 * system's errors.
 */
export async function openDataFile(path: string, records: Records, prune: () => void): Promise<Journal> {
  const release = await lockFile(path);
  if (release === null) throw new DataFileError('in_use', `${path} is in use by another process`);
  try {
    await load(path, records);
    prune();
    const file = await compact(path, records);
    const journal = createJournal(file);
    return {
      ...journal,
      close: async () => {
        try {
          await journal.close();
        } finally {
          await release();
        }
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

async function load(path: string, records: Records): Promise<void> {
  if (!(await exists(path))) return;
  let number = 0;
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    const lines = splitLines(Buffer.concat([rest, chunk]));
    rest = lines.rest;
    for (const line of lines.whole) {
      number += 1;
      if (number > 1) restore(path, number, line, records);
      else if (line !== header) throw notOurs(path);
    }
  }
  // A line without its end is what a process was writing when it was killed: nobody was told of it.
  if (number === 0 && !header.startsWith(rest.toString('utf8'))) throw notOurs(path);
}

/** It holds password hashes and private keys. */
async function exists(path: string): Promise<boolean> {
  const found = await lstat(path).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  });
  if (found === null) return false;
  if (!found.isFile()) throw new DataFileError('unusable', `${path} is no regular file`);
  const problem = openToOthers(found.mode);
  if (problem !== null) throw new DataFileError('unusable', `${path} ${problem}`);
  return true;
}

function splitLines(bytes: Buffer): { readonly whole: readonly string[]; readonly rest: Buffer } {
  const end = bytes.lastIndexOf(0x0a);
  if (end < 0) return { whole: [], rest: bytes };
  return { whole: bytes.subarray(0, end).toString('utf8').split('\n'), rest: bytes.subarray(end + 1) };
}

function restore(path: string, number: number, line: string, records: Records): void {
  try {
    records.make(JSON.parse(line) as Change);
  } catch {
    throw new DataFileError('unusable', `${path}:${number}: is damaged; restore the file, or start with another one`);
  }
}

function notOurs(path: string): DataFileError {
  return new DataFileError('unusable', `${path} is no data file of the Core emulator`);
}

/** Writes everything into a new file and puts it in the place of the old one, in one step. */
async function compact(path: string, records: Records): Promise<FileHandle> {
  const fresh = `${path}.new`;
  // One that a kill left, or a link that somebody else put there, which would be followed.
  await rm(fresh, { force: true });
  const file = await open(fresh, 'wx', 0o600);
  try {
    await file.chmod(0o600);
    let lines = [header];
    for (const change of records.changes()) {
      lines.push(JSON.stringify(change));
      if (lines.length < maxLinesAtOnce) continue;
      await file.appendFile(`${lines.join('\n')}\n`);
      lines = [];
    }
    if (lines.length > 0) await file.appendFile(`${lines.join('\n')}\n`);
    await file.sync();
    await rename(fresh, path);
    await syncFolder(dirname(path));
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Some MiB at a time. */
const maxLinesAtOnce = 4096;
