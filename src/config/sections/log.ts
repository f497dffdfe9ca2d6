/** The section that says what is logged. */
import { reloaded } from '../schema/key-changes.js';
import { flag, integer, map, word } from '../schema/scalars.js';
import { section } from '../schema/section.js';

const logSchema = map({
  level: word('debug', 'info', 'warn', 'error').prefault('info').describe('Least severity that is logged.'),
  client_address: flag()
    .prefault(true)
    .describe(
      'Whether the line of a request names its client: the other end of the connection or, behind `listen.trust_forwarded`, whom ' +
        '`X-Forwarded-For` names.',
    ),
  user_agent: flag().prefault(true).describe('Whether it has the start of the `User-Agent`.'),
  refusals_per_second: integer(1, 1_000_000)
    .nullable()
    .prefault(100)
    .describe(
      'Lines for refusals of one reason and caller in a second; more are counted and told of in one line. null: every one has its line.',
    ),
});
export const log = section({
  schema: logSchema.prefault({}).describe('What is logged.'),
  compile: (file) => ({
    log: {
      level: file.level,
      clientAddress: file.client_address,
      userAgent: file.user_agent,
      /** Lines for refusals of one reason and caller in a second; `null` for all of them. */
      refusalsPerSecond: file.refusals_per_second,
    },
  }),
  keys: { level: reloaded, client_address: reloaded, user_agent: reloaded, refusals_per_second: reloaded },
});
