import type { Complete, Completed, Mark, Marked, Release, Released } from '../../decision/idempotency/record.js';
import type { ReservationScope } from '../../decision/idempotency/scope.js';
import type { Result } from '../../lib/result.js';
import type { Clock, Log, Timers } from '../../ports/system.js';
import type { ReservationMetrics, ReservationStore, StoreFailure } from '../../ports/idempotency.js';
import type { Exemplar } from '../../ports/tracing.js';
import { createReoffering } from './reoffer-settlements.js';
import { createRecentSettlements, isNoDoubt, keptAt, momentOf, type RecentLimits } from './recent-settlements.js';
import { createSettlementReport } from './settlement-report.js';

/** Something to write about a reservation once its request is over. */
export type SettleCommand =
  | { readonly kind: 'complete'; readonly command: Complete }
  /** `wasSent`: the upstream has answered that it did nothing; else nothing went out. */
  | { readonly kind: 'release'; readonly command: Release; readonly wasSent: boolean }
  | { readonly kind: 'mark'; readonly command: Mark };

export interface Settling {
  readonly scope: ReservationScope;
  readonly recordId: string;
  readonly write: SettleCommand;
  /** Monotonic milliseconds; what is not written by then is given up. */
  readonly untilMs: number;
  /** Whether the upstream runs a write once, however often it is sent. */
  readonly deduplicates: boolean;
  /** Of the request that reserved, where it is traced. */
  readonly exemplar?: Exemplar | undefined;
}

/** What is written about reservations, and tried again where the store does not answer. */
export interface Settlements {
  /** Writes it, once. A failure is tried again in the background. Never rejects. */
  readonly settle: (settling: Settling) => Promise<void>;
  /** How many are still to be written. */
  readonly open: () => number;
  /**
   * Waits for what is being written, tries once more what is left, and then gives it up. Writes the latest settlements
   * again, in case the store has lost them in a fail-over that was not noticed yet.
   */
  readonly close: () => Promise<void>;
}

/** Pause before the first and the longest pause between later attempts, milliseconds. */
const firstPauseMs = 100;
const longestPauseMs = 2_000;

/**
 * What waits at once; beyond it the oldest is given up: its record ends in doubt, which is safe unless the store has
 * lost it.
 */
export interface SettlementLimits {
  readonly maxWaiting: number;
  /** Bytes of responses. */
  readonly maxBytes: number;
}

const defaultLimits: SettlementLimits = { maxWaiting: 1_000, maxBytes: 64 * 1024 * 1024 };

interface SettlementDeps {
  readonly store: ReservationStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
  readonly metrics: ReservationMetrics;
}

interface Waiting {
  readonly settling: Settling;
  /**
   * When a doubt is given up by the wall clock, milliseconds since the epoch: while a machine was suspended an operator
   * may have freed its key, and the store may have forgotten that.
   */
  readonly untilWallMs: number;
  readonly bytes: number;
  pauseMs: number;
  callOff: () => void;
}

export function createSettlements(
  deps: SettlementDeps,
  limits: SettlementLimits = defaultLimits,
  keeps?: RecentLimits,
): Settlements {
  const { store, clock, timers, metrics } = deps;
  const report = createSettlementReport(deps);
  const keep = createRecentSettlements(
    {
      ...deps,
      onRetry: (left, forgotten) => {
        offering.retry(left, forgotten);
      },
    },
    keeps,
  );
  const offering = createReoffering({ ...deps, report, send, onThere: keep.add, onLeft: keep.giveBack });
  /** Fail-overs that were noticed. What was asked of the store before one may be lost with it. */
  let failovers = 0;
  store.onFailover?.(() => {
    failovers += 1;
    offering.start(keep.take());
  });
  const waiting = new Set<Waiting>();
  const writing = new Set<Promise<boolean>>();
  let waitingBytes = 0;

  return {
    settle: async (settling) => {
      const { write, untilMs } = settling;
      const untilWallMs = write.kind === 'mark' ? clock.now() + untilMs - clock.monotonic() : Infinity;
      if (!(await attempt(settling))) {
        wait({ settling, untilWallMs, bytes: sizeOf(write), pauseMs: firstPauseMs, callOff: () => undefined });
      }
    },
    open: () => waiting.size,
    close: async () => {
      await Promise.all(writing);
      const last = keep.takeLast();
      const left = [...waiting];
      left.forEach(drop);
      const tried = left.map(async (entry) => {
        if (isOver(entry) || !(await attempt(entry.settling))) report.givenUp(entry.settling);
      });
      await Promise.all(tried);
      // What a retry, or the end of the half minute after a fail-over, has left since.
      const leftSince = keep.takeLast().filter(({ thereAtMs }) => thereAtMs === null);
      await offering.close([...last, ...leftSince]);
      keep.close();
    },
  };

  function wait(entry: Waiting): void {
    waiting.add(entry);
    waitingBytes += entry.bytes;
    entry.callOff = timers.after(entry.pauseMs, () => void again(entry));
    for (const oldest of waiting) {
      if (waiting.size <= limits.maxWaiting && waitingBytes <= limits.maxBytes) break;
      drop(oldest);
      report.givenUp(oldest.settling);
    }
  }

  function drop(entry: Waiting): void {
    entry.callOff();
    if (waiting.delete(entry)) waitingBytes -= entry.bytes;
  }

  async function again(entry: Waiting): Promise<void> {
    const isWritten = !isOver(entry) && (await attempt(entry.settling));
    // It may have been given up, or written by the last attempt of a shutdown, in the meantime.
    if (!waiting.has(entry)) return;
    drop(entry);
    if (isWritten) return;
    entry.pauseMs = Math.min(longestPauseMs, entry.pauseMs * 2);
    if (clock.monotonic() + entry.pauseMs < entry.settling.untilMs && !isOver(entry)) wait(entry);
    else report.givenUp(entry.settling);
  }

  function isOver({ untilWallMs }: Waiting): boolean {
    return clock.now() >= untilWallMs;
  }

  /** Whether the store answered. */
  async function attempt(settling: Settling): Promise<boolean> {
    const attempted = writeOnce(settling);
    writing.add(attempted);
    try {
      return await attempted;
    } finally {
      writing.delete(attempted);
    }
  }

  async function writeOnce(settling: Settling): Promise<boolean> {
    const asked = momentOf(clock);
    const before = failovers;
    const reply = await send(settling);
    metrics.storeCall(settling.write.kind, clock.monotonic() - asked.atMs, settling.exemplar);
    if (!reply.ok) return false;
    report.replied(settling, reply.value);
    // A `fenced` settlement was reported just now: once is enough.
    if (store.onFailover === null || reply.value === 'fenced' || reply.value === 'unsupported') return true;
    if (isNoDoubt(settling, reply.value)) return true;
    const kept = keptAt(settling, asked);
    if (failovers === before) keep.add(kept);
    else offering.add(kept);
    return true;
  }

  function send({ scope, write }: Settling): Promise<Result<Completed | Released | Marked, StoreFailure>> {
    switch (write.kind) {
      case 'complete':
        return store.complete(scope, write.command);
      case 'release':
        return store.release(scope, write.command);
      case 'mark':
        return store.mark(scope, write.command);
    }
  }
}

function sizeOf(write: SettleCommand): number {
  return write.kind === 'complete' ? write.command.response.body.byteLength : 0;
}
