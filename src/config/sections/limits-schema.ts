/** What the config says of limits by caller. */
import type { z } from 'zod';
import { decimal, flag, integer, map } from './scalars.js';

export const limitsSchema = map({
  requests_per_second: decimal(0.01, 100_000)
    .nullable()
    .prefault(null)
    .describe('Requests of one caller in a second, on average. More are answered 429.'),
  burst: integer(1, 1_000_000)
    .optional()
    .describe('Requests that it may send at once. Default: `requests_per_second`, rounded up.'),
  max_in_flight: integer(1, 1_000_000)
    .nullable()
    .prefault(null)
    .describe('Requests of one caller under way at a time, in each process. More are answered 429.'),
  shared: flag()
    .prefault(false)
    .describe(
      'Whether `requests_per_second` is one limit for all proxies that share the store; else each process has its own.',
    ),
});

export type LimitsFile = z.output<typeof limitsSchema>;
