import type { Completed, Marked, Released } from '../../decision/idempotency/record.js';
import type { Result } from '../../lib/result.js';
import type { Clock, Timers } from '../../ports/system.js';
import type { StoreFailure } from '../../ports/idempotency.js';
import { isNoDoubt, type Kept } from './recent-settlements.js';
import type { Settling } from './settlement-queue.js';
import type { ReofferResult, SettlementReport } from './settlement-report.js';

/** Writes to the store once more what it may have forgotten. What it holds already stays as it is. */
interface Reoffering {
  readonly start: (kept: readonly Kept[]) => void;
  /**
   * Offers what is left for as long as the store takes it, `lastMs` at most, and tells what is left then. Then offers
   * `last` for as long: a fail-over may not have been noticed yet, and after this nobody is left to repair it.
   */
  readonly close: (last: readonly Kept[]) => Promise<void>;
}

/**
 * Settlements that are written at once, and bytes of theirs: every proxy begins at the same time, and reservations,
 * which have less time, go over the same connections.
 */
const atOnce = 16;
const bytesAtOnce = 1_048_576;
/** Pause before what failed is tried once more, and how long that goes on after a fail-over, milliseconds. */
const pauseMs = 500;
const offeredForMs = 30_000;
/** How long each of the two steps of `close` goes on, and the pause in the second, milliseconds. */
const lastMs = 1_000;
const lastPauseMs = 100;

interface ReofferingDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly report: SettlementReport;
  readonly send: (settling: Settling) => Promise<Result<Completed | Released | Marked, StoreFailure>>;
  /** It is there again, and may be lost once more. */
  readonly onThere: (settling: Settling) => void;
  /** The store did not take them in time: the next fail-over may bring one that does. */
  readonly onLeft: (left: readonly Kept[]) => void;
}

export function createReoffering({ clock, timers, report, send, onThere, onLeft }: ReofferingDeps): Reoffering {
  let queue: Kept[] = [];
  /** Fail-overs so far: a reply that comes after another one says nothing any more. */
  let started = 0;
  let untilMs = 0;
  /** How many are under way, and their bytes. */
  let active = 0;
  let bytes = 0;
  let closesAtMs = Infinity;
  /** Whether what is offered is what a shutdown leaves. */
  let isLast = false;
  let running: Promise<void> | null = null;
  let endPause = (): void => undefined;

  return {
    start: (kept) => {
      queue = [...queue, ...kept];
      started += 1;
      untilMs = clock.monotonic() + offeredForMs;
      if (running !== null || queue.length === 0) return;
      running = run(report.offeredAgain);
    },
    close: async (last) => {
      closesAtMs = clock.monotonic() + lastMs;
      endPause();
      await running;
      if (last.length === 0) return;
      isLast = true;
      closesAtMs = clock.monotonic() + lastMs;
      queue = [...queue, ...last];
      running = run(report.offeredLast);
      await running;
    },
  };

  async function run(tell: (sum: Readonly<ReofferResult>) => void): Promise<void> {
    const sum: ReofferResult = { offered: 0, repaired: 0, ranTwice: 0, left: 0 };
    while (queue.length > 0) {
      const failed: Kept[] = [];
      await new Promise<void>((resolve) => {
        sendMore(sum, failed, resolve);
      });
      // What came with another fail-over in the meantime is in the queue by itself.
      queue = [...queue, ...failed];
      if (failed.length === 0 && !isTooLate()) continue;
      if (mayGoOn()) await pause();
      else {
        sum.left += queue.length;
        onLeft(queue);
        queue = [];
      }
    }
    running = null;
    tell(sum);
  }

  /** Whether there is time to try once more what the store did not take. */
  function mayGoOn(): boolean {
    if (isLast) return clock.monotonic() + lastPauseMs < closesAtMs;
    return closesAtMs === Infinity && clock.monotonic() + pauseMs < untilMs;
  }

  async function pause(): Promise<void> {
    await new Promise<void>((resolve) => {
      const callOff = timers.after(isLast ? lastPauseMs : pauseMs, resolve);
      endPause = () => {
        callOff();
        resolve();
      };
    });
  }

  function isTooLate(): boolean {
    return clock.monotonic() >= closesAtMs;
  }

  /**
   * Sends as many as may be under way; calls back once none is, and none may be sent. Each one that fails takes up a
   * place until the next round, so that a store that is away is not offered all of them.
   */
  function sendMore(sum: ReofferResult, failed: Kept[], onDone: () => void): void {
    for (let first = queue[0]; first !== undefined && mayGo(first, failed.length); first = queue[0]) {
      queue.shift();
      active += 1;
      bytes += first.bytes;
      void offer(first, sum, failed).finally(() => {
        active -= 1;
        bytes -= first.bytes;
        sendMore(sum, failed, onDone);
      });
    }
    if (active === 0) onDone();
  }

  function mayGo(kept: Kept, failed: number): boolean {
    const fits = bytes === 0 || bytes + kept.bytes <= bytesAtOnce;
    return fits && active + failed < atOnce && !isTooLate();
  }

  async function offer(kept: Kept, sum: ReofferResult, failed: Kept[]): Promise<void> {
    const before = started;
    const reply = await send(kept.settling);
    if (!reply.ok) failed.push(kept);
    else if (started !== before && reply.value !== 'fenced' && !isNoDoubt(kept.settling, reply.value)) queue.push(kept);
    else {
      sum.offered += 1;
      take(kept.settling, reply.value, sum);
    }
  }

  function take(settling: Settling, reply: Completed | Released | Marked, sum: ReofferResult): void {
    if (reply === 'fenced') {
      // Another attempt took the mark over, as it may; that the first attempt was in doubt was told already.
      if (settling.deduplicates && settling.write.kind === 'mark') return;
      sum.ranTwice += 1;
      report.foundFenced(settling, sum.ranTwice);
      return;
    }
    if (reply === 'repaired') {
      sum.repaired += 1;
      report.foundLost();
    }
    if (!isNoDoubt(settling, reply)) onThere(settling);
  }
}
