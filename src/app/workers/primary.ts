/** The process that starts workers and stands for all of them: config, certificates, signals, pages, log. */
import { setTimeout as delay } from 'node:timers/promises';
import { localFiles } from '../../adapters/files/files.js';
import { createLogger } from '../../adapters/log/logger.js';
import { createMetrics } from '../../adapters/metrics/metrics.js';
import { systemClock, systemTimers } from '../../adapters/system/clock.js';
import type { Phase } from '../../admin/readiness.js';
import type { Status } from '../../admin/status.js';
import type { CompiledConfig, HostPort } from '../../config/types.js';
import { messageOf } from '../../lib/errors.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { timestamp } from '../../lib/timestamp.js';
import { createFloodLog } from '../../proxy/inbound/client-connections.js';
import type { TlsMaterial } from '../../proxy/inbound/listener.js';
import { longestAcceptMs } from '../../proxy/node-internals/server.js';
import { node, revision, version } from '../../version.js';
import { createAdminServers } from '../admin-servers.js';
import { readListenerCertificates, tlsMaterial, watchCertificates } from '../certificates/certificates.js';
import type { CompleteConfig } from '../config/load-complete.js';
import { drainInTurn, type Drain } from '../drain.js';
import { openListener } from '../listeners.js';
import { createReloader, logWarnings, type Activator } from '../reload/reload.js';
import { startFailure, type StartFailure } from '../start-failure.js';
import type { AppOptions, ServingApp } from '../start.js';
import { createCallersListeners, type CallersListener } from './connections.js';
import { createSharedPages } from './pages.js';
import { createPool, type Pool } from './pool.js';
import type { WorkerProcess } from './worker-process.js';

/**
 * How long the end may take beyond the time that requests have, milliseconds: less than the 5 seconds that the docs ask
 * to be left for it.
 */
const closeWithinMs = 4_000;

/** A worker that answers so much later than it should is not waited for, milliseconds. */
const lateMs = 1_000;

/** The same at the end of a drain, at which a worker may wait for the store for a second, milliseconds. */
const drainLateMs = 2_000;

