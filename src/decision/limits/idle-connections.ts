/**
 * Why a connection was ended that would have been kept, had there been less to do: it gave way to a new one; it was
 * new, and none could give way; too much waited behind the request that was being served on it.
 */
export const connectionEndings = ['gave_way', 'refused', 'too_much_waiting'] as const;
export type ConnectionEnding = (typeof connectionEndings)[number];

/** What a caller's connection is, while no request of it is being served. */
export interface IdleConnection {
  readonly address: string;
  /** Whether a request of it was let through for somebody with a good credential. */
  readonly isTrusted: boolean;
  /** When its last request was answered, or it came; monotonic milliseconds. */
  readonly sinceMs: number;
}

/**
 * Of all connections, what those of one address may hold before they give way to others. A proxy in front has one
 * address.
 */
const greedyShare = 1 / 4;

/** As long as that a connection without a credential is taken for one whose first request is on its way. */
const graceMs = 1_000;

/**
 * Chooses which resting connections give way to new ones, so that nobody shuts others out by opening many and saying
 * nothing. First those that never showed a good credential, then those of addresses that hold more than a quarter of
 * `limit`; among equals those of the address that holds most, and of these the one that rested longest.
 *
 * @returns positions in `resting`, at most `count`.
 */
export function chooseToEnd(
  resting: readonly IdleConnection[],
  { count, limit, nowMs }: { count: number; limit: number; nowMs: number },
): readonly number[] {
  const counts = new Map<string, number>();
  for (const { address } of resting) counts.set(address, (counts.get(address) ?? 0) + 1);
  const holds = ({ address }: IdleConnection): number => counts.get(address) ?? 0;
  const chosen: Candidate[] = [];
  // Not sorted whole: a flood of connections asks for this again and again.
  for (const [position, rest] of resting.entries()) {
    const held = holds(rest);
    const candidate = { position, held, sinceMs: rest.sinceMs, rank: rankOf(rest, nowMs, held > limit * greedyShare) };
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
  /** How many its address holds. */
  readonly held: number;
  readonly sinceMs: number;
}

/** Below zero where the first gives way before the second. */
function inOrder(one: Candidate, other: Candidate): number {
  return one.rank - other.rank || other.held - one.held || one.sinceMs - other.sinceMs;
}

/** Lower gives way earlier. */
function rankOf({ isTrusted, sinceMs }: IdleConnection, nowMs: number, isGreedy: boolean): number {
  const isYoung = nowMs - sinceMs < graceMs;
  if (!isTrusted && !isYoung) return 0;
  if (isGreedy) return isTrusted ? 2 : 1;
  return isTrusted ? 4 : 3;
}
