import { clientNetworks } from '../../lib/ip-ranges.js';
import type { Clock } from '../../ports/system.js';

/** Addresses that are remembered for one listener: some 100 bytes each. Only good credentials take a place. */
const maxAddresses = 1_024;

/** For so long after its last good credential an address is that of a caller, milliseconds. */
const rememberedMs = 10 * 60_000;

/** An address that was seen within this is not written down again, milliseconds. */
const freshMs = 1_000;

/**
 * Where callers come from that have shown a good credential. Behind a proxy whose `X-Forwarded-For` counts, a
 * connection is the proxy's, and brings everybody's requests.
 */
export interface KnownAddresses {
  readonly add: (address: string) => void;
  readonly has: (address: string) => boolean;
}

/** Counts by what one client has for sure, as the budgets do; beyond the bound who came least lately is forgotten. */
export function createKnownAddresses({ monotonic }: Pick<Clock, 'monotonic'>): KnownAddresses {
  const seenAtMs = new Map<string, number>();
  return {
    add: (address) => {
      const { own } = clientNetworks(address);
      const nowMs = monotonic();
      if (nowMs < (seenAtMs.get(own) ?? -Infinity) + freshMs) return;
      seenAtMs.delete(own);
      seenAtMs.set(own, nowMs);
      if (seenAtMs.size <= maxAddresses) return;
      const [oldest = ''] = seenAtMs.keys();
      seenAtMs.delete(oldest);
    },
    has: (address) => {
      const seenMs = seenAtMs.get(clientNetworks(address).own);
      return seenMs !== undefined && monotonic() < seenMs + rememberedMs;
    },
  };
}
