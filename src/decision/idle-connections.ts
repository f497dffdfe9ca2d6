/**
 * Why a connection was ended that would have been kept, had there been less to do: it gave way to a new one; it was new, and none could
 * give way; too much waited behind the request that was being served on it.
 */
export const connectionEndings = ['gave_way', 'refused', 'too_much_waiting'] as const;
export type ConnectionEnding = (typeof connectionEndings)[number];

/** What a caller's connection is, while no request of it is being served. */
export interface Rest {
  readonly address: string;
  /** Whether a request of it was let through for somebody with a good credential. */
  readonly isTrusted: boolean;
  /** When its last request was answered, or it came; monotonic milliseconds. */
  readonly sinceMs: number;
}

/** Of all connections, what those of one address may hold before they give way to others. A proxy in front has one address. */
const greedyShare = 1 / 4;

/** As long as that a connection without a credential is taken for one whose first request is on its way. */
const graceMs = 1_000;

/**
 * Chooses which resting connections give way to new ones, so that nobody shuts others out by opening many and saying nothing. First those
 * that never showed a good credential, then those of addresses that hold more than a quarter of `limit`; among equals those of the
 * address that holds most, and of these the one that rested longest.
 *
 * @returns positions in `resting`, at most `count`.
 */
export function chooseToEnd(resting: readonly Rest[], { count, limit, nowMs }: { count: number; limit: number; nowMs: number }): readonly number[] {
  const held = new Map<string, number>();
  for (const { address } of resting) held.set(address, (held.get(address) ?? 0) + 1);
  const holds = ({ address }: Rest): number => held.get(address) ?? 0;
  const isGreedy = (rest: Rest): boolean => holds(rest) > limit * greedyShare;
  return resting
    .map((rest, position) => ({ rest, position, rank: rankOf(rest, nowMs, isGreedy(rest)) }))
    .sort((one, other) => one.rank - other.rank || holds(other.rest) - holds(one.rest) || one.rest.sinceMs - other.rest.sinceMs)
    .slice(0, count)
    .map(({ position }) => position);
}

/** Lower gives way earlier. */
function rankOf({ isTrusted, sinceMs }: Rest, nowMs: number, isGreedy: boolean): number {
  const isYoung = nowMs - sinceMs < graceMs;
  if (!isTrusted && !isYoung) return 0;
  if (isGreedy) return isTrusted ? 2 : 1;
  return isTrusted ? 4 : 3;
}
