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
   * Gives away what was taken within the time, or within a shorter one, and forgets the rest; the latest first: that is
   * what is most likely lost.
   */
  readonly take: (lastMs?: number) => readonly Settling[];
  readonly close: () => void;
}

export interface RecentLimits {
  /** Milliseconds for which a settlement is kept. */
  readonly lastMs: number;
  /** Bytes of all of them; the oldest give way. */
  readonly maxBytes: number;
}

/**
 * Of a shutdown: a fail-over since then may not have been noticed yet. Longer than a proxy looks for one at rest, and
 * waits for the look; milliseconds.
 */
export const unnoticedMs = 5_000;

/** Longer than a primary that was replaced goes on taking writes before the proxies know. */
export const recentLimits: RecentLimits = { lastMs: 15_000, maxBytes: 32 * 1024 * 1024 };

interface Kept {
  readonly settling: Settling;
  readonly bytes: number;
  readonly atMs: number;
}

export function createRecentSettlements(
  { clock, timers }: { readonly clock: Clock; readonly timers: Timers },
  limits = recentLimits,
): RecentSettlements {
  /** In the order of their times. */
  const kept = new Set<Kept>();
  let bytes = 0;
  let callOff: (() => void) | null = null;

  return {
    add: (settling) => {
      const small = compact(settling);
      const entry = { settling: small, bytes: bytesOf(small), atMs: clock.monotonic() };
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
    const sinceMs = clock.monotonic() - lastMs;
    for (const entry of kept) {
      if (entry.atMs > sinceMs) return;
      drop(entry);
    }
  }

  /** What is over its time leaves also where nothing comes after it. */
  function sweepLater(): void {
    if (callOff !== null || kept.size === 0) return;
    callOff = timers.after(limits.lastMs, () => {
      callOff = null;
      dropOld();
      sweepLater();
    });
  }
}

/**
 * A response that is part of a larger piece of memory would keep all of it, and `Buffer.from` makes a small one part of
 * such a piece.
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
