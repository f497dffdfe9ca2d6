/** The pages of operators and monitors where several workers serve: each is told as by one proxy. */
import {
  mergedOpenMetrics,
  mergedText,
  mergeMetrics,
  metricsData,
  type MetricsPart,
} from '../../adapters/metrics/merge.js';
import type { ProcessMetrics } from '../../adapters/metrics/metrics.js';
import { createRefusedRequests } from '../../admin/console/refusals.js';
import type { Readiness } from '../../admin/readiness.js';
import type { CreatePage, Page } from '../../admin/server.js';
import type { Status } from '../../admin/status.js';
import type { MetricsSnapshot } from '../../ports/tracing.js';
import { collectSparingly } from '../admin-servers.js';
import { forgottenRefusal, json, mostInDoubt, shownInDoubt, type ConsoleState } from '../console/pages.js';
import { mergeReadiness, mergeStatuses } from './merge-status.js';
import type { CallName, Numbers, WorkerCalls } from './messages.js';
import type { Pool } from './pool.js';
import { addCounts, addTraffic } from './sums.js';
import type { WorkerProcess } from './worker-process.js';

interface SharedPagesDeps {
  readonly pool: Pool;
  /** What the primary counts itself. */
  readonly metrics: ProcessMetrics;
  readonly isServing: () => boolean;
  /** What of the status is the primary's to tell. */
  readonly own: () => Pick<Status, 'pid' | 'started_at' | 'phase' | 'listeners' | 'restart_needed'> & {
    readonly config: Pick<Status['config'], 'loaded_at' | 'last_reload_error'>;
    readonly reloads: Status['counts']['config_reloads'];
  };
  readonly nowMs: () => number;
}

interface SharedPages {
  readonly readiness: () => Promise<Readiness>;
  /** `null` where no worker answers. */
  readonly status: () => Promise<Status | null>;
  readonly expose: () => Promise<string>;
  readonly exposeOpenMetrics: () => Promise<string>;
  /** A page that any worker shows; `null` where none answers. */
  readonly page: (path: string, query?: string) => Promise<Page | null>;
  readonly console: Readonly<Record<string, CreatePage>>;
}

/** Kubelet waits for a second for a probe; a worker that takes longer is as good as none. */
const probeWithinMs = 700;
const answerWithinMs = 2_000;

/** How many refusals are remembered with the worker that has them. */
const mostOrigins = 10_000;

