import { codeOf } from '../../lib/errors.js';
import { write, writeSync } from 'node:fs';

/** Takes log lines, each with its line end. */
export interface LogStream {
  /** `isRefusal`: one that matters less than others, and is the first to be dropped. */
  readonly write: (line: string, isRefusal?: boolean) => void;
  /** Takes several whole lines of another process. */
  readonly writeAll: (text: string) => void;
  /** Writes out what is waiting before it returns, as far as the reader lets it. Never throws. */
  readonly flush: () => void;
}

/** Bytes that wait for a reader who does not read. Lines beyond it are dropped and counted. */
const maxWaiting = 8 * 1024 * 1024;
/** Refusals, which anybody can cause, leave the rest of that room to requests that were let through. */
const maxWaitingRefusals = maxWaiting / 2;

/** Lines are written together, since the system call costs more than making one. */
const chunkBytes = 64 * 1024;
const maxDelayMs = 100;

/** A pipe that is full and does not block is tried again after this. */
const retryMs = 20;
/** How long a flush leaves a thread that is writing: it cannot be asked, and its lines come first. */
const threadPauseMs = 250;
/** Attempts of a flush at such a pipe. */
const maxRetries = 50;

/** Most bytes that UTF-8 has for one unit of a string's length. */
const maxBytesPerUnit = 3;

/** Lines, encoded one behind the other. */
interface Chunk {
  readonly bytes: Buffer;
  used: number;
  lines: number;
}

/**
 * Writes lines to a file descriptor without ever waiting for its reader: a log collector that hangs must not hang the
 * proxy. pino's own destination does that too, but its flush at exit runs for ever once the reader has left.
 *
 * A line is encoded when it comes: its pieces are in the processor's caches then, and none of them is left to the
 * collector.
 */
export function createLogStream(descriptor: number): LogStream {
  let filling = newChunk();
  /** Those that wait behind the one that is being written. */
  const full: Chunk[] = [];
  /** Written, and good to be filled again. */
  let spare: Chunk | null = null;
  let waitingBytes = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | null = null;
  /** What is being written: by a thread, or again after a pause. */
  let batch: { readonly chunk: Chunk; offset: number; retry: NodeJS.Timeout | null } | null = null;
  let readerLeft = false;

  function take(line: string, isRefusal = false): void {
    if (readerLeft) return;
    if (waitingBytes + line.length > (isRefusal ? maxWaitingRefusals : maxWaiting)) {
      dropped += 1;
      return;
    }
    append(line);
    sendSoon();
  }

  function takeAll(text: string): void {
    if (readerLeft) return;
    const lines = text.split('\n').length - 1;
    if (waitingBytes + text.length > maxWaiting) {
      dropped += lines;
      return;
    }
    append(text, lines);
    sendSoon();
  }

  function append(line: string, lines = 1): void {
    const most = line.length * maxBytesPerUnit;
    if (filling.used + most > filling.bytes.length) close();
    if (most > filling.bytes.length) {
      const bytes = Buffer.from(line);
      full.push({ bytes, used: bytes.length, lines });
      waitingBytes += bytes.length;
      return;
    }
    const length = filling.bytes.write(line, filling.used);
    filling.used += length;
    filling.lines += lines;
    waitingBytes += length;
  }

  /** Goes on in another chunk. */
  function close(): void {
    if (filling.used === 0) return;
    full.push(filling);
    filling = spare ?? newChunk();
    spare = null;
  }

  function sendSoon(): void {
    if (batch !== null || waitingBytes === 0) return;
    if (full.length > 0) send();
    else timer ??= setTimeout(send, maxDelayMs).unref();
  }

  function send(): void {
    tellDropped();
    if (full.length === 0) close();
    const chunk = full.shift();
    if (chunk === undefined) return;
    stopTimer();
    waitingBytes -= chunk.used;
    batch = { chunk, offset: 0, retry: null };
    proceed();
  }

  /** Behind the lines before which there was room. */
  function tellDropped(): void {
    if (dropped > 0) append(notice(dropped));
    dropped = 0;
  }

  function proceed(): void {
    const current = batch;
    if (current === null) return;
    const { chunk } = current;
    current.retry = null;
    write(descriptor, chunk.bytes, current.offset, chunk.used - current.offset, null, (error, written) => {
      if (error !== null) {
        if (isBusy(error)) current.retry = setTimeout(proceed, retryMs).unref();
        else fail(error, chunk);
        return;
      }
      current.offset += written;
      if (current.offset < chunk.used) {
        proceed();
        return;
      }
      batch = null;
      recycle(chunk);
      sendSoon();
    });
  }

  function recycle(chunk: Chunk): void {
    if (chunk.bytes.length !== chunkBytes) return;
    chunk.used = 0;
    chunk.lines = 0;
    spare = chunk;
  }

  function fail(error: unknown, { lines }: Chunk): void {
    batch = null;
    // A disk may have room again later; a reader who closed the pipe does not come back.
    readerLeft = codeOf(error) === 'EPIPE';
    if (readerLeft) forget();
    else {
      dropped += lines;
      sendSoon();
    }
  }

  function forget(): void {
    full.length = 0;
    filling = newChunk();
    waitingBytes = 0;
    stopTimer();
  }

  function flush(): void {
    if (readerLeft) return;
    const parts: Buffer[] = [];
    let lines = 0;
    if (batch !== null && batch.retry !== null) {
      clearTimeout(batch.retry);
      parts.push(batch.chunk.bytes.subarray(batch.offset, batch.chunk.used));
      lines = batch.chunk.lines;
      batch = null;
    } else if (batch !== null) {
      pause(threadPauseMs);
    }
    tellDropped();
    close();
    for (const { bytes, used, lines: more } of full) {
      parts.push(bytes.subarray(0, used));
      lines += more;
    }
    if (!writeAll(descriptor, Buffer.concat(parts))) dropped += lines;
    forget();
  }

  function stopTimer(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
  }

  return { write: take, writeAll: takeAll, flush };
}

function newChunk(): Chunk {
  return { bytes: Buffer.allocUnsafeSlow(chunkBytes), used: 0, lines: 0 };
}

/** Tells whether everything was written. */
function writeAll(descriptor: number, bytes: Buffer): boolean {
  let offset = 0;
  for (let retries = 0; offset < bytes.length && retries < maxRetries;) {
    try {
      offset += writeSync(descriptor, bytes, offset);
    } catch (error) {
      if (!isBusy(error)) return false;
      retries += 1;
      pause(retryMs);
    }
  }
  return offset === bytes.length;
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function notice(lines: number): string {
  return `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), lines, msg: 'log lines were dropped' })}\n`;
}

function isBusy(error: unknown): boolean {
  return codeOf(error) === 'EAGAIN' || codeOf(error) === 'EBUSY';
}
