import type { Completed, Marked, Released } from '../../decision/reservation.js';
import type { Result } from '../../decision/result.js';
import type { Clock, StoreFailure, Timers } from '../../ports.js';
import type { SettlementReport } from './settlement-report.js';
import type { OfferedAgain, Settling } from './settling.js';

/** Writes to the store once more what it may have forgotten. What it holds already stays as it is. */
export interface OfferingAgain {
  readonly start: (settlings: readonly Settling[]) => void;
}

/** Settlements that are written at once. */
const atOnce = 16;
/** Pause before what failed is tried once more, and how long that goes on after a fail-over, milliseconds. */
const pauseMs = 500;
const patienceMs = 30_000;

export interface OfferingAgainDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly report: SettlementReport;
  readonly send: (settling: Settling) => Promise<Result<Completed | Released | Marked, StoreFailure>>;
  /** It is there again, and may be lost once more. */
  readonly onThere: (settling: Settling) => void;
}

export function createOfferingAgain({ clock, timers, report, send, onThere }: OfferingAgainDeps): OfferingAgain {
  let queue: Settling[] = [];
  /** Fail-overs so far: an answer that comes after another one says nothing any more. */
  let started = 0;
  let untilMs = 0;
  let isRunning = false;

  return {
    start: (settlings) => {
      queue = [...queue, ...settlings];
      started += 1;
      untilMs = clock.monotonic() + patienceMs;
      if (isRunning || queue.length === 0) return;
      isRunning = true;
      void run();
    },
  };

  async function run(): Promise<void> {
    const sum: OfferedAgain = { offered: 0, repaired: 0, ranTwice: 0, left: 0 };
    while (queue.length > 0) {
      const failed: Settling[] = [];
      await Promise.all(Array.from({ length: Math.min(atOnce, queue.length) }, async () => work(sum, failed)));
      // What came with another fail-over in the meantime is in the queue by itself.
      queue = [...queue, ...failed];
      if (failed.length === 0) continue;
      if (clock.monotonic() + pauseMs >= untilMs) {
        sum.left = queue.length;
        queue = [];
      } else await new Promise<void>((resolve) => timers.after(pauseMs, resolve));
    }
    isRunning = false;
    report.offeredAgain(sum);
  }

  async function work(sum: OfferedAgain, failed: Settling[]): Promise<void> {
    for (let settling = queue.shift(); settling !== undefined; settling = queue.shift()) {
      const before = started;
      const answer = await send(settling);
      if (!answer.ok) {
        failed.push(settling);
        // One that fails says enough of the others.
        return;
      }
      if (started !== before && answer.value !== 'fenced') {
        queue.push(settling);
        continue;
      }
      sum.offered += 1;
      take(settling, answer.value, sum);
    }
  }

  function take(settling: Settling, answer: Completed | Released | Marked, sum: OfferedAgain): void {
    if (answer === 'fenced') {
      // A mark was taken over, as it may be; that the first attempt was in doubt has been told.
      if (settling.deduplicates && settling.write.kind === 'mark') return;
      sum.ranTwice += 1;
      report.foundFenced(settling, sum.ranTwice);
      return;
    }
    if (answer === 'repaired') {
      sum.repaired += 1;
      report.foundLost();
    }
    onThere(settling);
  }
}
