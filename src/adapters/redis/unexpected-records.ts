import type { Clock, Log } from '../../ports/system.js';

/** Tells of records that are not as Sallyport writes them: damaged, another program's, or of another version. */
export interface OddRecords {
  readonly tell: (key: string, reason: string) => void;
}

/** Longest silence between two lines, milliseconds: a caller that tries again and again fills no log. */
const quietMs = 10_000;

export function createOddRecords({ clock, log }: { readonly clock: Clock; readonly log: Log }): OddRecords {
  let quietUntilMs = -Infinity;
  return {
    tell: (key, reason) => {
      const nowMs = clock.monotonic();
      if (nowMs < quietUntilMs) return;
      quietUntilMs = nowMs + quietMs;
      log.error('the store holds something that is not ours to touch: requests that meet it are answered 503', {
        key,
        reason,
      });
    },
  };
}
