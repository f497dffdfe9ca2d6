import { clientNetworks } from '../../lib/ip-ranges.js';
import type { Clock } from '../../ports/system.js';

/** Networks that are remembered for one listener: some 200 bytes each. Only good credentials take a place. */
const maxNetworks = 16_384;

/** Of these, those of one site: a /48 of IPv6 holds more than there are places. */
const maxOfSite = 256;

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

/**
 * Counts by what one client has for sure, as the budgets do. Beyond the bounds who came least lately is forgotten: of
 * the site where it has its share, else of all.
 */
export function createKnownAddresses({ monotonic }: Pick<Clock, 'monotonic'>): KnownAddresses {
  /** By networks; who came last is at the end, here and below. */
  const seen = new Map<string, { readonly atMs: number; readonly site: string }>();
  /** Of sites that are more than one network. */
  const sites = new Map<string, Set<string>>();
  return {
    add: (address) => {
      const { own, site } = clientNetworks(address);
      const nowMs = monotonic();
      const before = seen.get(own);
      if (before !== undefined && nowMs < before.atMs + freshMs) return;
      forget(own);
      seen.set(own, { atMs: nowMs, site });
      if (site !== own) {
        const beside = sites.get(site) ?? new Set();
        sites.set(site, beside.add(own));
        if (beside.size > maxOfSite) forgetFirst(beside);
      }
      if (seen.size > maxNetworks) forgetFirst(seen);
    },
    has: (address) => {
      const atMs = seen.get(clientNetworks(address).own)?.atMs;
      return atMs !== undefined && monotonic() < atMs + rememberedMs;
    },
  };

  function forgetFirst(networks: { readonly keys: () => Iterable<string> }): void {
    const [first = ''] = networks.keys();
    forget(first);
  }

  function forget(own: string): void {
    const site = seen.get(own)?.site;
    if (site === undefined) return;
    seen.delete(own);
    const beside = sites.get(site);
    beside?.delete(own);
    if (beside?.size === 0) sites.delete(site);
  }
}
