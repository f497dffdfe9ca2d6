/** What the config says of limits by caller. */
import type { z } from 'zod';
import type { ParsedConfig } from '../load/parse-sections.js';
import { nameOf, type Report } from '../load/report.js';
import { isMap, type Path } from '../load/source-tree.js';
import { saidByAnother } from '../schema/key-changes.js';
import { decimal, flag, integer, map } from '../schema/scalars.js';
import { section } from '../schema/section.js';
import type { Limits } from '../../decision/route/policy.js';

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

type LimitsFile = z.output<typeof limitsSchema>;

export const limits = section({
  schema: limitsSchema
    .nullable()
    .prefault(null)
    .describe(
      'What each caller, by its subject, may ask of all routes together that have no `limits` of their own. See [limits.md](limits.md).',
    ),
  check: (config, report) => checkLimits(['limits'], config, report),
  // Routes without limits of their own have them.
  compile: (): object => ({}),
  keys: {
    requests_per_second: saidByAnother,
    burst: saidByAnother,
    shared: saidByAnother,
    max_in_flight: saidByAnother,
  },
});

/** Checks what routes say of limits, whether or not something else is wrong with a route. */
export function checkLimitsOfRoutes(parts: ParsedConfig, report: Report): void {
  for (const { path } of parts.routes) {
    const at = [...path, 'limits'];
    checkLimits(at, parts, report);
    if (isMap(parts.rawValue(at)) && parts.rawValue([...path, 'access']) === 'public') {
      report.keyError(
        at,
        `${nameOf(at)} stands beside ${nameOf(path)}.access: whose requests they are would not be known`,
        'a protected route',
      );
    }
  }
}

/** Checks what limits say together. */
function checkLimits(at: Path, parts: ParsedConfig, report: Report): void {
  const limits = parts.rawValue(at);
  if (!isMap(limits)) return;
  const has = (key: string): boolean => (limits[key] ?? null) !== null;
  const hasRate = has('requests_per_second');
  if (!hasRate && !has('max_in_flight')) {
    report.error(at, `${nameOf(at)} sets no limit`, 'requests_per_second, max_in_flight or both');
  }
  for (const key of ['burst', 'shared']) {
    if (!hasRate && has(key)) {
      report.keyError(
        [...at, key],
        `${nameOf([...at, key])} has no use without requests_per_second`,
        'requests_per_second beside it',
      );
    }
  }
  if (hasRate && limits['shared'] === true && parts.store?.value === null) {
    report.error(
      [...at, 'shared'],
      `${nameOf([...at, 'shared'])} needs a place to count together, and no store is configured`,
      'store.redis, or false',
    );
  }
}

/** What a caller may ask for; `route` names what counts for itself. */
export function compileLimits(file: LimitsFile | null, route: string | null): Limits | null {
  if (file === null) return null;
  const { requests_per_second: perSecond, burst, max_in_flight: maxInFlight, shared } = file;
  return {
    rate: perSecond === null ? null : { perSecond, burst: burst ?? Math.ceil(perSecond), shared },
    maxInFlight,
    route,
  };
}
