import { overtakingReleaseMs, type Completed, type Marked, type Released } from '../../decision/idempotency/record.js';
import type { ReservationStore } from '../../ports/idempotency.js';
import type { Clock, Timers } from '../../ports/system.js';
import type { Settling } from './settlement-queue.js';

/** What a settlement takes besides its response, bytes: ids and scope. */
const bytesOfOne = 1_024;

function bytesOf({ write }: Settling): number {
  if (write.kind !== 'complete') return bytesOfOne;
  const { body, headers } = write.command.response;
  return headers.reduce((bytes, text) => bytes + text.length, bytesOfOne + body.byteLength);
}

/** A moment by both clocks: the monotonic one stands still while a machine is suspended, the other one may be set. */
interface Moment {
  /** Monotonic milliseconds. */
  readonly atMs: number;
  /** Milliseconds since the epoch. */
  readonly wallMs: number;
}

export function momentOf(clock: Clock): Moment {
  return { atMs: clock.monotonic(), wallMs: clock.now() };
}

/** A settlement that the store took, and when, or when it was asked to. */
export interface Kept extends Moment {
  readonly settling: Settling;
  /** What it takes, about: in memory, and on its way to the store. */
  readonly bytes: number;
  /**
   * When its part of the store was there for the last time, as far as was looked: what that took just before may be
   * lost. `null` where it was offered and not taken: whether the store still has it is not known.
   */
  readonly thereAtMs: number | null;
}

export function keptAt(settling: Settling, { atMs, wallMs }: Moment): Kept {
  const small = compact(settling);
  return { settling: small, bytes: bytesOf(small), atMs, wallMs, thereAtMs: atMs };
}

/** Whether it was settled so long ago that it is not offered any more. */
export function isTooOld({ atMs, wallMs }: Moment, clock: Clock): boolean {
  return Math.max(clock.monotonic() - atMs, clock.now() - wallMs) >= longestAwayMs;
}

/**
 * Whether a mark found its write no longer in doubt. An operator may have freed the key since: the store knows that for
 * some minutes, and the mark must not be offered for longer.
 */
export function isNoDoubt({ write }: Settling, reply: Completed | Released | Marked): boolean {
  return write.kind === 'mark' && reply === 'kept';
}

/** What the store took lately: after a fail-over it may have forgotten it. */
interface RecentSettlements {
  readonly add: (kept: Kept) => void;
  /**
   * Takes out what the store took shortly before it was last there, the latest first, since it is the most likely to be
   * lost. Forgets the rest.
   */
  readonly take: () => readonly Kept[];
  /** The same for a shutdown: of a part of the store that is there, only what a fail-over may have lost unnoticed. */
  readonly takeLast: () => readonly Kept[];
  /**
   * Keeps what was taken out, offered, and not taken by the store, until the next retry: in that order, so that those
   * that failed do not keep others from their turn.
   */
  readonly giveBack: (left: readonly Kept[]) => void;
  readonly close: () => void;
}

export interface RecentLimits {
  /** Milliseconds for which a settlement is kept while its part of the store is there. */
  readonly lastMs: number;
  /** Bytes of all of them; the oldest give way. */
  readonly maxBytes: number;
}

/**
 * How far back a shutdown offers settlements again, milliseconds: a fail-over since then may not have been noticed yet.
 * Longer than an idle proxy takes to look for a fail-over and to hear of it.
 */
const unnoticedMs = 5_000;

/** Longer than a primary that was replaced goes on taking writes before the proxies know. */
export const recentLimits: RecentLimits = { lastMs: 15_000, maxBytes: 32 * 1024 * 1024 };

/** How often it is looked whether the store is there, milliseconds, and how much later a look may come. */
const lookEveryMs = 1_000;
const lookLateMs = 1_000;

/**
 * How long a settlement is kept while its part of the store is away, milliseconds: a fail-over takes as long as those
 * in charge of it take to be sure. A key that an operator has freed since is known to be free for as long.
 */
const longestAwayMs = overtakingReleaseMs;

interface RecentDeps {
  readonly store: Pick<ReservationStore, 'state' | 'problemOf'>;
  readonly clock: Clock;
  readonly timers: Timers;
  /**
   * Called with what was given back, each time that it is looked whether the store is there: it is taken out, however
   * old it is. `forgotten` of it gave way to others; where all is taken, only those are told.
   */
  readonly onRetry: (left: readonly Kept[], forgotten: number) => void;
}