export function createSharedPages({ pool, metrics, isServing, own, nowMs }: SharedPagesDeps): SharedPages {
  const refused = createRefusedRequests();
  /** Of a refusal here, the worker that has it and its number there. */
  const origins = new Map<number, { readonly worker: WorkerProcess; readonly id: number }>();
  /** The last one that was taken from each worker. */
  const seen = new WeakMap<WorkerProcess, number>();

  /** Answers of those that answer in time. */
  async function ask<Name extends CallName>(
    name: Name,
    given: WorkerCalls[Name]['given'],
    withinMs = answerWithinMs,
  ): Promise<readonly { readonly worker: WorkerProcess; readonly answer: WorkerCalls[Name]['answer'] }[]> {
    const asked = await Promise.allSettled(
      pool.serving().map(async (worker) => ({ worker, answer: await worker.call(name, given, withinMs) })),
    );
    return asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  }

  /**
   * Of one that does not answer, what it said last: totals never fall. To be read in one turn with what those that are
   * gone counted: one that goes in between would be in both, or in neither.
   */
  function lastNumbers(): readonly { readonly worker: WorkerProcess; readonly numbers: Numbers }[] {
    return pool.serving().flatMap((worker) => {
      const last = worker.lastNumbers();
      return last === null ? [] : [{ worker, numbers: last }];
    });
  }

  async function snapshot(): Promise<MetricsSnapshot> {
    await ask('numbers', null);
    const primary = metricsData(await metrics.snapshot());
    const parts: readonly MetricsPart[] = [
      { worker: 'primary', data: primary },
      { worker: '', data: pool.retired().metrics },
      ...lastNumbers().map(({ worker, numbers: { metrics: data } }) => ({ worker: String(worker.number), data })),
    ];
    return mergeMetrics(parts);
  }

  async function page(path: string, query = ''): Promise<Page | null> {
    for (const worker of pool.serving()) {
      const found = await worker.call('page', { path, query }, answerWithinMs).catch(() => null);
      if (found !== null) return found;
    }
    return null;
  }

  async function status(): Promise<Status | null> {
    const answers = await ask('status', null);
    // What one counted that is gone by now is with those that are gone.
    const still = new Set(pool.serving());
    const [first, ...others] = answers.flatMap(({ worker, answer }) => (still.has(worker) ? [answer] : []));
    if (first === undefined) return null;
    const merged = mergeStatuses(first, others);
    const answered = new Set(answers.map(({ worker }) => worker));
    const silent = lastNumbers().flatMap(({ worker, numbers }) => (answered.has(worker) ? [] : [numbers.counts]));
    const { config, reloads, ...rest } = own();
    const { counts } = pool.retired();
    const all = [...silent, ...(counts === null ? [] : [counts])].reduce(addCounts, merged.counts);
    return {
      ...merged,
      ...rest,
      readiness: await readiness(),
      config: { ...merged.config, ...config },
      counts: { ...all, config_reloads: reloads },
      workers: {
        count: pool.count,
        replaced: pool.deaths(),
        serving: pool.serving().map(({ number, pid, servingMs }) => ({
          number,
          pid,
          serving_s: Math.round(servingMs() / 1000),
        })),
      },
    };
  }

  async function readiness(): Promise<Readiness> {
    const answers = await ask('readiness', null, probeWithinMs);
    return mergeReadiness(
      answers.map(({ answer }) => answer),
      pool.count,
      isServing(),
    );
  }

  async function takeRefusals(): Promise<void> {
    await Promise.all(
      pool.serving().map(async (worker) => {
        const entries = await worker.call('refusals', seen.get(worker) ?? 0, answerWithinMs).catch(() => []);
        for (const entry of [...entries].reverse()) {
          if (entry.id <= (seen.get(worker) ?? 0)) continue;
          seen.set(worker, entry.id);
          origins.set(refused.adopt(entry), { worker, id: entry.id });
        }
      }),
    );
    for (const id of origins.keys()) {
      if (origins.size <= mostOrigins) break;
      origins.delete(id);
    }
  }

  /** What the console polls. */
  const collectState = collectSparingly(async () => {
    await takeRefusals();
    await ask('numbers', null);
    const counted = lastNumbers().map(({ numbers: { traffic } }) => traffic);
    const retired = pool.retired().traffic;
    const traffic = [...counted, ...(retired === null ? [] : [retired])].reduce(addTraffic, metrics.traffic());
    return { traffic, doubtful: (await ask('inDoubt', mostInDoubt)).flatMap(({ answer }) => answer) };
  });

  async function state(query: URLSearchParams): Promise<Page> {
    const { traffic, doubtful } = await collectState();
    const shown: ConsoleState = {
      at_ms: nowMs(),
      traffic,
      refusals: refused.after(Number(query.get('after') ?? 0) || 0),
      in_doubt: [...doubtful]
        .sort((one, other) => other.ageMs - one.ageMs)
        .slice(0, mostInDoubt)
        .map(shownInDoubt),
    };
    return json(200, shown);
  }

  async function explain(query: URLSearchParams): Promise<Page> {
    const id = query.get('refusal');
    if (id === null) return passOn('/console/explain', query);
    const origin = origins.get(Number(id));
    const found =
      origin === undefined
        ? null
        : await origin.worker
            .call('page', { path: '/console/explain', query: `refusal=${String(origin.id)}` }, answerWithinMs)
            .catch(() => null);
    return found ?? forgottenRefusal;
  }

  async function passOn(path: string, query: URLSearchParams): Promise<Page> {
    return (await page(path, query.toString())) ?? unanswered;
  }

  return {
    readiness,
    status,
    expose: async () => mergedText(await snapshot()),
    exposeOpenMetrics: async () => mergedOpenMetrics(await snapshot()),
    page,
    console: {
      '/': async (query) => passOn('/', query),
      '/console/state': state,
      '/console/access': async (query) => passOn('/console/access', query),
      '/console/explain': explain,
      '/console/claims': async (query) => passOn('/console/claims', query),
    },
  };
}

const unanswered: Page = json(503, { problem: 'no worker answers' });
