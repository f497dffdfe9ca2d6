import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { pathIn } from '../../../lib/files.js';
import { readLines } from '../../../adapters/files/lines.js';
import { codeOf, fileFailure } from '../../../lib/errors.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import { inputArgument } from '../../config/choose.js';
import type { Io } from '../../io.js';
import { announceInput } from '../../stdin.js';

/** How often somebody who waits is told how far it is. */
const progressMs = 5_000;
const chunkBytes = 256 * 1024;

/** RFC 1952 §2.3.1: how every member begins. */
const gzipMagic = Buffer.from([0x1f, 0x8b]);

interface Place {
  readonly log: string;
  readonly bytes: number | null;
}

/**
 * Passes each line of the logs on, one after the other, holding one line at most; `null` is one longer than `maxBytes`.
 * Says on standard error how far it is. Refuses a log that cannot be read to its end, in words that name it.
 */
export async function readLogs(
  logs: readonly string[],
  maxBytes: number,
  io: Io,
  add: (line: Buffer | null) => void,
): Promise<Result<null, string>> {
  const places: Place[] = [];
  for (const log of logs) {
    const place = await placeOf(log, io);
    if (!place.ok) return refuse(`${log}: ${place.error}`);
    places.push(place.value);
  }
  const total = places.reduce<number | null>(
    (sum, { bytes }) => (sum === null || bytes === null ? null : sum + bytes),
    0,
  );
  const progress = createProgress(total, io);
  for (const { log } of places) {
    try {
      for await (const { bytes } of readLines(unpacked(log, io, progress.read), maxBytes)) {
        if (bytes?.length === 0) continue;
        add(bytes);
        progress.line();
      }
    } catch (error) {
      return refuse(
        `${log}: ${codeOf(error).startsWith('Z_') ? 'is damaged, or cut off' : fileFailure(error, 'is a symbolic link')}`,
      );
    }
  }
  progress.end();
  return accept(null);
}

async function placeOf(log: string, io: Io): Promise<Result<Place, string>> {
  if (log === inputArgument) {
    announceInput('the log', io);
    return accept({ log, bytes: null });
  }
  try {
    const stats = await stat(pathIn(io, log));
    if (stats.isDirectory()) return refuse('is a directory');
    return accept({ log, bytes: stats.isFile() ? stats.size : null });
  } catch (error) {
    return refuse(fileFailure(error, 'is a symbolic link'));
  }
}

/** The bytes of a log; of one that begins like gzip, those that it packs. */
async function* unpacked(
  log: string,
  io: Io,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer, void, undefined> {
  const source = log === inputArgument ? io.stdin : createReadStream(pathIn(io, log), { highWaterMark: chunkBytes });
  const chunks = counted(source as AsyncIterable<Buffer | string>, onRead);
  let start = Buffer.alloc(0);
  while (start.length < gzipMagic.length) {
    const next = await chunks.next();
    if (next.done === true) break;
    start = Buffer.concat([start, next.value]);
  }
  const whole = joined(start, chunks);
  if (!start.subarray(0, gzipMagic.length).equals(gzipMagic)) yield* whole;
  else {
    const packed = Readable.from(whole, { objectMode: false });
    const gunzip = createGunzip({ chunkSize: chunkBytes });
    packed.once('error', (error) => gunzip.destroy(error));
    yield* packed.pipe(gunzip) as AsyncIterable<Buffer>;
  }
}

async function* counted(
  source: AsyncIterable<Buffer | string>,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of source) {
    const bytes = Buffer.from(chunk);
    onRead(bytes.length);
    yield bytes;
  }
}

async function* joined(start: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  yield start;
  yield* rest;
}

interface Progress {
  readonly read: (bytes: number) => void;
  readonly line: () => void;
  readonly end: () => void;
}

function createProgress(total: number | null, io: Io): Progress {
  let bytes = 0;
  let lines = 0;
  let told = false;
  let nextMs = Date.now() + progressMs;
  const tell = (): void => {
    const share = total === null || total === 0 ? '' : ` of ${mebibytes(total)}`;
    io.stderr(`${String(lines)} lines, ${mebibytes(bytes)}${share}\n`);
  };
  return {
    read: (count) => {
      bytes += count;
      if (Date.now() < nextMs) return;
      nextMs = Date.now() + progressMs;
      told = true;
      tell();
    },
    line: () => {
      lines += 1;
    },
    end: () => {
      if (told) tell();
    },
  };
}

function mebibytes(bytes: number): string {
  return `${String(Math.round(bytes / 1024 / 1024))} MiB`;
}
