import type { JsonObject } from '../../lib/strict-json.js';

/** What an issuer said of a token. Times are those of the monotonic clock. */
interface RememberedAnswer {
  /** `null` where the token was not active. */
  readonly claims: JsonObject | null;
  /** Until then it is believed. Afterwards it tells only that the token was a good one. */
  readonly freshUntilMs: number;
}

/** Answers by the digests of their tokens: no token stays in memory. */
interface AnswerCache {
  readonly get: (digest: string) => RememberedAnswer | null;
  /** @param bytes of the answer as it came. */
  readonly set: (digest: string, answer: RememberedAnswer, bytes: number) => void;
  readonly counts: () => { readonly active: number; readonly inactive: number };
}

/** Of answers with `active`, besides their text, which takes about twice its bytes once it is read. */
const entryBytes = 500;

/** What all active tokens of an issuer may take. */
const maxActiveBytes = 16 * 1024 * 1024;

/** Tokens that are remembered as not active: 2 MiB. */
const maxInactive = 8_192;

/**
 * Keeps answers within bounds; what was set longest ago leaves first. Those that were not active have a room of their
 * own, so that made-up tokens drive out no good one.
 */
export function createAnswerCache(limits = { activeBytes: maxActiveBytes, inactive: maxInactive }): AnswerCache {
  const active = new Map<string, { readonly answer: RememberedAnswer; readonly bytes: number }>();
  const inactive = new Map<string, RememberedAnswer>();
  let bytes = 0;

  function dropActive(digest: string): void {
    bytes -= active.get(digest)?.bytes ?? 0;
    active.delete(digest);
  }

  return {
    get: (digest) => active.get(digest)?.answer ?? inactive.get(digest) ?? null,
    set: (digest, answer, answerBytes) => {
      dropActive(digest);
      inactive.delete(digest);
      if (answer.claims === null) {
        inactive.set(digest, answer);
        const [oldest = ''] = inactive.keys();
        if (inactive.size > limits.inactive) inactive.delete(oldest);
        return;
      }
      const size = entryBytes + 2 * answerBytes;
      active.set(digest, { answer, bytes: size });
      bytes += size;
      for (const [oldest] of active) {
        if (bytes <= limits.activeBytes) return;
        dropActive(oldest);
      }
    },
    counts: () => ({ active: active.size, inactive: inactive.size }),
  };
}
