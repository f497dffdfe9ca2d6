import { fileFailure } from '../../lib/errors.js';
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { accept, refuse, type Result } from '../../lib/result.js';

/** One reading of the input from its start. */
interface Pass {
  readonly chunks: AsyncIterable<Buffer>;
  /** SHA-256 of the whole file, hex; `null` until it was read to its end. */
  readonly digest: () => string | null;
  readonly bytesRead: () => number;
}

/** A file of users, read as often as needed without ever being held. */
export interface InputFile {
  readonly bytes: number;
  readonly read: () => Pass;
  readonly close: () => Promise<void>;
}

/** Opening a FIFO must not wait for its other end. */
const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

const chunkBytes = 256 * 1024;

/**
 * Opens the input. It stays open for the whole import: a file that takes its place meanwhile is another file. Refuses
 * in words that follow the path.
 */
export async function openInput(path: string): Promise<Result<InputFile, string>> {
  let file: FileHandle;
  try {
    file = await open(path, flags);
  } catch (error) {
    return refuse(fileFailure(error, 'is a symbolic link'));
  }
  const stats = await file.stat();
  if (!stats.isFile()) {
    await file.close();
    return refuse(stats.isDirectory() ? 'is a directory' : 'is no regular file: an import reads it twice');
  }
  return accept({ bytes: stats.size, read: () => passOf(file), close: () => file.close() });
}

/** SHA-256 of the whole file, hex. Refuses in words that follow the path. */
export async function digestOf(file: InputFile): Promise<Result<string | null, string>> {
  const pass = file.read();
  const chunks = pass.chunks[Symbol.asyncIterator]();
  try {
    while ((await chunks.next()).done !== true);
  } catch (error) {
    return refuse(fileFailure(error, 'is a symbolic link'));
  }
  return accept(pass.digest());
}

function passOf(file: FileHandle): Pass {
  const hash = createHash('sha256');
  let digest: string | null = null;
  let position = 0;
  async function* chunks(): AsyncGenerator<Buffer, void, undefined> {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, position);
      if (bytesRead === 0) break;
      position += bytesRead;
      const chunk = buffer.subarray(0, bytesRead);
      hash.update(chunk);
      yield chunk;
    }
    digest = hash.digest('hex');
  }
  return { chunks: chunks(), digest: () => digest, bytesRead: () => position };
}
