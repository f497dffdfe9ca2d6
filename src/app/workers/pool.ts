/** The workers of a primary: started, replaced when they end, and given connections in turn. */
import { systemClock } from '../../adapters/system/clock.js';
import { noMetrics, retireMetrics, type MetricsData } from '../../adapters/metrics/merge.js';
import type { Counts } from '../../admin/status.js';
import { messageOf } from '../../lib/errors.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Log } from '../../ports/system.js';
import type { Traffic } from '../../ports/observability.js';
import { startFailure, type StartFailure } from '../start-failure.js';
import { createHandover, type Handover } from './handover.js';
import { createSharedCounts } from './limit-counts.js';
import type { Numbers, StartOrder } from './messages.js';
import { createSharedPlaces } from './shared-places.js';
import { addCounts, addTraffic } from './sums.js';
import { startWorkerProcess, type WorkerProcess } from './worker-process.js';

interface PoolDeps {
  readonly count: number;
  readonly program: string;
  readonly log: Log;
  /** What a worker that begins now is told. */
  readonly order: (number: number) => StartOrder;
  /** Another config on its way into force; `null` where none ever was. */
  readonly reloading: () => Promise<unknown> | null;
  readonly onLines: (lines: string) => void;
  /** A connection that no worker took yet gave way to another. */
  readonly onGaveWay: (waiting: number) => void;
  /** Whether a series with these labels is one of the config in force. */
  readonly isCounted: (labels: Readonly<Partial<Record<string, string | number>>>) => boolean;
  /** None serves, and worker after worker ends as soon as it does: the proxy cannot serve. Called once. */
  readonly onFailed: (failure: StartFailure) => void;
}

/** What workers counted that are gone. */
interface Retired {
  readonly metrics: MetricsData;
  readonly counts: Counts | null;
  readonly traffic: Traffic | null;
}

export interface Pool {
  /** Starts all of them; why one of them cannot serve. */
  readonly start: () => Promise<StartFailure | null>;
  /** Those that serve. */
  readonly serving: () => readonly WorkerProcess[];
  readonly count: number;
  /** How many ended that nobody had asked to. */
  readonly deaths: () => number;
  readonly retired: () => Retired;
  readonly give: Handover['give'];
  /** Another config is in force: what was counted of parts that it does not have is forgotten. */
  readonly forgetSeries: () => void;
  /** From now on none is replaced. */
  readonly stop: () => void;
  /** Ends those that are left, and waits for all. */
  readonly close: () => Promise<void>;
}

/** A worker that serves for so long began well, milliseconds. */
const youngMs = 5_000;

/** After this many in a row in each place that end before that, or cannot be started, the proxy ends. */
const mostYoungDeaths = 10;

/** Before a worker is replaced whose last one ended young, milliseconds: doubled each time. */
const firstPauseMs = 100;
const longestPauseMs = 5_000;

/** How often workers are asked for their counts, milliseconds: a worker that is killed loses those since then. */
const numbersEveryMs = 1_000;

/** A worker that answers nothing for so long is stuck, milliseconds. */
const longestSilenceMs = 30_000;

/** The same before its first answer: where CPU is scarce, it takes long to load the program. */
const longestLoadMs = 120_000;