/** Starts workers, and serves through them. Leaves nothing open where it refuses. */
export async function startPrimary(
  first: CompleteConfig,
  count: number,
  options: AppOptions & { readonly program: string },
): Promise<Result<ServingApp, StartFailure>> {
  const opened = first.config;
  const logger = createLogger({
    ...opened.log,
    timers: systemTimers,
    ...(options.logTo === undefined ? {} : { destination: options.logTo }),
  });
  const { log } = logger;
  const refuseStart = (failure: StartFailure): Result<never, StartFailure> => {
    logger.fatal('the proxy does not start', { problems: failure.messages });
    logger.flush();
    return refuse(failure);
  };
  if (!mayStartProcesses()) {
    const what = `workers is ${String(opened.workers)}, and this process may start no other`;
    return refuseStart(
      startFailure('unavailable', `${what}: --allow-child-process beside --permission, or workers: 1`),
    );
  }
  const { tls } = opened.listen;
  const read = tls === null ? null : await readListenerCertificates(tls, localFiles);
  if (read?.ok === false) return refuseStart(read.error);
  const certificates = read?.value ?? null;
  log.info('starting', {
    version,
    revision,
    node,
    config: options.source.name,
    sha256: opened.sha256,
    workers: count,
  });
  for (const notice of options.notices ?? []) log.warn(notice);
  logWarnings(opened.warnings, log);

  const metrics = createMetrics();
  metrics.setLabels({ routes: [], issuers: [], configSha256: opened.sha256 });
  let current = first;
  let material: TlsMaterial | null = tls === null || certificates === null ? null : tlsMaterial(tls, certificates);
  let failed = (_failure: StartFailure): void => undefined;
  const ended = new Promise<StartFailure>((resolve) => {
    failed = resolve;
  });
  let reloading: Promise<unknown> | null = null;
  const tellOfFlood = createFloodLog(log, systemClock);
  const pool = createPool({
    count,
    program: options.program,
    log,
    order: (number) => ({
      number,
      count,
      configName: options.source.name,
      folder: options.source.folder,
      first: first.texts,
      current: current === first ? null : current.texts,
      tls: material,
    }),
    reloading: () => reloading,
    onLines: logger.relay,
    onGaveWay: (waiting) => {
      metrics.connectionEnded('gave_way');
      tellOfFlood('gave_way', waiting);
    },
    isCounted: (labels) => isCounted(current.config, labels),
    onFailed: (failure) => {
      logger.fatal('the proxy ends', { problems: failure.messages });
      failed(failure);
    },
  });
  metrics.setReadings({
    build: () => ({ version, revision, node }),
    workers: () => ({ serving: pool.serving().length, deaths: pool.deaths() }),
  });

  const progress: {
    phase: Phase;
    listeners: { -readonly [Name in keyof Status['listeners']]: Status['listeners'][Name] };
  } = {
    phase: 'starting',
    listeners: { proxy: null, admin: null, probes: null, egress: null, decide: [] },
  };
  const startedAtMs = systemClock.now();
  const reloads = { ok: 0, failed: 0 };
  const activator: Activator = {
    activeConfig: () => ({ config: current.config }),
    replace: async (complete, config) => {
      const replaced = replaceInAll(pool, complete).then(() => {
        current = { ...complete, config };
        metrics.setLabels({ routes: [], issuers: [], configSha256: config.sha256 });
        pool.forgetSeries();
      });
      reloading = replaced.catch(() => undefined);
      await replaced;
    },
  };
  const reloader = createReloader(first, activator, {
    // Each worker signs with what its config names.
    assertions: { use: () => undefined },
    source: options.source,
    reading: { env: options.env },
    files: localFiles,
    clock: systemClock,
    log,
    metrics: {
      configReload: (result) => {
        reloads[result] += 1;
        metrics.configReload(result);
      },
    },
    useLog: logger.use,
    watchIntervalMs: options.watchIntervalMs,
    onReplaced: () => undefined,
  });
  const pages = createSharedPages({
    pool,
    metrics,
    isServing: () => progress.phase === 'serving',
    own: () => {
      const { loadedAtMs, lastError, restartNeeded } = reloader.state();
      return {
        pid: process.pid,
        started_at: timestamp(startedAtMs),
        ...progress,
        restart_needed: restartNeeded,
        config: {
          loaded_at: timestamp(loadedAtMs),
          last_reload_error:
            lastError === null ? null : { at: timestamp(lastError.atMs), problems: lastError.problems },
        },
        reloads: { ...reloads },
      };
    },
    nowMs: systemClock.now,
  });
  const { admin, probes } = createAdminServers(
    opened,
    {
      assertionKeys: async () => {
        // Without one, nobody knows whether there are any.
        if (pool.serving().length === 0) throw new Error('no worker serves');
        return (await pages.page('/.well-known/jwks.json'))?.body ?? null;
      },
      readiness: pages.readiness,
      status: pages.status,
      metrics: { ...metrics, expose: pages.expose, exposeOpenMetrics: pages.exposeOpenMetrics },
      upstream: () => ({ settings: current.config.upstream, ca: current.upstreamCa }),
      console: opened.admin.console ? pages.console : null,
    },
    log,
  );
  const listeners = createCallersListeners(opened, pool.give);
  const closeAll = async (): Promise<void> => {
    pool.stop();
    await Promise.all([pool.close(), admin.close(), probes?.close(), ...listeners.map(({ stop }) => stop(0))]);
  };
  const open = async (): Promise<StartFailure | null> => {
    const adminPlace = await openListener('admin', opened.admin, admin.listen, log);
    if (!adminPlace.ok) return adminPlace.error;
    progress.listeners.admin = adminPlace.value;
    if (opened.probes !== null && probes !== null) {
      const probesPlace = await openListener('probes', opened.probes, probes.listen, log);
      if (!probesPlace.ok) return probesPlace.error;
      progress.listeners.probes = probesPlace.value;
    }
    const unfit = await pool.start();
    if (unfit !== null) return unfit;
    const decide: HostPort[] = [];
    for (const { name, place, listen } of listeners) {
      const at = await openListener(name, place, listen, log);
      if (!at.ok) return at.error;
      if (name === 'decide') decide.push(at.value);
      else progress.listeners[name] = at.value;
    }
    progress.listeners.decide = decide;
    return null;
  };
  options.onBuilt?.();
  const failure = await open();
  if (failure !== null) {
    await closeAll();
    return refuseStart(failure);
  }
  progress.phase = 'serving';
  reloader.start();
  const watch =
    tls === null || certificates === null
      ? null
      : watchCertificates(tls, certificates, {
          setTls: (next) => {
            material = next;
            showCertificates(pool, next);
          },
          expiry: { useListener: () => undefined },
          files: localFiles,
          log,
          watchIntervalMs: options.watchIntervalMs,
        });

  const stop = async (): Promise<void> => {
    const { delayMs, graceMs } = current.config.shutdown;
    progress.phase = 'stopping';
    pool.stop();
    reloader.close();
    watch?.close();
    const drainsAtMs = systemClock.monotonic() + delayMs;
    const counts = await askAll(pool, async (worker) => worker.call('announce', null, lateMs));
    log.info('shutting down', { delay_ms: delayMs, in_flight: counts.reduce((sum, count) => sum + count, 0) });
    await delay(Math.max(0, drainsAtMs - systemClock.monotonic()));
    log.info('draining', { grace_ms: graceMs });
    const endsAtMs = systemClock.monotonic() + graceMs + closeWithinMs;
    const drainPart =
      (part: CallersListener['part']): Drain =>
      async (withinMs) =>
        drain(pool, listeners, part, withinMs);
    await drainInTurn(graceMs, drainPart('proxy'), drainPart('others'));
    await askAll(pool, async (worker) => worker.call('close', null, endsAtMs - systemClock.monotonic()));
    await Promise.all([pool.close(), admin.close(), probes?.close()]);
    log.info('stopped');
    logger.flush();
  };
  let stopping: Promise<void> | null = null;
  return accept({
    reload: reloader.reload,
    stop: async () => {
      stopping ??= stop();
      return stopping;
    },
    failed: ended.then(async (why) => {
      await closeAll();
      logger.flush();
      return why;
    }),
  });
}

