import { clientNetworks, type ClientNetworks } from '../../lib/ip-ranges.js';

/** Places that the networks of callers share. */
interface NetworkShares {
  /** Takes a place for whoever sends from this address; `null` where there is none for it now. */
  readonly take: (address: string) => Leave | null;
}

/** Gives the place back; to be called once. */
export type Leave = () => void;

/** Networks of 64 bits in a /48 that may have the places which one address has alone. */
const networksOfSite = 2;

/**
 * Shares out places of which nobody knows when they are given back: one address, or /48 of IPv6, may have as many as
 * are left free, which is half of them where nobody else has any; and each /64 half as many as are left. So whoever
 * takes what it can leaves some for others, and so does the next.
 */
export function createNetworkShares(max: number): NetworkShares {
  const held = new Map<string, number>();
  let free = max;

  function hasShare({ own, site }: ClientNetworks): boolean {
    if ((held.get(site) ?? 0) >= free) return false;
    return own === site || (held.get(own) ?? 0) * networksOfSite < free;
  }

  function add(names: ReadonlySet<string>, places: number): void {
    free -= places;
    for (const name of names) {
      const next = (held.get(name) ?? 0) + places;
      if (next > 0) held.set(name, next);
      else held.delete(name);
    }
  }

  return {
    take: (address) => {
      const networks = clientNetworks(address);
      if (!hasShare(networks)) return null;
      const names = new Set([networks.site, networks.own]);
      add(names, 1);
      return () => {
        add(names, -1);
      };
    },
  };
}

interface NetworkTurns {
  /** Waits for a place; rejects where the time is over before. */
  readonly take: (address: string, signal: AbortSignal) => Promise<Leave>;
}

/** The same for those who wait until there is a place for them, each of a network in its order. */
export function createNetworkTurns(max: number): NetworkTurns {
  const shares = createNetworkShares(max);
  const waiting = new Set<() => void>();

  function enter(address: string): Leave | null {
    const leave = shares.take(address);
    return (
      leave &&
      (() => {
        leave();
        for (const attempt of [...waiting]) attempt();
      })
    );
  }

  return {
    take: (address, signal) =>
      new Promise((resolve, reject) => {
        const attempt = (): boolean => {
          const leave = enter(address);
          if (leave === null) return false;
          stop();
          resolve(leave);
          return true;
        };
        const giveUp = (): void => {
          stop();
          reject(new Error('no connection was free in time'));
        };
        const stop = (): void => {
          waiting.delete(attempt);
          signal.removeEventListener('abort', giveUp);
        };
        if (attempt()) return;
        waiting.add(attempt);
        signal.addEventListener('abort', giveUp);
      }),
  };
}
