import type { Completed, Marked, Released } from '../../decision/idempotency/record.js';
import type { Result } from '../../lib/result.js';
import type { Clock, Timers } from '../../ports/system.js';
import type { ReservationStore, StoreFailure } from '../../ports/idempotency.js';
import { isNoDoubt, isTooOld, keptAt, momentOf, type Kept } from './recent-settlements.js';
import type { Settling } from './settlement-queue.js';
import type { ReofferResult, SettlementReport } from './settlement-report.js';

/** Writes to the store once more what it may have forgotten. What it holds already stays as it is. */
interface Reoffering {
  /** After a fail-over. */
  readonly start: (kept: readonly Kept[]) => void;
  /** What was asked of the store before the last fail-over, and answered since. */
  readonly add: (kept: Kept) => void;
  /**
   * What was left, once more, without a word where nothing is taken or given up; `forgotten` of it could not be kept.
   * Where nothing is left it tells what is still to be told.
   */
  readonly retry: (left: readonly Kept[], forgotten: number) => void;
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
/** Failures with the same problem of the store after which what else has that problem waits for the next round. */
const mostInVain = 4;
/** Pause before what failed is tried once more, and how long that goes on after a fail-over, milliseconds. */
const pauseMs = 500;
const offeredForMs = 30_000;
/** How often it is told at most what became of what was left, milliseconds, while some of it still is. */
const tellEveryMs = 30_000;
/** How long each of the two steps of `close` goes on, and the pause in the second, milliseconds. */
const lastMs = 1_000;
const lastPauseMs = 100;

interface ReofferingDeps {
  readonly store: Pick<ReservationStore, 'problemOf'>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly report: SettlementReport;
  readonly send: (settling: Settling) => Promise<Result<Completed | Released | Marked, StoreFailure>>;
  /** It is there again, and may be lost once more. */
  readonly onThere: (kept: Kept) => void;
  /** The store did not take them in time: it may later. Those that were not tried come first. */
  readonly onLeft: (left: readonly Kept[]) => void;
}

/** One time through what is queued. */
interface Round {
  /** How many are taken off the queue: it has tens of thousands, each of which would move up. */
  taken: number;
  readonly failed: Kept[];
  /** Not tried, since others failed with the problem that the store has with them. */
  readonly aside: Kept[];
  /** How many of those that failed take up a place each. */
  held: number;
  /** How many failed, by the problem that the store has with them. */
  readonly inVain: Map<string, number>;
  /** What the store says of each caller's part since the last one failed. */
  readonly problems: Map<string, string | null>;
}

export function createReoffering(deps: ReofferingDeps): Reoffering {
  const { store, clock, timers, report, send, onThere, onLeft } = deps;
  let queue: Kept[] = [];
  /** What became of those that were offered, and is not told yet. */
  let sum = nothingYet();
  /** How many ran twice since the last fail-over: not all are named. */
  let ranTwice = 0;
  /** From when on it may be told what became of retries that leave something. */
  let tellsAtMs = -Infinity;
  /** Fail-overs so far: a reply that comes after another one says nothing any more. */
  let started = 0;
  let untilMs = 0;
  /** Whether what is offered is only what was left before. */
  let isRetry = false;
  /** Left by such a one that a shutdown met. */
  let untold: readonly Kept[] = [];
  /** How many are under way, and their bytes. */
  let active = 0;
  let bytes = 0;
  let closesAtMs = Infinity;
  /** Whether what is offered is what a shutdown leaves. */
  let isLast = false;
  let isRunning = false;
  /** The end of the last run. */
  let running: Promise<void> = Promise.resolve();
  let endPause = (): void => undefined;

  return {
    start: (kept) => {
      started += 1;
      ranTwice = 0;
      offerFor(offeredForMs, kept);
    },
    add: (kept) => {
      offerFor(offeredForMs, [kept]);
    },
    retry: (left, forgotten) => {
      if (closesAtMs !== Infinity) return;
      sum.left += forgotten;
      offerFor(0, left);
    },
    close: async (last) => {
      closesAtMs = clock.monotonic() + lastMs;
      endPause();
      await ended();
      if (hasNews()) tell(report.offeredAgain);
      queue = [...queue, ...last, ...untold];
      if (queue.length === 0) return;
      isLast = true;
      isRetry = false;
      closesAtMs = clock.monotonic() + lastMs;
      running = run();
      await ended();
    },
  };

  function offerFor(ms: number, kept: readonly Kept[]): void {
    queue = [...queue, ...kept];
    untilMs = Math.max(untilMs, clock.monotonic() + ms);
    isRetry = ms === 0 && (isRetry || !isRunning);
    if (!isRunning && (queue.length > 0 || hasNews())) running = run();
  }

  /** What comes between the end of a run and whoever waited for it begins another. */
  async function ended(): Promise<void> {
    while (isRunning) await running;
  }

  async function run(): Promise<void> {
    isRunning = true;
    let isLeft = false;
    while (hasYoung()) {
      const round: Round = { taken: 0, failed: [], aside: [], held: 0, inVain: new Map(), problems: new Map() };
      await new Promise<void>((resolve) => {
        sendMore(round, resolve);
      });
      // What came with another fail-over in the meantime is in the queue by itself.
      queue = [...queue.slice(round.taken), ...round.aside, ...round.failed];
      if (round.failed.length === 0 && !isTooLate()) continue;
      if (mayGoOn()) await pause();
      else {
        isLeft = queue.length > 0;
        leave();
        queue = [];
      }
    }
    isRunning = false;
    if (isLast) tell(report.offeredLast);
    else if (!isRetry || (hasNews() && !(isLeft && clock.monotonic() < tellsAtMs))) tell(report.offeredAgain);
  }

  function hasNews(): boolean {
    return sum.offered + sum.left > 0;
  }

  function tell(how: (sum: Readonly<ReofferResult>) => void): void {
    const told = sum;
    sum = nothingYet();
    tellsAtMs = clock.monotonic() + tellEveryMs;
    how(told);
  }

  /** Drops those that are too old: an operator may have freed their keys, and the store may have forgotten that. */
  function hasYoung(): boolean {
    const young = queue.filter((kept) => !isTooOld(kept, clock));
    sum.left += queue.length - young.length;
    queue = young;
    return queue.length > 0;
  }

  function leave(): void {
    if (isRetry && closesAtMs !== Infinity) {
      untold = queue;
      return;
    }
    // What a retry leaves was told before, and is told once more only where it is given up.
    if (!isRetry) sum.left += queue.length;
    onLeft(queue);
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

  /** Sends as many as may be under way; calls back once none is, and none may be sent. */
  function sendMore(round: Round, onDone: () => void): void {
    for (let first = next(round); first !== undefined && mayGo(first, round.held); first = next(round)) {
      round.taken += 1;
      active += 1;
      bytes += first.bytes;
      void offer(first, round).finally(() => {
        active -= 1;
        bytes -= first.bytes;
        sendMore(round, onDone);
      });
    }
    if (active === 0) onDone();
  }

  /** The first that may be taken by the store, and is not too old by now: a round may take long. */
  function next(round: Round): Kept | undefined {
    for (let first = queue[round.taken]; first !== undefined; first = queue[round.taken]) {
      if (isTooOld(first, clock)) sum.left += 1;
      else if (isInVain(first, round)) round.aside.push(first);
      else return first;
      round.taken += 1;
    }
    return undefined;
  }

  function isInVain({ settling: { scope } }: Kept, { inVain, problems }: Round): boolean {
    if (inVain.size === 0) return false;
    if (!problems.has(scope.principal)) problems.set(scope.principal, store.problemOf(scope));
    const problem = problems.get(scope.principal) ?? null;
    return problem !== null && (inVain.get(problem) ?? 0) >= mostInVain;
  }

  function mayGo(kept: Kept, held: number): boolean {
    const fits = bytes === 0 || bytes + kept.bytes <= bytesAtOnce;
    return fits && active + held < atOnce && !isTooLate();
  }

  async function offer(kept: Kept, round: Round): Promise<void> {
    const before = started;
    const asked = momentOf(clock);
    const reply = await send(kept.settling);
    if (!reply.ok) fail(kept, round);
    else if (started !== before && reply.value !== 'fenced' && !isNoDoubt(kept.settling, reply.value)) queue.push(kept);
    else {
      sum.offered += 1;
      take(keptAt(kept.settling, asked), reply.value);
    }
  }

  /**
   * Each one that fails takes up a place until the next round, so that a store that is away is not offered all of them.
   * A part of it that is away leaves the places to the others. A problem alone says little: a new primary without
   * replicas has one, and takes them.
   */
  function fail(kept: Kept, round: Round): void {
    round.failed.push(kept);
    round.problems.clear();
    const problem = store.problemOf(kept.settling.scope);
    if (problem === null) {
      round.held += 1;
      return;
    }
    const inVain = (round.inVain.get(problem) ?? 0) + 1;
    round.inVain.set(problem, inVain);
    if (inVain < mostInVain) round.held += 1;
    if (inVain === mostInVain) round.held -= mostInVain - 1;
  }

  function take(kept: Kept, reply: Completed | Released | Marked): void {
    const { settling } = kept;
    if (reply === 'fenced') {
      // Another attempt took the mark over, as it may; that the first attempt was in doubt was told already.
      if (settling.deduplicates && settling.write.kind === 'mark') return;
      sum.ranTwice += 1;
      ranTwice += 1;
      report.foundFenced(settling, ranTwice);
      return;
    }
    if (reply === 'repaired') {
      sum.repaired += 1;
      report.foundLost();
    }
    if (!isNoDoubt(settling, reply)) onThere(kept);
  }
}

function nothingYet(): ReofferResult {
  return { offered: 0, repaired: 0, ranTwice: 0, left: 0 };
}
