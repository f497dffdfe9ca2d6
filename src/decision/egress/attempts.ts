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

/** Names and values in turn. */
export function attemptHeaders({ count, notRetried, key }: AttemptsMade): readonly string[] {
  const headers = [countName, String(count)];
  if (notRetried !== null) headers.push(notRetriedName, notRetried);
  if (key !== null) headers.push(keyName, key);
  return headers;
}

/** A target's header section with what is to be said of the attempts, and without what it says of such itself. */
export function withAttempts(rawHeaders: readonly string[], made: AttemptsMade): string[] {
  const kept: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const lowerCase = name.toLowerCase();
    const value = rawHeaders[i + 1] ?? '';
    if (lowerCase === 'connection') kept.push(name, withoutOurs(value));
    else if (!names.has(lowerCase)) kept.push(name, value);
  }
  kept.push(...attemptHeaders(made));
  return kept;
}

/** Options of `Connection` (RFC 9110 §7.6.1) but for those that would take away what is said here. */
function withoutOurs(options: string): string {
  return options
    .split(',')
    .filter((option) => !names.has(option.trim().toLowerCase()))
    .join(',');
}