export function createRecentSettlements(
  { store, clock, timers, onRetry }: RecentDeps,
  limits = recentLimits,
): RecentSettlements {
  /** In the order of their times, or nearly so. */
  const kept = new Set<{ -readonly [K in keyof Kept]: Kept[K] }>();
  /** Of those what was given back since the last retry, in the order in which it is to be tried. */
  let left: readonly Kept[] = [];
  let bytes = 0;
  let callOff: (() => void) | null = null;
  /** Until when it does not count that the store seems to be there, monotonic milliseconds. */
  let doubtfulUntilMs = -Infinity;

  return {
    add: (entry) => {
      keep([entry]);
    },
    take: () => takeAll(),
    takeLast: () => {
      const isThere = lookAtParts();
      return takeAll((entry) => (isThere(entry) ? unnoticedMs : limits.lastMs));
    },
    giveBack: (entries) => {
      const back = entries.map((entry) => ({ ...entry, thereAtMs: null }));
      const all = [...back, ...kept];
      const allLeft = [...left, ...back];
      clear();
      left = allLeft;
      keep(all.sort((a, b) => a.atMs - b.atMs));
    },
    close: clear,
  };

  function keep(entries: readonly Kept[]): void {
    for (const entry of entries) {
      kept.add(entry);
      bytes += entry.bytes;
    }
    for (const oldest of kept) {
      if (bytes <= limits.maxBytes) break;
      drop(oldest);
    }
    sweepLater();
  }

  function takeAll(lastMsOf?: (entry: Kept) => number): readonly Kept[] {
    dropOld(lastMsOf);
    const taken = [...kept].reverse();
    const forgotten = left.filter((entry) => !kept.has(entry)).length;
    clear();
    if (forgotten > 0) onRetry([], forgotten);
    return taken;
  }

  function clear(): void {
    kept.clear();
    left = [];
    bytes = 0;
    callOff?.();
    callOff = null;
  }

  function drop(entry: Kept): void {
    if (kept.delete(entry)) bytes -= entry.bytes;
  }

  function dropOld(lastMsOf = (_entry: Kept): number => limits.lastMs): void {
    for (const entry of kept) {
      // What was given back is told of where it is too old, by whom it is taken out.
      if (entry.thereAtMs === null) continue;
      if (entry.atMs <= entry.thereAtMs - lastMsOf(entry) || isTooOld(entry, clock)) drop(entry);
    }
  }

  /** Tells of which settlements the part of the store is there. Each caller's is asked for once, where one is away. */
  function lookAtParts(): (entry: Kept) => boolean {
    const isWhole = store.state().up;
    const parts = new Map<string, boolean>();
    return ({ settling: { scope } }) => {
      if (isWhole) return true;
      const known = parts.get(scope.principal);
      if (known !== undefined) return known;
      const isThere = store.problemOf(scope) === null;
      parts.set(scope.principal, isThere);
      return isThere;
    };
  }

  /** What is over its time leaves also where nothing comes after it. */
  function sweepLater(): void {
    if (callOff !== null || kept.size === 0) return;
    const dueAtMs = clock.monotonic() + lookEveryMs;
    callOff = timers.after(lookEveryMs, () => {
      callOff = null;
      const nowMs = clock.monotonic();
      // This process stood still: what it knows of the store is from before, and a fail-over since is news to come.
      if (nowMs > dueAtMs + lookLateMs) doubtfulUntilMs = nowMs + unnoticedMs;
      if (nowMs >= doubtfulUntilMs) {
        moveOn(nowMs);
        dropOld();
      }
      retry();
      sweepLater();
    });
  }

  function moveOn(nowMs: number): void {
    const isThere = lookAtParts();
    for (const entry of kept) {
      if (entry.thereAtMs !== null && isThere(entry)) entry.thereAtMs = nowMs;
    }
  }

  function retry(): void {
    const due = left.filter((entry) => kept.has(entry));
    const forgotten = left.length - due.length;
    left = [];
    due.forEach(drop);
    onRetry(due, forgotten);
  }
}

/**
 * Copies a body that is a small part of a larger piece of memory, which it would keep whole. `Buffer.from` makes small
 * buffers such parts.
 */
function compact(settling: Settling): Settling {
  const { write } = settling;
  if (write.kind !== 'complete') return settling;
  const { command } = write;
  const { body } = command.response;
  if (body.buffer.byteLength <= 2 * body.byteLength) return settling;
  return {
    ...settling,
    write: { ...write, command: { ...command, response: { ...command.response, body: new Uint8Array(body) } } },
  };
}
