/**
 * Everything that stores, networks, clocks and processes do to reserved writes, one after the other and at once; and
 * what came of it.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { createUpheavalLedger, type Breach } from './upheaval-ledger.js';
import { startUpheavalDeployment } from './upheaval-deployment.js';

export interface UpheavalOptions {
  readonly seconds: number;
  /** A part of the names of the disturbances that there are to be; all of them unless given. */
  readonly only?: string;
}

export interface UpheavalReport {
  readonly writes: number;
  readonly answers: Readonly<Record<string, number>>;
  readonly disturbances: Readonly<Record<string, number>>;
  readonly cuts: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly breaches: readonly Breach[];
  /** The disturbances, in order, with their times of `performance.now()`. */
  readonly journal: readonly Disturbance[];
}

export interface Disturbance {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Writes that begin each second, and that are under way at once at most. */
const writesPerSecond = 20;
const maxOpen = 400;
const routes = ['plain', 'plain', 'reports', 'deduplicates', 'single'] as const;

/** After these nobody repeats; the others are repeated as docs/idempotency.md asks. */
const final: ReadonlySet<string> = new Set([
  '201',
  '401',
  'idempotency-outcome-unknown',
  'idempotency-result-not-replayable',
  'upstream-failed',
  'upstream-timeout',
]);

export async function upheave(t: Scope, { seconds, only = '' }: UpheavalOptions): Promise<UpheavalReport> {
  const ledger = createUpheavalLedger();
  const deployment = await startUpheavalDeployment(t, ledger);
  const done = new Map<string, number>();
  const journal: Disturbance[] = [];
  const endMs = performance.now() + seconds * 1000;
  const isOver = (): boolean => performance.now() > endMs;
  const open = new Set<Promise<void>>();

  await Promise.all([
    (async () => {
      while (!isOver()) {
        if (open.size < maxOpen) begin();
        await sleep((Math.random() * 2_000) / writesPerSecond);
      }
      await Promise.all(open);
    })(),
    // Two kinds at a time: what each alone does not find, both together may.
    ...[0, 1].map(async () => {
      while (!isOver()) {
        await deployment.settled();
        await sleep(500 + Math.random() * 5_000);
        await disturb();
      }
    }),
  ]);
  await deployment.heal();
  const metrics: Record<string, number> = {};
  for (const name of ['duplicate_dispatches', 'lost_reservations', 'unknown_outcomes', 'store_failovers']) {
    metrics[`sallyport_${name}_total`] = await deployment.metric(`sallyport_${name}_total`);
  }
  return {
    writes: ledger.writes(),
    answers: ledger.counts(),
    disturbances: Object.fromEntries([...done].sort()),
    cuts: deployment.cuts(),
    metrics,
    breaches: ledger.breaches(deployment.lives()),
    journal,
  };

  function begin(): void {
    const one = write().finally(() => open.delete(one));
    open.add(one);
  }

  async function disturb(): Promise<void> {
    const names = Object.keys(deployment.disturbances).filter((name) => name.includes(only));
    const name = names[Math.floor(Math.random() * names.length)] ?? '';
    const fromMs = performance.now();
    await deployment.disturbances[name]?.();
    journal.push({ name, fromMs, toMs: performance.now() });
    done.set(name, (done.get(name) ?? 0) + 1);
  }

  /**
   * Asks until there is a final answer, at either proxy, some seconds long; and once more after a while, as callers do
   * who forgot.
   */
  async function write(): Promise<void> {
    const route = routes[Math.floor(Math.random() * routes.length)] ?? 'plain';
    const key = randomUUID();
    const claims = route === 'single' ? { jti: key } : {};
    for (let turn = 0; turn < 8; turn += 1) {
      const answered = await ask(route, key, claims);
      if (isOver()) return;
      if (final.has(answered) && turn < 6) turn = 6;
      await sleep(turn < 6 ? Math.random() * 500 * 2 ** turn : Math.random() * 4_000);
    }
  }

  async function ask(route: string, key: string, claims: Readonly<Record<string, unknown>>): Promise<string> {
    const requestId = randomUUID();
    ledger.asked(route, key, requestId);
    const port = deployment.ports[Math.random() < 0.5 ? 0 : 1] ?? 0;
    const headers = {
      Authorization: `Bearer ${deployment.token(claims)}`,
      'Idempotency-Key': key,
      'X-Request-Id': requestId,
    };
    const answer = await request(
      port,
      { method: 'POST', path: `/${route}`, headers, body: `order ${key}` },
      { limitMs: 20_000 },
    ).catch(() => null);
    return ledger.answered(route, key, requestId, answer);
  }
}

/** For a terminal. */
export function linesOf({
  writes,
  answers,
  disturbances,
  cuts,
  metrics,
  breaches,
  journal,
}: UpheavalReport): readonly string[] {
  const kinds = new Map<string, Breach[]>();
  for (const breach of breaches) kinds.set(breach.what, [...(kinds.get(breach.what) ?? []), breach]);
  return [
    `${String(writes)} writes; ${String(cuts)} connections cut at a random byte`,
    ...Object.entries(disturbances).map(([name, times]) => `disturbance: ${name}: ${String(times)}`),
    ...Object.entries(answers).map(([answered, times]) => `answer: ${answered}: ${String(times)}`),
    ...Object.entries(metrics).map(([name, value]) => `metric: ${name} ${String(value)}`),
    ...[...kinds].map(
      ([what, all]) =>
        `violation: ${what}: ${String(all.length)}, of which ${String(all.filter(isTold).length)} were told, ${String(all.filter(isOrphan).length)} by nobody who lived`,
    ),
    ...breaches
      .filter((breach) => !isTold(breach))
      .slice(0, 20)
      .flatMap(({ what, route, key, detail, gone }) => [
        `UNTOLD: ${what}: ${route} ${key}: ${detail}; its process: ${gone ?? 'lives'}`,
      ]),
    ...(breaches.every(isTold)
      ? []
      : journal.map(
          ({ name, fromMs, toMs }) => `${(fromMs / 1_000).toFixed(2)}-${(toMs / 1_000).toFixed(2)} s: ${name}`,
        )),
    breaches.length === 0
      ? 'no violation'
      : breaches.every((breach) => isTold(breach) || isOrphan(breach))
        ? 'every violation was told, but for those that only a killed process could have told of'
        : 'THERE ARE VIOLATIONS THAT NOBODY TOLD OF',
  ];
}

/** Whether the log names it, as the metrics count it. */
export function isTold({ told }: Breach): boolean {
  return told.length > 0;
}

/**
 * Whether only a process could have noticed that was killed before: the store has forgotten the write, and whoever sent
 * it remembers nothing any more. docs/guarantees.md says so.
 */
export function isOrphan({ what, told, gone }: Breach): boolean {
  return what === 'a write ran twice' && told.length === 0 && (gone === 'SIGKILL' || gone === 'without a line');
}
