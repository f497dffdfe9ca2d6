import { localFiles } from '../../../adapters/files/files.js';
import { nameOf } from '../../../adapters/redis/topology/discovery.js';
import { checkFailover, type FailoverPlan, type SentinelTopology } from '../../../adapters/redis/failover/checks.js';
import { failOver, type FailoverOutcome } from '../../../adapters/redis/failover/planned-failover.js';
import type { RedisSettings } from '../../../adapters/redis/client/settings.js';
import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import { readStoreFiles, redisSettingsOf } from '../../../app/store/store.js';
import type { StoreSettings } from '../../../config/types.js';
import { escapeControls } from '../../../lib/text.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import { loadChosen } from '../../config/load.js';
import type { ConfigArguments } from '../../config/argument.js';
import type { Io } from '../../io.js';
import { fail } from '../../options.js';

export interface FailoverArguments extends ConfigArguments {
  readonly yes?: true;
  readonly json?: true;
  /** Milliseconds. */
  readonly timeout: number;
}

const byHand = 'docs/storage.md#by-hand says what to do';

/** Replaces the primary of the store, or says what it would do. */
export async function failOverStore(asked: FailoverArguments, io: Io): Promise<void> {
  let stops = 0;
  const unlisten = io.onSignal(() => {
    stops += 1;
  });
  try {
    const found = await findStore(asked, io);
    const checked = found.ok ? await checkFailover(found.value.settings, found.value.topology) : null;
    if (!found.ok) fail(found.error, io);
    else if (checked?.ok === false) {
      const { isUnreachable, reasons } = checked.error;
      fail({ ...startFailure(isUnreachable ? 'unavailable' : 'invalid', ...reasons), hints: ['nothing was done'] }, io);
    } else if (checked?.ok === true) await go(asked, { ...found.value, plan: checked.value, stops: () => stops }, io);
  } finally {
    unlisten();
  }
}

interface FoundStore {
  readonly settings: RedisSettings;
  readonly topology: SentinelTopology;
}

async function findStore(asked: ConfigArguments, io: Io): Promise<Result<FoundStore, StartFailure>> {
  const loaded = await loadChosen(asked, io);
  if (!loaded.ok) return loaded;
  const {
    name,
    config: { store },
  } = loaded.value;
  if (store?.kind !== 'redis') {
    return refuse(
      startFailure('unreadable', `${name} ${store === null ? 'configures no store' : 'keeps reservations in memory'}`),
    );
  }
  const { topology } = store;
  if (topology.kind !== 'sentinel') return refuse(withoutSentinel(store, name));
  const files = await readStoreFiles(store, localFiles);
  return files.ok ? accept({ settings: redisSettingsOf(store, () => files.value.ca), topology }) : files;
}

function withoutSentinel({ topology }: Extract<StoreSettings, { kind: 'redis' }>, name: string): StartFailure {
  const what =
    topology.kind === 'cluster'
      ? 'names a Cluster: send CLUSTER FAILOVER to the replica that is to take over, which holds writes by itself'
      : 'names one server: nobody here knows its replicas, nor who tells the proxies of another primary';
  return {
    ...startFailure('unreadable', `${name} ${what}`),
    hints: [`store failover is for store.redis.sentinel; ${byHand}`],
  };
}

interface Going extends FoundStore {
  readonly plan: FailoverPlan;
  readonly stops: () => number;
}

async function go(
  { yes, json, timeout }: FailoverArguments,
  { settings, topology, plan, stops }: Going,
  io: Io,
): Promise<void> {
  for (const warning of plan.warnings) io.stderr(`warning: ${escapeControls(warning)}\n`);
  if (stops() > 0) {
    fail({ ...startFailure('invalid', 'stopped by a signal'), hints: ['nothing was done'] }, io);
    return;
  }
  if (yes !== true) {
    const data = { name: topology.name, done: false, dry_run: true, ...planAsData(plan) };
    io.stdout(json === true ? `${JSON.stringify(data)}\n` : planInWords(topology.name, plan, timeout));
    io.exit(0);
    return;
  }
  const startedMs = performance.now();
  const say = (step: string): void => {
    io.stderr(`${((performance.now() - startedMs) / 1000).toFixed(1).padStart(5)} s  ${escapeControls(step)}\n`);
  };
  const outcome = await failOver(settings, plan, { name: topology.name, timeoutMs: timeout, say, stops });
  const data = {
    name: topology.name,
    done: outcome.isDone,
    dry_run: false,
    ...planAsData(plan),
    ...outcomeAsData(outcome),
  };
  io.stdout(json === true ? `${JSON.stringify(data)}\n` : outcomeInWords(plan, outcome));
  for (const problem of outcome.problems) io.stderr(`error: ${escapeControls(problem)}\n`);
  io.exit(outcome.isDone && outcome.problems.length === 0 ? 0 : 1);
}

function planAsData({ primary, sentinel, sentinels, replicas, warnings }: FailoverPlan): object {
  return {
    old_primary: nameOf(primary),
    sentinel: nameOf(sentinel),
    sentinels,
    replicas_before: replicas.map(({ address, lagS, behind }) => ({
      address: nameOf(address),
      lag_seconds: lagS,
      behind_bytes: behind,
    })),
    warnings,
  };
}

function outcomeAsData({ newPrimary, promotedAfterMs, heldMs, replicas, problems }: FailoverOutcome): object {
  return {
    new_primary: newPrimary === null ? null : nameOf(newPrimary),
    promoted_after_ms: promotedAfterMs === null ? null : Math.round(promotedAfterMs),
    held_ms: Math.round(heldMs),
    replicas_after: replicas.map(({ address, state, lagS }) => ({
      address: nameOf(address),
      state,
      lag_seconds: Number.isFinite(lagS) ? lagS : null,
    })),
    problems,
  };
}

function planInWords(
  name: string,
  { primary, sentinel, sentinels, replicas }: FailoverPlan,
  timeoutMs: number,
): string {
  return lines([
    `It can be done. With --yes, for ${name}:`,
    `  1. hold writes on the primary ${nameOf(primary)}, for ${seconds(timeoutMs)} at most`,
    ...replicas.map(
      ({ address, lagS, behind }) =>
        `  2. wait until ${nameOf(address)} has all of them: now ${String(behind)} bytes behind, heard of ${String(lagS)} s ago`,
    ),
    `  3. SENTINEL FAILOVER at ${nameOf(sentinel)}, one of ${String(sentinels)} that answer`,
    `  4. make ${nameOf(primary)} a replica of the new primary, and let go; usually within 5 s`,
    'Nothing was done.',
  ]);
}

function outcomeInWords(
  { primary }: FailoverPlan,
  { isDone, newPrimary, promotedAfterMs, heldMs, replicas }: FailoverOutcome,
): string {
  const promoted =
    newPrimary === null || promotedAfterMs === null
      ? 'none'
      : `${nameOf(newPrimary)}, after ${seconds(promotedAfterMs)}`;
  return lines([
    isDone ? 'The fail-over is done.' : 'The fail-over is not done.',
    `old primary   ${nameOf(primary)}${isDone ? ', a replica now' : ''}`,
    `new primary   ${promoted}`,
    `writes held   ${seconds(heldMs)} on the old primary`,
    ...replicas.map(
      ({ address, state, lagS }) =>
        `replica       ${nameOf(address)}, ${state}${Number.isFinite(lagS) ? `, heard of ${String(lagS)} s ago` : ''}`,
    ),
  ]);
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${escapeControls(text)}\n`).join('');
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
