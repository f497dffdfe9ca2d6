import { overtakingReleaseMs } from '../../decision/idempotency/record.js';
import type { ReservationStore } from '../../ports/idempotency.js';
import type { Clock, Timers } from '../../ports/system.js';
import type { Settling } from './settlement-queue.js';

/** What a settlement takes besides its response, bytes: ids and scope. */
const bytesOfOne = 1_024;

/** What it takes, about: in memory, and on its way to the store. */
export function bytesOf({ write }: Settling): number {
  if (write.kind !== 'complete') return bytesOfOne;
  const { body, headers } = write.command.response;
  return headers.reduce((bytes, text) => bytes + text.length, bytesOfOne + body.byteLength);
}

/** What the store took lately: after a fail-over it may have forgotten it. */
interface RecentSettlements {
  readonly add: (settling: Settling) => void;
  /**
   * Takes out what the store took within `lastMs` before it was last there, the latest first, since it is the most
   * likely to be lost. Forgets the rest.
   */
  readonly take: (lastMs?: number) => readonly Settling[];
  readonly close: () => void;
}

export interface RecentLimits {
  /** Milliseconds for which a settlement is kept while the store is there. */
  readonly lastMs: number;
  /** Bytes of all of them; the oldest give way. */
  readonly maxBytes: number;
}

/**
 * How far back a shutdown offers settlements again, milliseconds: a fail-over since then may not have been noticed yet.
 * Longer than an idle proxy takes to look for a fail-over and to hear of it.
 */
export const unnoticedMs = 5_000;

/** Longer than a primary that was replaced goes on taking writes before the proxies know. */
export const recentLimits: RecentLimits = { lastMs: 15_000, maxBytes: 32 * 1024 * 1024 };

/** How often it is looked whether the store is there, milliseconds. */
const lookEveryMs = 1_000;

/**
 * How long a settlement is kept while the store is away, milliseconds: a fail-over takes as long as those in charge of
 * it take to be sure. As long as a key that an operator has freed is known by its record.
 */
const longestAwayMs = overtakingReleaseMs;

interface Kept {
  readonly settling: Settling;
  readonly bytes: number;
  readonly atMs: number;
}

export function createRecentSettlements(
  {
    store,
    clock,
    timers,
  }: { readonly store: Pick<ReservationStore, 'state'>; readonly clock: Clock; readonly timers: Timers },
  limits = recentLimits,
): RecentSettlements {
  /** In the order of their times. */
  const kept = new Set<Kept>();
  let bytes = 0;
  /** When the store was there for the last time, as far as was looked: what it took just before may be lost. */
  let thereAtMs = -Infinity;
  let callOff: (() => void) | null = null;

  return {
    add: (settling) => {
      const small = compact(settling);
      const entry = { settling: small, bytes: bytesOf(small), atMs: clock.monotonic() };
      if (kept.size === 0) thereAtMs = entry.atMs;
      kept.add(entry);
      bytes += entry.bytes;
      for (const oldest of kept) {
        if (bytes <= limits.maxBytes) break;
        drop(oldest);
      }
      sweepLater();
    },
    take: (lastMs = limits.lastMs) => {
      dropOld(lastMs);
      const taken = [...kept].reverse().map(({ settling }) => settling);
      clear();
      return taken;
    },
    close: clear,
  };

  function clear(): void {
    kept.clear();
    bytes = 0;
    callOff?.();
    callOff = null;
  }

  function drop(entry: Kept): void {
    if (kept.delete(entry)) bytes -= entry.bytes;
  }

  function dropOld(lastMs = limits.lastMs): void {
    const sinceMs = Math.max(thereAtMs - lastMs, clock.monotonic() - longestAwayMs);
    for (const entry of kept) {
      if (entry.atMs > sinceMs) return;
      drop(entry);
    }
  }

  /** What is over its time leaves also where nothing comes after it. */
  function sweepLater(): void {
    if (callOff !== null || kept.size === 0) return;
    callOff = timers.after(lookEveryMs, () => {
      callOff = null;
      if (store.state().up) thereAtMs = clock.monotonic();
      dropOld();
      sweepLater();
    });
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