export function createPool(deps: PoolDeps): Pool {
  const { count, log } = deps;
  const everyNumber = Array.from({ length: count }, (_, index) => index + 1);
  const shared = createSharedCounts();
  const places = createSharedPlaces(count, systemClock.monotonic);
  const serving = new Map<number, WorkerProcess>();
  /** Those whose process runs, serving or not. */
  const alive = new Set<WorkerProcess>();
  let retired: Retired = { metrics: noMetrics, counts: null, traffic: null };
  let deaths = 0;
  /** How many in a row ended young, or could not be started, by their number: what ends all at once counts once. */
  const youngDeaths = new Map<number, number>();
  let isStopping = false;
  const stops = (): boolean => isStopping;
  let looking: NodeJS.Timeout | undefined;

  const killAll = (): void => {
    for (const worker of alive) worker.kill();
  };

  const handover = createHandover({ takers: () => [...serving.values()], onGaveWay: deps.onGaveWay });

  /** Nobody takes what waits any more. */
  function dropWhereOver(): void {
    if (isStopping && serving.size === 0) handover.drop();
  }

  /**
   * Starts a process. For want of memory, as for most that may be wrong, Node.js throws. For EACCES, EAGAIN, EMFILE,
   * ENFILE and ENOENT it does not: such a one has ended early.
   */
  function launch(number: number): Result<WorkerProcess, StartFailure> {
    try {
      const worker = startWorkerProcess(number, {
        program: deps.program,
        nowMs: systemClock.monotonic,
        counts: shared.ofWorker(),
        places,
        onLines: deps.onLines,
        onFree: handover.goOn,
        onGone: () => {
          // In one turn: whoever adds up finds its numbers in one place, and in one only.
          serving.delete(number);
          if (worker.servingMs() >= youngMs) youngDeaths.set(number, 0);
          retire(worker.lastNumbers());
          dropWhereOver();
        },
        onLeft: (left) => {
          for (const accepted of left) handover.give(accepted);
        },
      });
      return accept(worker);
    } catch (error) {
      return refuse(notStarted(number, error));
    }
  }

  /** Starts one; resolves when it serves, or with why it does not. */
  async function begin(number: number): Promise<StartFailure | null> {
    const launched = launch(number);
    if (!launched.ok) return launched.error;
    const worker = launched.value;
    alive.add(worker);
    const ended = worker.ended.then((end) => {
      alive.delete(worker);
      return end;
    });
    const order = deps.order(number);
    const serve = (): void => {
      worker.serves();
      serving.set(number, worker);
    };
    const endedEarly = async (): Promise<StartFailure> => {
      const { code, signal, problem } = await ended;
      if (problem !== null) return notStarted(number, problem);
      return startFailure(
        'unavailable',
        `worker ${String(number)} ended before it served: ${signal ?? `exit code ${String(code)}`}`,
      );
    };
    let failure: StartFailure | null;
    try {
      failure = (await worker.call('start', order)) ?? (await catchUp(worker, order, serve));
      // It may have ended while nothing was asked of it.
      if (failure === null && worker.isGone()) failure = await endedEarly();
    } catch (error) {
      failure = worker.isGone() ? await endedEarly() : failedEarly(number, error);
    }
    if (failure !== null) {
      worker.kill();
      await ended;
      return failure;
    }
    if (isStopping) {
      worker.kill();
      return null;
    }
    log.info('a worker serves', { number, worker_pid: worker.pid });
    handover.goOn();
    void ended.then(({ code, signal }) => {
      if (isStopping) return;
      deaths += 1;
      log.error(
        'a worker ended and is replaced: of writes that it had under way it is not known whether they were applied',
        {
          number,
          worker_pid: worker.pid,
          code,
          signal,
        },
      );
      void again(number, worker.servingMs() < youngMs);
    });
    return null;
  }

  /**
   * Tells a worker what was put in force, or shown to callers, while it started. It is one of those that serve in the
   * same turn in which nothing is left to tell: from then on it is told with the others.
   */
  async function catchUp(worker: WorkerProcess, known: StartOrder, serve: () => void): Promise<StartFailure | null> {
    let { current, tls } = known;
    for (;;) {
      const under = deps.reloading();
      await under;
      if (under !== deps.reloading()) continue;
      const now = deps.order(worker.number);
      if (isStopping || worker.isGone()) return null;
      if (now.current === current && now.tls === tls) {
        serve();
        return null;
      }
      if (now.tls !== null && now.tls !== tls) await worker.call('tls', now.tls);
      if (now.current !== null && now.current !== current) {
        const problem = (await worker.call('prepare', now.current)) ?? (await worker.call('conclude', true));
        if (problem !== null) return startFailure('invalid', problem);
      }
      ({ current, tls } = now);
    }
  }

  /** Starts one in the place of another, until one serves. */
  async function again(number: number, wasYoung: boolean): Promise<void> {
    let inARow = wasYoung ? (youngDeaths.get(number) ?? 0) + 1 : 0;
    for (;;) {
      youngDeaths.set(number, inARow);
      if (cannotServe()) {
        stop();
        deps.onFailed(
          startFailure(
            'unavailable',
            `no worker serves, and in the place of each ${String(mostYoungDeaths)} in a row ended as soon as they had begun, or could not be started`,
          ),
        );
        return;
      }
      if (inARow > 0) await pause(Math.min(longestPauseMs, firstPauseMs * 2 ** (inARow - 1)));
      if (stops()) return;
      const failure = await begin(number);
      if (failure === null || stops()) return;
      inARow += 1;
      log.error('a worker cannot be replaced', { number, problems: failure.messages });
    }
  }

  function cannotServe(): boolean {
    return serving.size === 0 && everyNumber.every((number) => (youngDeaths.get(number) ?? 0) >= mostYoungDeaths);
  }

  function stop(): void {
    isStopping = true;
    clearInterval(looking);
    dropWhereOver();
  }

  function retire(numbers: Numbers | null): void {
    if (numbers === null) return;
    retired = {
      metrics: retireMetrics(retired.metrics, numbers.metrics, deps.isCounted),
      counts: retired.counts === null ? numbers.counts : addCounts(retired.counts, numbers.counts),
      traffic: retired.traffic === null ? numbers.traffic : addTraffic(retired.traffic, numbers.traffic),
    };
  }

  /** One that starts is asked too: as soon as its program is loaded, it answers that it has not started. */
  function look(): void {
    places.look();
    for (const worker of alive) {
      if (worker.silentMs() > (worker.hasSpoken() ? longestSilenceMs : longestLoadMs)) {
        log.error('a worker does not answer and is ended', { number: worker.number, worker_pid: worker.pid });
        worker.kill();
      } else {
        void worker.call('numbers', null).catch(() => undefined);
      }
    }
  }

  return {
    count,
    start: async () => {
      // By a second signal or a bug it ends at once. A worker that does not run would not notice, and stay for ever.
      process.once('exit', killAll);
      clearInterval(looking);
      // Where we stood still ourselves, what came meanwhile is read before anybody is called silent.
      looking = setInterval(() => setImmediate(look), numbersEveryMs).unref();
      const failures = await Promise.all(everyNumber.map(begin));
      return failures.find((failure) => failure !== null) ?? null;
    },
    serving: () => [...serving.values()],
    deaths: () => deaths,
    retired: () => retired,
    give: (accepted) => {
      handover.give(accepted);
      dropWhereOver();
    },
    forgetSeries: () => {
      retired = { ...retired, metrics: retireMetrics(noMetrics, retired.metrics, deps.isCounted) };
    },
    stop,
    close: async () => {
      isStopping = true;
      clearInterval(looking);
      handover.drop();
      killAll();
      await Promise.all([...alive].map(async ({ ended }) => ended));
      process.off('exit', killAll);
    },
  };
}

function notStarted(number: number, error: unknown): StartFailure {
  return startFailure('unavailable', `worker ${String(number)} cannot be started: ${messageOf(error)}`);
}

/** A worker that runs and does not do as it was told. */
function failedEarly(number: number, error: unknown): StartFailure {
  return startFailure('unavailable', `worker ${String(number)} failed before it served: ${messageOf(error)}`);
}

async function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
