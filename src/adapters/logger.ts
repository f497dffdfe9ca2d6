import { pino, type DestinationStream, type Logger as PinoLogger } from 'pino';
import type { LogLevel } from '../config/compiled.js';
import { oneLine } from '../decision/one-line.js';
import type { Log, LogFields, RequestRecord } from '../ports.js';
import { createLogStream, type LogStream } from './log-stream.js';
import { requestMembers } from './request-line.js';

export interface Logger {
  /** Events of the process. */
  readonly log: Log;
  /** One line per request, at level `info`. */
  readonly request: (record: RequestRecord) => void;
  /** Takes effect with the next line. */
  readonly setLevel: (level: LogLevel) => void;
  /** Writes out what is waiting. Happens by itself when the process exits. Never throws. */
  readonly flush: () => void;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  /** Takes whole lines; standard output unless given. */
  readonly destination?: DestinationStream;
}

/** Writes JSON lines: `level` by name, `time` in RFC 3339 with milliseconds, the event's fields, `msg`. */
export function createLogger({ level, destination }: LoggerOptions): Logger {
  const stream = destination === undefined ? standardOutput() : { write: destination.write.bind(destination), flush: () => undefined };
  const timestamp = createTimestamp();
  const logger = pino({
    level,
    base: null,
    timestamp,
    formatters: { level: (label) => ({ level: label }) },
    // Fields are scalars: a serializer would only come into play for an object that got past the types.
    serializers: {},
  }, {
    write: (line) => {
      stream.write(oneLine(line));
    },
  });
  return {
    log: { debug: event(logger, 'debug'), info: event(logger, 'info'), warn: event(logger, 'warn'), error: event(logger, 'error') },
    request: (record) => {
      // As pino would write it, at a fifth of the cost: most lines are these.
      if (logger.isLevelEnabled('info')) stream.write(`{"level":"info"${timestamp()}${requestMembers(record, withoutTokens)}}\n`);
    },
    setLevel: (next) => {
      logger.level = next;
    },
    flush: stream.flush,
  };
}

/** Makes the time's member of a line. Its date and second are made once a second: that is most of the cost. */
function createTimestamp(): () => string {
  let second = NaN;
  let text = '';
  return () => {
    const nowMs = Date.now();
    const nowS = Math.floor(nowMs / 1000);
    if (nowS !== second) {
      second = nowS;
      text = new Date(nowMs).toISOString().slice(0, -'000Z'.length);
    }
    return `,"time":"${text}${String(nowMs % 1000).padStart(3, '0')}Z"`;
  };
}

function standardOutput(): LogStream {
  const stream = createLogStream(1);
  process.once('exit', stream.flush);
  return stream;
}

function event(logger: PinoLogger, level: LogLevel): (message: string, fields?: LogFields) => void {
  return (message, fields) => {
    if (logger.isLevelEnabled(level)) logger[level](fields === undefined ? {} : safeFields(fields), withoutTokens(message));
  };
}

const secretName = /authorization|cookie|headers|passw|secret|credential|api_?key|^token$|query|body/i;

/** What the callers promise is held once more: no field named like a secret, no object, no text with a token in it. */
function safeFields(fields: LogFields): Record<string, unknown> {
  const safe: Record<string, unknown> = {};
  for (const [name, value] of Object.entries<unknown>(fields)) {
    safe[name] = secretName.test(name) ? '[redacted]' : safeValue(value);
  }
  return safe;
}

function safeValue(value: unknown): unknown {
  if (typeof value === 'string') return withoutTokens(value);
  if (Array.isArray(value)) return value.map(safeValue);
  return typeof value === 'object' && value !== null ? '[redacted]' : value;
}

/** A compact JWS (RFC 7515 §7.1): its header begins with `{"`, which is `eyJ` in base64url. */
const token = /eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)*/g;

/** What a URL tells of its user: `//user:password@`. */
const userInfo = /\/\/[^/\s@]+@/g;

function withoutTokens(text: string): string {
  const tokenless = text.includes('eyJ') ? text.replace(token, '[redacted]') : text;
  return tokenless.includes('@') ? tokenless.replace(userInfo, '//[redacted]@') : tokenless;
}
