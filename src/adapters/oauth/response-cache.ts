import type { JsonObject } from '../../lib/strict-json.js';

/** What an issuer said of a token. Times are those of the monotonic clock. */
interface RememberedResponse {
  /** `null` where the token was not active. */
  readonly claims: JsonObject | null;
  /** Until then it is believed. Afterwards it tells only that the token was a good one. */
  readonly freshUntilMs: number;
}

/** Responses by the digests of their tokens: no token stays in memory. */
interface ResponseCache {
  readonly get: (digest: string) => RememberedResponse | null;
  /** @param bytes that the claims take in memory. */
  readonly set: (digest: string, response: RememberedResponse, bytes: number) => void;
  readonly counts: () => { readonly active: number; readonly inactive: number };
  /** Forgets everything and leaves its share to the others. */
  readonly close: () => void;
}

/** What the active tokens of all issuers may take together. */
export interface CacheBudget {
  /**
   * Takes part in it until the result is called. `onShare` hears how many bytes it may take, now and whenever that
   * changes.
   */
  readonly join: (onShare: (bytes: number) => void) => () => void;
}

/**
 * Of a response besides its claims, rounded up: the entry, the digest, its place in the table, what its text leaves
 * unused.
 */
const entryBytes = 600;

/** What the active tokens of all issuers may take, and those of one of them. */
export const maxActiveBytes = { all: 32 * 1024 * 1024, one: 16 * 1024 * 1024 };

/** Tokens that are remembered as not active: 2 MiB. */
const maxInactive = 8_192;

/** Shares the room out equally, so that one issuer's long responses take none of what another's need. */
export function createCacheBudget(limits = maxActiveBytes): CacheBudget {
  const members = new Set<(bytes: number) => void>();
  const share = (): void => {
    for (const onShare of members) onShare(Math.min(limits.one, Math.floor(limits.all / members.size)));
  };
  return {
    join: (onShare) => {
      members.add(onShare);
      share();
      return () => {
        if (members.delete(onShare)) share();
      };
    },
  };
}

/**
 * Keeps responses within bounds; what was set longest ago leaves first. Those that were not active have a room of their
 * own, so that made-up tokens drive out no good one.
 */
export function createResponseCache(budget: CacheBudget, mostInactive = maxInactive): ResponseCache {
  const active = new Map<string, { readonly response: RememberedResponse; readonly bytes: number }>();
  const inactive = new Map<string, RememberedResponse>();
  let bytes = 0;
  let limit = 0;
  const leave = budget.join((share) => {
    limit = share;
    trim();
  });

  function dropActive(digest: string): void {
    bytes -= active.get(digest)?.bytes ?? 0;
    active.delete(digest);
  }

  function trim(): void {
    for (const [oldest] of active) {
      if (bytes <= limit) return;
      dropActive(oldest);
    }
  }

  return {
    get: (digest) => active.get(digest)?.response ?? inactive.get(digest) ?? null,
    set: (digest, response, claimBytes) => {
      dropActive(digest);
      inactive.delete(digest);
      if (response.claims === null) {
        inactive.set(digest, response);
        const [oldest = ''] = inactive.keys();
        if (inactive.size > mostInactive) inactive.delete(oldest);
        return;
      }
      const size = entryBytes + claimBytes;
      active.set(digest, { response, bytes: size });
      bytes += size;
      trim();
    },
    counts: () => ({ active: active.size, inactive: inactive.size }),
    close: () => {
      leave();
      active.clear();
      inactive.clear();
      bytes = 0;
    },
  };
}