/** Node's permission model may keep it from that. */
function mayStartProcesses(): boolean {
  const { permission } = process as { readonly permission?: { readonly has: (scope: string) => boolean } };
  return permission === undefined || permission.has('child');
}

/** What each that serves answers; of one that ends meanwhile, nothing. */
async function askAll<Answer>(pool: Pool, ask: (worker: WorkerProcess) => Promise<Answer>): Promise<readonly Answer[]> {
  const asked = await Promise.allSettled(pool.serving().map(ask));
  return asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
}

async function drain(
  pool: Pool,
  listeners: readonly CallersListener[],
  part: CallersListener['part'],
  graceMs: number,
): Promise<void> {
  const own = listeners.filter((listener) => listener.part === part);
  if (own.length === 0) return;
  const untilMs = systemClock.monotonic() + graceMs;
  // A worker that is stuck takes none of the last ones, and keeps nobody else from the end.
  await Promise.race([
    Promise.all(own.map(async ({ stop }) => stop(longestAcceptMs(graceMs)))),
    delay(graceMs, undefined, { ref: false }),
  ]);
  const leftMs = Math.max(0, untilMs - systemClock.monotonic());
  await askAll(pool, async (worker) => worker.call('drain', { part, graceMs: leftMs }, leftMs + drainLateMs));
}

/**
 * Puts a config in force in all workers or in none: each loads it and gets ready, and once all are, all are told to go
 * on. One that fails at that moment is replaced, and the next one begins with the new config.
 */
async function replaceInAll(pool: Pool, { texts }: CompleteConfig): Promise<void> {
  const workers = pool.serving();
  const problems = await Promise.all(
    workers.map(async (worker) => {
      const problem = await worker.call('prepare', texts).catch((error: unknown) => failureOf(worker, error));
      return problem === null ? [] : [`worker ${String(worker.number)}: ${problem}`];
    }),
  );
  const [problem] = problems.flat();
  await Promise.all(
    workers.map(async (worker) => {
      const failure = await worker
        .call('conclude', problem === undefined)
        .catch((error: unknown) => failureOf(worker, error));
      if (failure !== null) worker.kill();
    }),
  );
  if (problem !== undefined) throw new Error(problem);
}

/**
 * Why a worker did not do as it was told. One that is gone is passed over: the next one begins with what is in force.
 */
function failureOf(worker: WorkerProcess, error: unknown): string | null {
  return worker.isGone() ? null : messageOf(error);
}

function showCertificates(pool: Pool, material: TlsMaterial): void {
  for (const worker of pool.serving()) {
    void worker.call('tls', material).then(
      (fits) => {
        if (!fits) worker.kill();
      },
      () => undefined,
    );
  }
}

/** Whether a series that a worker counted is one of the config in force: those of what is gone end with it. */
function isCounted(
  { routes, egress, issuers, sessions }: CompiledConfig,
  labels: Readonly<Partial<Record<string, string | number>>>,
): boolean {
  const { route, issuer, target } = labels;
  const named = [...routes, ...(egress?.table.routes ?? [])];
  if (route !== undefined && route !== 'none' && !named.some(({ name }) => name === route)) return false;
  if (target !== undefined && !(egress?.targets.some(({ name }) => name === target) ?? false)) return false;
  return issuer === undefined || sessions !== null || issuers.some(({ rules }) => rules.name === issuer);
}
