import { pino, type DestinationStream } from 'pino';

/** Lines that wait for a reader of standard output that does not read, bytes. Beyond it lines are dropped and counted. */
const maxWaitingBytes = 8 * 1024 * 1024;

/** Lines are written together: a system call for each would cost more than making it. */
const batchBytes = 4 * 1024;
const maxDelayMs = 100;

export interface LogStream extends DestinationStream {
  /** Writes out what is waiting. Never throws. */
  readonly flush: () => void;
}

/** Where log lines go: `destination`, or standard output, which is never waited for. */
export function createLogStream(destination?: DestinationStream): LogStream {
  if (destination !== undefined) {
    return {
      write: (line) => {
        destination.write(oneLine(line));
      },
      flush: () => undefined,
    };
  }
  let dropped = 0;
  const stdout = pino.destination({ dest: 1, sync: false, minLength: batchBytes, maxLength: maxWaitingBytes, periodicFlush: maxDelayMs });
  // A full disk or a reader that left must not end a proxy that can go on.
  stdout.on('error', () => undefined);
  stdout.on('drop', () => {
    dropped += 1;
  });
  stdout.on('drain', () => {
    if (dropped === 0) return;
    const count = dropped;
    dropped = 0;
    stdout.write(`${JSON.stringify({ level: 'warn', time: new Date().toISOString(), lines: count, msg: 'log lines were dropped' })}\n`);
  });
  return {
    write: (line) => {
      stdout.write(oneLine(line));
    },
    flush: () => {
      try {
        stdout.flushSync();
      } catch {
        // Standard output is gone: nobody is left to tell.
      }
    },
  };
}

/**
 * JSON escapes the controls below U+0020 only. DEL, the C1 controls, U+2028, U+2029 and the marks that reorder text
 * break or disguise lines in terminals and log viewers (CWE-117).
 */
const unsafe = /[\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const everyUnsafe = new RegExp(unsafe, 'g');

/** Outside strings a JSON line has only ASCII, so escapes are right wherever one of these stands. */
function oneLine(line: string): string {
  return unsafe.test(line) ? line.replace(everyUnsafe, escape) : line;
}

function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
