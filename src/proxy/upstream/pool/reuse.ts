/** When a connection to the upstream may carry another request. */
import type { UpstreamSettings } from '../../../config/types.js';
import type { ConnectionTrust } from '../http1/connection.js';
import type { RestPeriods } from './idle-connections.js';

/** What the config says of it. */
type ReuseRules = Pick<UpstreamSettings, 'reuse' | 'readsBodies'>;

/** What counts of a request. */
interface ReusedRequest {
  readonly method: string;
  /** Anything but `null` goes out behind the head. */
  readonly body: unknown;
}

/**
 * How long a connection has to be silent after a response before it carries the next request; milliseconds. Whatever an
 * upstream sends beyond its response comes right behind it, or later by no more than its threads wait for each other.
 */
const someRest: RestPeriods = { usualMs: 5, leastMs: 1 };
const noRest: RestPeriods = { usualMs: 0, leastMs: 0 };

/** Methods whose handlers read the body: those that have one by what they mean (RFC 9110 §9.3). */
const readingMethods: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

export function restPeriodsOf(rules: ReuseRules): RestPeriods {
  return trustOf(rules).ends ? noRest : someRest;
}

/** What an upstream is trusted with. */
export function trustOf({ reuse }: Pick<ReuseRules, 'reuse'>): ConnectionTrust {
  return { ends: reuse === 'always' || reuse === 'unless_refused', refusals: reuse !== 'unless_refused' };
}

/**
 * Whether a request gets a connection of its own: one that carried none before, carries none after it, and of which the
 * upstream is told so.
 *
 * - HEAD: servers that leave it to the application to omit the body may send one.
 * - With a body: what an upstream leaves unread of it would be the next request to it, with any identity that a caller
 *   wrote there. Told that no request follows, it does not look for one. The bodies of GET and its like are left unread
 *   even by upstreams that read all others.
 */
export function needsOwnConnection({ method, body }: ReusedRequest, { reuse, readsBodies }: ReuseRules): boolean {
  if (reuse !== 'safe') return reuse === 'never';
  return method === 'HEAD' || (body !== null && !(readsBodies && readingMethods.has(method)));
}
