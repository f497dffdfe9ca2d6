import type { ClientNetworks } from '../../lib/ip-ranges.js';

/** What waits, from where. */
export interface Waiting {
  readonly networks: ClientNetworks;
  /** Whether nobody waits for it any more. */
  readonly isGone: () => boolean;
}

/** What waits in its turn, within a bound that nobody can fill alone. */
export interface FairQueue<T extends Waiting> {
  /** Whether there was a place for it, and what lost its own for that. */
  readonly enter: (item: T) => { readonly entered: boolean; readonly ousted: T | null };
  /** Takes out whose turn it is; `null` where nothing waits. */
  readonly next: () => T | null;
  /** Takes it out, where it waits. */
  readonly leave: (item: T) => void;
  /** Takes out what the test says, site by site, each in the order in which it came. */
  readonly takeAll: (isTaken: (item: T) => boolean) => readonly T[];
  readonly size: () => number;
}

/** What waits from one site, by the networks in it, each in the order in which it came. */
interface Site<T> {
  readonly networks: Map<string, T[]>;
  size: number;
}

/**
 * Sites take turns, within a site its networks, and what comes from one network waits in its order. Where all places
 * are taken, a newcomer gets the place of the first of these that there is:
 *
 * - somebody who left
 * - the newest of the largest network of the site that holds most, where that site is two or more ahead of the
 *   newcomer's
 * - the newest of the largest network of the newcomer's site, where that network is two or more ahead of the newcomer's
 *
 * So one site keeps nobody out, and to keep one caller out takes as many sites as there are places.
 *
 * @param max what may wait at a time.
 */
export function createFairQueue<T extends Waiting>(max: number): FairQueue<T> {
  const sites = new Map<string, Site<T>>();
  let size = 0;

  function enter(item: T): { readonly entered: boolean; readonly ousted: T | null } {
    const ousted = size >= max ? findOusted(item.networks) : null;
    if (ousted !== null) remove(ousted);
    if (size >= max) return { entered: false, ousted: null };
    const site = sites.get(item.networks.site) ?? { networks: new Map<string, T[]>(), size: 0 };
    sites.set(item.networks.site, site);
    const beside = site.networks.get(item.networks.own) ?? [];
    site.networks.set(item.networks.own, beside);
    beside.push(item);
    site.size += 1;
    size += 1;
    return { entered: true, ousted };
  }

  function findOusted({ site, own }: ClientNetworks): T | null {
    for (const item of items()) if (item.isGone()) return item;
    const ownSite = sites.get(site);
    const largest = largestOf(sites.values(), (other) => other.size, (ownSite?.size ?? 0) + 2);
    const crowded = largest ?? ownSite;
    const least = largest === null ? (ownSite?.networks.get(own)?.length ?? 0) + 2 : 1;
    return largestOf(crowded?.networks.values() ?? [], (network) => network.length, least)?.at(-1) ?? null;
  }

  function* items(): Generator<T> {
    for (const { networks } of sites.values()) for (const network of networks.values()) yield* network;
  }

  function remove(item: T): void {
    const { site: name, own } = item.networks;
    const site = sites.get(name);
    const network = site?.networks.get(own);
    const index = network?.indexOf(item) ?? -1;
    if (site === undefined || network === undefined || index < 0) return;
    network.splice(index, 1);
    if (network.length === 0) site.networks.delete(own);
    site.size -= 1;
    if (site.size === 0) sites.delete(name);
    size -= 1;
  }

  function next(): T | null {
    const [item] = items();
    if (item === undefined) return null;
    const { site: name, own } = item.networks;
    remove(item);
    // Behind all others, until it is its turn again.
    const site = renew(sites, name);
    if (site !== undefined) renew(site.networks, own);
    return item;
  }

  return {
    enter,
    next,
    leave: remove,
    takeAll: (isTaken) => {
      const taken = [...items()].filter(isTaken);
      taken.forEach(remove);
      return taken;
    },
    size: () => size,
  };
}

/** The largest of those that have at least so much. */
function largestOf<V>(values: Iterable<V>, sizeOf: (value: V) => number, least: number): V | null {
  let largest: V | null = null;
  let most = least - 1;
  for (const value of values) {
    if (sizeOf(value) <= most) continue;
    largest = value;
    most = sizeOf(value);
  }
  return largest;
}

/** Puts what is still there at the end. */
function renew<V>(map: Map<string, V>, name: string): V | undefined {
  const value = map.get(name);
  if (value === undefined) return undefined;
  map.delete(name);
  map.set(name, value);
  return value;
}
