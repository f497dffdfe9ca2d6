import { fileFailure } from '../../lib/errors.js';
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, statSync, type Stats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { accept, refuse, type Result } from '../../lib/result.js';

interface ReadLimits {
  readonly maxBytes: number;
}

/** Without `O_NONBLOCK`, opening a FIFO that nobody writes to waits for ever. */
const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Reads at least this much at a time: `/proc` files and the like say that they have no size. */
const chunkBytes = 16 * 1024;

/**
 * Reads a whole UTF-8 file, symbolic links followed. Refuses, in words that can follow the path, what is no regular
 * file, is larger than `maxBytes`, or is no text.
 */
export async function readText(path: string, limits: ReadLimits): Promise<Result<string, string>> {
  const bytes = await readBytes(path, limits);
  return bytes.ok ? decode([bytes.value]) : bytes;
}

/** Reads a whole file of any bytes, as `readText` does. */
export async function readBytes(path: string, limits: ReadLimits): Promise<Result<Buffer, string>> {
  try {
    // Before the file is opened, because opening a device can have effects; and again after, because it may have been
    // replaced.
    const before = refusedKind(await stat(path));
    if (before !== null) return refuse(before);
    const file = await open(path, flags);
    try {
      const after = refusedKind(await file.stat());
      if (after !== null) return refuse(after);
      const parts: Buffer[] = [];
      for (let total = 0; total <= limits.maxBytes;) {
        const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, null);
        if (bytesRead === 0) return accept(Buffer.concat(parts));
        parts.push(buffer.subarray(0, bytesRead));
        total += bytesRead;
      }
      return refuse(tooLarge(limits));
    } finally {
      await file.close();
    }
  } catch (error) {
    return refuse(fileFailure(error, 'is a link that leads to itself'));
  }
}

/** The same for code that may not wait, such as the reading of a config's placeholders. */
export function readTextSync(path: string, limits: ReadLimits): Result<string, string> {
  try {
    const before = refusedKind(statSync(path));
    if (before !== null) return refuse(before);
    const file = openSync(path, flags);
    try {
      const after = refusedKind(fstatSync(file));
      if (after !== null) return refuse(after);
      const parts: Buffer[] = [];
      for (let total = 0; total <= limits.maxBytes;) {
        const buffer = Buffer.allocUnsafe(chunkBytes);
        const bytesRead = readSync(file, buffer, 0, chunkBytes, null);
        if (bytesRead === 0) return decode(parts);
        parts.push(buffer.subarray(0, bytesRead));
        total += bytesRead;
      }
      return refuse(tooLarge(limits));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return refuse(fileFailure(error, 'is a link that leads to itself'));
  }
}

/** SHA-256 of a text that was read, in hex: the digest of the file's bytes. */
export function textDigest(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

function refusedKind(stats: Stats): string | null {
  if (stats.isFile()) return null;
  if (stats.isDirectory()) return 'is a directory';
  if (stats.isFIFO()) return 'is a FIFO, not a regular file';
  if (stats.isSocket()) return 'is a socket, not a regular file';
  return 'is a device, not a regular file';
}

function decode(parts: readonly Buffer[]): Result<string, string> {
  try {
    // With `ignoreBOM` a byte order mark stays in the text: whoever parses it decides, and the digest is the file's.
    return accept(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(parts)));
  } catch {
    return refuse('is not UTF-8 text');
  }
}

function tooLarge(limits: ReadLimits): string {
  return `is larger than ${String(limits.maxBytes)} bytes`;
}
