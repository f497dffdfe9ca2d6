/** What a caller of the calling side is told of the attempts that its request took. */
import type { NoRetryReason } from './retry.js';

export interface AttemptsMade {
  /** How often it was sent, or tried to be; 0 where something was amiss before. */
  readonly count: number;
  /** Why it was not sent once more although it failed; `null` where there was no reason to. */
  readonly notRetried: Exclude<NoRetryReason, 'final'> | null;
  /** The key that it went out with, where the caller gave none: with it the caller may ask again. */
  readonly key: string | null;
}

const countName = 'X-Sallyport-Attempts';
const notRetriedName = 'X-Sallyport-Not-Retried';
const keyName = 'X-Sallyport-Idempotency-Key';

const names: ReadonlySet<string> = new Set([countName, notRetriedName, keyName].map((name) => name.toLowerCase()));

const connection = 'connection';

/** Almost no name of a response is as long as one of these: the others are not looked at any closer. */
const lengths: ReadonlySet<number> = new Set([connection, ...names].map(({ length }) => length));

/** Names and values in turn. */
export function attemptHeaders(made: AttemptsMade): readonly string[] {
  const headers: string[] = [];
  pushAttempts(headers, made);
  return headers;
}

function pushAttempts(headers: string[], { count, notRetried, key }: AttemptsMade): void {
  headers.push(countName, String(count));
  if (notRetried !== null) headers.push(notRetriedName, notRetried);
  if (key !== null) headers.push(keyName, key);
}

/** A target's header section with what is to be said of the attempts, and without what it says of such itself. */
export function withAttempts(rawHeaders: readonly string[], made: AttemptsMade): string[] {
  const kept: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const lowerCase = lengths.has(name.length) ? name.toLowerCase() : '';
    if (lowerCase === connection) kept.push(name, withoutOurs(value));
    else if (!names.has(lowerCase)) kept.push(name, value);
  }
  pushAttempts(kept, made);
  return kept;
}

/** Options of `Connection` (RFC 9110 §7.6.1) but for those that would take away what is said here. */
function withoutOurs(options: string): string {
  // What almost every response says.
  if (options === 'keep-alive') return options;
  return options
    .split(',')
    .filter((option) => !names.has(option.trim().toLowerCase()))
    .join(',');
}
