import { bytesOfRecord, isOverTwice, type ResultSize } from '../../decision/limits/store-share.js';
import type { StoreShare } from '../../ports/idempotency.js';
import { numberOf, textOf } from './scripts/replies.js';
import { scripts } from './scripts/reservation.js';
import type { Servers } from './topology/primaries.js';
import type { RedisSettings } from './client/settings.js';

/**
 * Responses up to this size are counted without waiting for it, bytes: what is under way at once can be that much over,
 * and no more.
 */
const smallResponse = 16 * 1024;

/**
 * Callers that are remembered to have used up their share, those that were found last. One that is forgotten is found
 * again by its next write.
 */
const mostRemembered = 10_000;

/** What the whole server may hold, where nobody says how much of it one caller may take: this part. */
const unlessSaid = 0.25;

interface Counted {
  readonly isKept: boolean;
  readonly total: number;
}

/**
 * Counts in Redis what is kept of each caller, in one key on the slot of the caller's records. It guards memory and not
 * the writes: what cannot be counted is kept as ever.
 */
export function createStoreShare(servers: Pick<Servers, 'run' | 'memoryOf'>, settings: RedisSettings): StoreShare {
  /** Callers that were over their share when they were last asked for, in the order of that. */
  const over = new Set<string>();

  return {
    keeps: async (principal, size) => {
      const share = shareOf(principal);
      if (share === null) return true;
      const counting = count(principal, share, size);
      if (size.bytes <= smallResponse && !over.has(principal)) return true;
      return (await counting)?.isKept ?? true;
    },
    isUsedUp: async (principal) => {
      const share = shareOf(principal);
      if (share === null || !over.has(principal)) return false;
      const counted = await count(principal, share, null);
      return counted !== null && isOverTwice(counted.total, share);
    },
  };

  /** `null` where nothing limits it. */
  function shareOf(principal: string): number | null {
    if (settings.keptPerCaller !== null) return settings.keptPerCaller;
    const bytes = servers.memoryOf(principal);
    return bytes === null ? null : Math.floor(bytes * unlessSaid);
  }

  /** @param size of what is to be kept; `null` only asks. `null` where the store does not answer. */
  async function count(principal: string, share: number, size: ResultSize | null): Promise<Counted | null> {
    const { least, all } = size === null ? { least: 0, all: 0 } : bytesOfRecord(size);
    const values = [share, least, all, size?.retentionMs ?? 0].map(String);
    const keys = [`${settings.prefix}:{${principal}}:k`];
    const ran = await servers.run(principal, {
      script: scripts.keep,
      keys,
      values,
      replicas: 0,
      deadlineMs: settings.settleTimeoutMs,
    });
    if (!ran.ok) return null;
    const parts: readonly unknown[] = Array.isArray(ran.value.reply) ? ran.value.reply : [];
    try {
      return remember(principal, share, { isKept: textOf(parts[0]) === '1', total: numberOf(parts[1]) });
    } catch {
      // Another program under our prefix.
      return null;
    }
  }

  function remember(principal: string, share: number, counted: Counted): Counted {
    over.delete(principal);
    if (counted.isKept && counted.total <= share) return counted;
    const [oldest] = over;
    if (oldest !== undefined && over.size >= mostRemembered) over.delete(oldest);
    over.add(principal);
    return counted;
  }
}
