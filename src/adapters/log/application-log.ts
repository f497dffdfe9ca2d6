import type { RequestLineSettings } from '../../config/types.js';
import type { RequestRecord } from '../../ports/observability.js';
import type { Log, LogFields } from '../../ports/system.js';
import { createRequestMembers, levelOf } from './access-log-line.js';
import { safeFields, withoutTokens } from './logger.js';

/** As much of an application's logger as is used: pino's, or one like it. */
type ApplicationLogger = Readonly<
  Record<'debug' | 'info' | 'warn' | 'error', (fields: object, message: string) => void>
>;

/** Writes events to an application's own logger. */
export function createApplicationLog(logger: ApplicationLogger): Log {
  const event =
    (level: keyof Log) =>
    (message: string, fields?: LogFields): void =>
      logger[level](fields === undefined ? {} : safeFields(fields), withoutTokens(message));
  return { debug: event('debug'), info: event('info'), warn: event('warn'), error: event('error') };
}

/** Makes what writes one line for each request to the application's logger of that request. */
export function createApplicationRequestLog(
  settings: RequestLineSettings,
): (record: RequestRecord, logger: ApplicationLogger) => void {
  const membersOf = createRequestMembers(withoutTokens, settings);
  return (record, logger) => {
    // The same members as in a line of ours, and nothing else of the record.
    const members = JSON.parse(`{${membersOf(record).slice(1)}}`) as object;
    logger[levelOf(record)](members, 'decided');
  };
}
