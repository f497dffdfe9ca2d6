import type { ClientNetworks } from '../../lib/ip-ranges.js';

/**
 * Why a connection was ended that would have been kept, had there been less to do: it gave way to a new one; it was
 * new, and none could give way; too much waited behind the request that was being served on it; its frames of HTTP/2
 * cost more than what they asked for; or it changed its keys of TLS again and again.
 */
export const connectionEndings = ['gave_way', 'refused', 'too_much_waiting', 'http2_abuse', 'key_updates'] as const;
export type ConnectionEnding = (typeof connectionEndings)[number];

/** Counts of connections that were ended, before the first of them. */
export function noConnectionEndings(): Record<ConnectionEnding, number> {
  return { gave_way: 0, refused: 0, too_much_waiting: 0, http2_abuse: 0, key_updates: 0 };
}

/** What a client connection is, while no request of it waits for its response. */
export interface IdleConnection {
  readonly networks: ClientNetworks;
  /** Whether a request of it was let through for somebody with a good credential. */
  readonly hasAuthenticated: boolean;
  /** When its last request was answered, or it came; monotonic milliseconds. */
  readonly sinceMs: number;
}

/**
 * Of all connections, what those of one address, or of one /48 of IPv6, may hold before they give way to others. A
 * proxy in front has one address.
 */
const greedyShare = 1 / 4;

/** How long a connection without a credential is taken for one whose first request is on its way, milliseconds. */
const graceMs = 1_000;

/**
 * Chooses which resting connections give way to new ones, so that nobody shuts others out by opening many and saying
 * nothing. First those that never showed a good credential, then those of sites that hold more than a quarter of
 * `limit`; among equals those of the site that holds most, within it of the network that does, and of these the one
 * that rested longest. A site is an address of IPv4 or a /48 of IPv6, and a network in it an address or a /64.
 *
 * @returns positions in `resting`, at most `count`.
 */
export function chooseToEnd(
  resting: readonly IdleConnection[],
  { count, limit, nowMs }: { count: number; limit: number; nowMs: number },
): readonly number[] {
  const counts = new Map<string, number>();
  const holds = (name: string): number => counts.get(name) ?? 0;
  for (const { networks } of resting) {
    const { own, site } = networks;
    counts.set(site, holds(site) + 1);
    if (own !== site) counts.set(own, holds(own) + 1);
  }
  const chosen: Candidate[] = [];
  // Not sorted whole: a flood of connections asks for this again and again.
  for (const [position, rest] of resting.entries()) {
    const { own, site } = rest.networks;
    const held = holds(site);
    const rank = rankOf(rest, nowMs, held > limit * greedyShare);
    const candidate = { position, held, heldByNetwork: holds(own), sinceMs: rest.sinceMs, rank };
    const last = chosen[count - 1];
    if (last !== undefined && inOrder(last, candidate) <= 0) continue;
    const place = chosen.findIndex((other) => inOrder(candidate, other) < 0);
    chosen.splice(place === -1 ? chosen.length : place, 0, candidate);
    if (chosen.length > count) chosen.pop();
  }
  return chosen.map(({ position }) => position);
}

/** One that may give way. */
interface Candidate {
  readonly position: number;
  readonly rank: number;
  /** How many its site holds, and how many of these its network. */
  readonly held: number;
  readonly heldByNetwork: number;
  readonly sinceMs: number;
}

/** Below zero where the first gives way before the second. */
function inOrder(one: Candidate, other: Candidate): number {
  return (
    one.rank - other.rank ||
    other.held - one.held ||
    other.heldByNetwork - one.heldByNetwork ||
    one.sinceMs - other.sinceMs
  );
}

/** Lower gives way earlier. */
function rankOf({ hasAuthenticated, sinceMs }: IdleConnection, nowMs: number, isGreedy: boolean): number {
  const isYoung = nowMs - sinceMs < graceMs;
  if (!hasAuthenticated && !isYoung) return 0;
  if (isGreedy) return hasAuthenticated ? 2 : 1;
  return hasAuthenticated ? 4 : 3;
}
