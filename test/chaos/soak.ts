/** Everything at once, for a while: a model decides after each answer whether it was right. */
import type { Test } from 'tap';
import type { LogLine } from '../support/serve-process.js';
import { createSoakModel } from './soak-model.js';
import { soakCallers } from './soak-callers.js';
import { startSoakDeployment, type Footprint, type SoakDeployment } from './soak-deployment.js';

export interface SoakOptions {
  readonly seconds: number;
  /** How long a trouble lasts, milliseconds. */
  readonly pauseMs: number;
  /** Of the time, in which caches fill and code is compiled. */
  readonly warmUp: number;
  /** Whether Redis fails over, which takes its time. */
  readonly failOvers: boolean;
}

/** Between two turns of a caller. */
const callerPauseMs = 100;

/** Memory that a process may have more at the end than after its warm-up. */
const slackBytes = 48 * 1024 * 1024;

/** Sockets come and go: to Redis, to the receiver and to Sentinels. */
const slackDescriptors = 40;

export async function soak(t: Test, { seconds, pauseMs, warmUp, failOvers }: SoakOptions): Promise<void> {
  const model = createSoakModel();
  const deployment = await startSoakDeployment(t, model, pauseMs);
  const startedMs = performance.now();
  const isOver = (): boolean => performance.now() - startedMs > seconds * 1000;
  const stopped = new AbortController();
  const goOn = async (turn: () => Promise<void>, pause: number): Promise<void> => {
    while (!isOver() && !stopped.signal.aborted) {
      await turn();
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 2 * pause));
    }
  };
  const storeLines = (index: number): readonly LogLine[] =>
    deployment.proxies[index]?.process.logs().filter(({ msg }) => String(msg).startsWith('the store')) ?? [];
  const samples: { readonly atS: number; readonly processes: readonly Footprint[] }[] = [];
  const troubles = troublesOf(deployment, failOvers);
  let next = 0;
  const parts = [
    ...soakCallers(deployment, model).map(async (caller) => goOn(caller, callerPauseMs)),
    goOn(async () => {
      await troubles[next++ % troubles.length]?.();
    }, pauseMs),
    goOn(deployment.lookAtRedis, 100),
    goOn(
      async () => {
        samples.push({ atS: (performance.now() - startedMs) / 1000, processes: await deployment.footprints() });
      },
      Math.min(5_000, seconds * 25),
    ),
  ];
  try {
    await Promise.all(parts);
  } catch (error) {
    stopped.abort();
    await Promise.allSettled(parts);
    t.comment(JSON.stringify({ counts: model.counts(), wrongs: model.wrongs() }, null, 1));
    throw error;
  }
  samples.push({ atS: seconds, processes: await deployment.footprints() });

  t.comment(JSON.stringify(model.counts(), null, 1));
  t.same(model.wrongs(), [], 'no answer was wrong, and nothing ran twice');
  t.same(deployment.strays(), [], 'nothing reached the receiver that it was not to see');
  for (const [index, proxy] of deployment.proxies.entries()) {
    const declared = [
      'sallyport_duplicate_dispatches_total',
      'sallyport_lost_reservations_total',
      'sallyport_unknown_outcomes_total',
    ];
    for (const name of declared) t.comment(`proxy ${index}: ${name} ${await proxy.metric(name)}`);
    t.comment(
      storeLines(index)
        .map((line) => JSON.stringify(line))
        .join('\n'),
    );
    t.equal(await proxy.metric('sallyport_duplicate_dispatches_total'), 0, 'no loss was declared');
    t.equal(await proxy.metric('sallyport_failures_total{reason="internal"}'), 0, 'and nothing was a bug');
    t.ok(proxy.process.isRunning());
    const warm = samples.filter(({ atS }) => atS >= seconds * warmUp && atS <= seconds * (warmUp + 0.3));
    const late = samples.filter(({ atS }) => atS >= seconds * 0.7);
    for (const what of ['rss', 'heap', 'descriptors'] as const) {
      const [before, after] = [least(warm, index, what), least(late, index, what)];
      t.comment(
        `proxy ${index}: ${what} ${before} after the warm-up, ${after} at the end, ${most(samples, index, what)} at most`,
      );
      t.ok(after <= before + (what === 'descriptors' ? slackDescriptors : slackBytes), `${what} stays`);
    }
  }
}

function troublesOf(deployment: SoakDeployment, failOvers: boolean): (() => Promise<void>)[] {
  const { reload, breakConfig, rotateKeys, loseKeys, crashReceiver, restartReplica, failOver } = deployment;
  return [
    async () => reload({ revoked: true, closed: false }),
    rotateKeys,
    crashReceiver,
    async () => reload({ revoked: false, closed: true }),
    loseKeys,
    ...(failOvers ? [restartReplica, breakConfig, failOver] : [breakConfig]),
    rotateKeys,
    async () => reload({ revoked: true, closed: true }),
    crashReceiver,
    async () => reload({ revoked: false, closed: false }),
  ];
}

type Sample = { readonly processes: readonly Footprint[] };

/** What is in use at quiet moments: between two collections the heap goes up and down. */
function least(samples: readonly Sample[], index: number, what: keyof Footprint): number {
  return Math.min(...samples.map(({ processes }) => processes[index]?.[what] ?? Infinity));
}

function most(samples: readonly Sample[], index: number, what: keyof Footprint): number {
  return Math.max(...samples.map(({ processes }) => processes[index]?.[what] ?? 0));
}
