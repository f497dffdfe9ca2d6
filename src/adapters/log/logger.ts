import { pino, type DestinationStream, type Logger as PinoLogger } from 'pino';
import type { LogLevel, LogSettings } from '../../config/types.js';
import { oneLine } from '../../lib/text.js';
import type { Log, LogFields, Timers } from '../../ports/system.js';
import type { RequestRecord } from '../../ports/observability.js';
import { createLogStream, type LogStream } from './log-stream.js';
import { createRefusalLines, isRefusal } from './refusal-sampler.js';
import { createRequestMembers, levelOf } from './access-log-line.js';

export interface Logger {
  /** Events of the process. */
  readonly log: Log;
  /** Why the process ends. */
  readonly fatal: Log['error'];
  /**
   * One line per request, at `info` or, where something failed, at `warn` or `error`; many refusals of one kind share
   * one.
   */
  readonly request: (record: RequestRecord) => void;
  /** Takes effect with the next line. */
  readonly use: (settings: LogSettings) => void;
  /** Gives each line that is written, without its end, to somebody else as well. */
  readonly copyTo: (take: (line: string) => void) => void;
  /** Writes whole lines of another process, as they are. */
  readonly relay: (lines: string) => void;
  /** Writes out what is waiting. Happens by itself when the process exits. Never throws. */
  readonly flush: () => void;
}

export interface LoggerOptions extends LogSettings {
  readonly timers: Timers;
  /** Takes whole lines; standard output unless given. */
  readonly destination?: DestinationStream;
  /** Number of the worker that writes, for each of its lines; left out where one process serves. */
  readonly worker?: number;
}

/** Writes JSON lines: `level` by name, `time` in RFC 3339 with milliseconds, the event's fields, `msg`. */
export function createLogger({ timers, destination, worker, ...settings }: LoggerOptions): Logger {
  const written: LogStream =
    destination === undefined
      ? createLogStream(1)
      : {
          write: destination.write.bind(destination),
          writeAll: destination.write.bind(destination),
          flush: () => undefined,
        };
  let copy: ((line: string) => void) | null = null;
  const stream: Pick<LogStream, 'write' | 'flush'> = {
    write: (line, isRefusal) => {
      copy?.(line);
      written.write(line, isRefusal);
    },
    flush: () => written.flush(),
  };
  const timestamp = createTimestamp(worker);
  let membersOf = createRequestMembers(withoutTokens, settings);
  const logger = pino(
    {
      level: settings.level,
      base: null,
      timestamp,
      formatters: { level: (label) => ({ level: label }) },
      // Fields are scalars: a serializer would only come into play for an object that got past the types.
      serializers: {},
    },
    {
      write: (line) => {
        stream.write(oneLine(line));
      },
    },
  );
  const log: Log = {
    debug: event(logger, 'debug'),
    info: event(logger, 'info'),
    warn: event(logger, 'warn'),
    error: event(logger, 'error'),
  };
  const refusals = createRefusalLines({ perSecond: settings.refusalsPerSecond, log, timers });
  const flush = (): void => {
    refusals.flush();
    stream.flush();
  };
  if (destination === undefined) process.once('exit', flush);
  return {
    log,
    fatal: event(logger, 'fatal'),
    request: (record) => {
      const level = levelOf(record);
      if (!logger.isLevelEnabled(level) || !refusals.admits(record)) return;
      // As pino would write it, at a fifth of the cost: most lines are these.
      stream.write(`{"level":"${level}"${timestamp()}${membersOf(record)}}\n`, isRefusal(record));
    },
    use: (next) => {
      logger.level = next.level;
      membersOf = createRequestMembers(withoutTokens, next);
      refusals.setLimit(next.refusalsPerSecond);
    },
    copyTo: (take) => {
      copy = take;
    },
    relay: written.writeAll,
    flush,
  };
}

/**
 * Makes the time's member of a line, and that of the worker. Its date and second are made once a second: that is most
 * of the cost.
 */
function createTimestamp(worker: number | undefined): () => string {
  const end = worker === undefined ? 'Z"' : `Z","worker":${String(worker)}`;
  let second = NaN;
  let text = '';
  return () => {
    const nowMs = Date.now();
    const nowS = Math.floor(nowMs / 1000);
    if (nowS !== second) {
      second = nowS;
      text = new Date(nowMs).toISOString().slice(0, -'000Z'.length);
    }
    return `,"time":"${text}${String(nowMs % 1000).padStart(3, '0')}${end}`;
  };
}

function event(logger: PinoLogger, level: LogLevel | 'fatal'): (message: string, fields?: LogFields) => void {
  return (message, fields) => {
    if (logger.isLevelEnabled(level)) {
      logger[level](fields === undefined ? {} : safeFields(fields), withoutTokens(message));
    }
  };
}

const secretName = /authorization|cookie|headers|passw|secret|credential|api_?key|^token$|query|body/i;

/** What the callers promise is held once more: no field named like a secret, no object, no text with a token in it. */
export function safeFields(fields: LogFields): Record<string, unknown> {
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

/**
 * Where a compact JWS may be (RFC 7515 §7.1). It is looked for at the beginning of its characters only: else a path of
 * nothing but `eyJ` would be read again from each of them, 20 ms for each request of anybody.
 */
const dotted = /(?<![A-Za-z0-9_-])[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)+/g;

/** Its header begins with `{"`, which is `eyJ` in base64url. */
const tokenStart = 'eyJ';

/** What a URL tells of its user: `//user:password@`. */
const userInfo = /\/\/[^/\s@]+@/g;

export function withoutTokens(text: string): string {
  const tokenless = text.includes(tokenStart) ? text.replace(dotted, withoutToken) : text;
  return tokenless.includes('@') ? tokenless.replace(userInfo, '//[redacted]@') : tokenless;
}

function withoutToken(text: string): string {
  const start = text.indexOf(tokenStart);
  return start === -1 || text.indexOf('.', start) === -1 ? text : `${text.slice(0, start)}[redacted]`;
}
