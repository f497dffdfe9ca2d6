import { write, writeSync } from 'node:fs';

/** Takes log lines, each with its line end. */
export interface LogStream {
  /** `isRefusal`: one that matters less than others, and is the first to be dropped. */
  readonly write: (line: string, isRefusal?: boolean) => void;
  /** Writes out what is waiting before it returns, as far as the reader lets it. Never throws. */
  readonly flush: () => void;
}

/** Characters that wait for a reader who does not read. Lines beyond it are dropped and counted. */
const maxWaiting = 8 * 1024 * 1024;
/** Refusals, which anybody can cause, leave the rest of that room to requests that were let through. */
const maxWaitingRefusals = maxWaiting / 2;

/** Lines are written together, since the system call costs more than making one. */
const batchLength = 64 * 1024;
const maxDelayMs = 100;

/** A pipe that is full and does not block is tried again after this. */
const retryMs = 20;
/** How long a flush leaves a thread that is writing: it cannot be asked, and its lines come first. */
const threadPauseMs = 250;
/** Attempts of a flush at such a pipe. */
const maxRetries = 50;

/**
 * Writes lines to a file descriptor without ever waiting for its reader: a log collector that hangs must not hang the
 * proxy. pino's own destination does that too, but its flush at exit runs for ever once the reader has left.
 */
export function createLogStream(descriptor: number): LogStream {
  let waiting: string[] = [];
  let waitingLength = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | null = null;
  /** The batch that is being written: by a thread, or again after a pause. */
  let batch: { readonly bytes: Buffer; readonly lines: number; offset: number; retry: NodeJS.Timeout | null } | null = null;
  let readerLeft = false;

  function take(line: string, isRefusal = false): void {
    if (readerLeft) return;
    if (waitingLength + line.length > (isRefusal ? maxWaitingRefusals : maxWaiting)) {
      dropped += 1;
      return;
    }
    waiting.push(line);
    waitingLength += line.length;
    sendSoon();
  }

  function sendSoon(): void {
    if (batch !== null || waitingLength === 0) return;
    if (waitingLength >= batchLength) send();
    else timer ??= setTimeout(send, maxDelayMs).unref();
  }

  function send(): void {
    batch = { bytes: takeWaiting(), lines: waiting.length, offset: 0, retry: null };
    waiting = [];
    proceed();
  }

  function takeWaiting(): Buffer {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (dropped > 0) waiting.push(notice(dropped));
    dropped = 0;
    waitingLength = 0;
    return Buffer.from(waiting.join(''));
  }

  function proceed(): void {
    const current = batch;
    if (current === null) return;
    current.retry = null;
    write(descriptor, current.bytes, current.offset, null, null, (error, written) => {
      if (error !== null) {
        if (isBusy(error)) current.retry = setTimeout(proceed, retryMs).unref();
        else fail(error, current.lines);
        return;
      }
      current.offset += written;
      if (current.offset < current.bytes.length) {
        proceed();
        return;
      }
      batch = null;
      sendSoon();
    });
  }

  function fail(error: unknown, lines: number): void {
    batch = null;
    // A disk may have room again later; a reader who closed the pipe does not come back.
    readerLeft = codeOf(error) === 'EPIPE';
    if (readerLeft) {
      waiting = [];
      return;
    }
    dropped += lines;
    sendSoon();
  }

  function flush(): void {
    if (readerLeft) return;
    const parts: Buffer[] = [];
    let lines = 0;
    if (batch !== null && batch.retry !== null) {
      clearTimeout(batch.retry);
      parts.push(batch.bytes.subarray(batch.offset));
      lines = batch.lines;
      batch = null;
    } else if (batch !== null) {
      pause(threadPauseMs);
    }
    parts.push(takeWaiting());
    lines += waiting.length;
    waiting = [];
    if (!writeAll(descriptor, Buffer.concat(parts))) dropped += lines;
  }

  return { write: take, flush };
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

function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error ? String(error.code) : null;
}
