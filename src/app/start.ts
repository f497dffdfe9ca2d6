import { setTimeout as delay } from 'node:timers/promises';
import { systemTimers } from '../adapters/system/clock.js';
import { localFiles } from '../adapters/files/files.js';
import { createLogger, type Logger } from '../adapters/log/logger.js';
import {
  tlsMaterial,
  watchCertificates,
  readListenerCertificates,
  type ListenerCertificates,
} from './certificates/certificates.js';
import { loadComplete, type CompleteConfig } from './config/load-complete.js';
import { acceptMore } from './accepting/accept-more.js';
import { createAdminServers } from './admin-servers.js';
import { composeApp, type ComposedApp, type ComposeOptions } from './compose.js';
import { logWarnings } from './reload/reload.js';
import { drainInTurn } from './drain.js';
import { openListener, type ListenerName } from './listeners.js';
import type { StartFailure } from './start-failure.js';
import { findUnfitStore, loadDecisionFiles, type DecisionFiles } from './decision.js';
import { loadOptionalParts, type OptionalParts } from './optional-parts.js';
import { countWorkers } from './workers/count.js';
import { lastExportMs, loadTelemetry, type LoadedTelemetry } from './telemetry.js';
import type { CompiledConfig, HostPort, LogSettings } from '../config/types.js';
import { accept, refuse, type Result } from '../lib/result.js';
import type { FileWatch } from '../ports/system.js';
import type { Readiness } from '../admin/readiness.js';
import type { PageServer } from '../admin/server.js';
import type { Status } from '../admin/status.js';
import { node, revision, version } from '../version.js';

export interface AppOptions extends ComposeOptions {
  /** Warnings for the log's first lines. */
  readonly notices?: readonly string[];
  /** Called once, when all is built and before a listener opens. */
  readonly onBuilt?: () => void;
}

/** A proxy that accepts requests, in one process or in several. */
export interface ServingApp extends Pick<App, 'reload' | 'stop'> {
  /** Resolves with why it ends, where it does so by itself. Everything is closed then. */
  readonly failed: Promise<StartFailure>;
}

/** A proxy that accepts requests in this process. */
export interface App {
  /** Where it listens. */
  readonly listeners: {
    /** `null` where nothing is forwarded to an upstream. */
    readonly proxy: HostPort | null;
    readonly admin: HostPort;
    readonly probes: HostPort | null;
    readonly egress: HostPort | null;
    /** In the order of the config. */
    readonly decide: readonly HostPort[];
  };
  readonly readiness: () => Readiness;
  readonly status: () => Status;
  /** Reads the config again; settles when that is over, good or bad. */
  readonly reload: () => Promise<void>;
  /**
   * Stops being ready, goes on for `shutdown.delay`, lets what is under way end within `shutdown.grace`, and closes
   * everything. Nothing of it keeps the process alive then.
   */
  readonly stop: () => Promise<void>;
}

/**
 * Starts a proxy: config, certificates, admin and probe listeners, then the callers' listener, so that whoever watches
 * can see why requests are not taken yet. Does not wait for the issuers' keys. Leaves nothing open where it refuses.
 */
export async function startApp(options: AppOptions): Promise<Result<App, StartFailure>> {
  const first = await loadComplete(options.source, { env: options.env }, localFiles);
  return first.ok ? startLoaded(first.value, options, null) : refuseStart(first.error, options);
}

/**
 * Starts it in as many processes as its config says.
 *
 * @param program the file that is started once more for each of several, and for a moment where it is one.
 */
export async function startServing(
  options: AppOptions & { readonly program: string },
): Promise<Result<ServingApp, StartFailure>> {
  const first = await loadComplete(options.source, { env: options.env }, localFiles);
  if (!first.ok) return refuseStart(first.error, options);
  const count = countWorkers(first.value.config);
  if (count > 1) {
    const { startPrimary } = await import('./workers/primary.js');
    return startPrimary(first.value, count, options);
  }
  const started = await startLoaded(first.value, options, options.program);
  return started.ok ? accept({ ...started.value, failed: new Promise(() => undefined) }) : started;
}

function refuseStart(failure: StartFailure, { logTo }: AppOptions): Result<never, StartFailure> {
  const logger = createLogger({
    ...beforeConfig,
    timers: systemTimers,
    ...(logTo === undefined ? {} : { destination: logTo }),
  });
  sayWhy(logger, failure);
  return refuse(failure);
}

/** @param program starts once more for a moment, so that listeners accept more at once; `null`: they do not. */
async function startLoaded(
  first: CompleteConfig,
  options: AppOptions,
  program: string | null,
): Promise<Result<App, StartFailure>> {
  const loaded = await load(first, options);
  if (!loaded.ok) return refuseStart(loaded.error, options);
  const { certificates, files, telemetry, parts } = loaded.value;
  const { config, upstreamCa } = first;
  const { tls } = config.listen;
  const material = tls === null || certificates === null ? null : tlsMaterial(tls, certificates);
  const composed = composeApp(
    first,
    { tls: material, telemetry: telemetry?.open() ?? null, ...parts, ...files },
    options,
  );
  const app: RunningApp = { ...composed, ...createAdminServers(config, composed.pages, composed.logger.log) };
  const { decision } = app;
  const { log } = app.logger;
  log.info('starting', { version, revision, node, config: options.source.name, sha256: config.sha256 });
  for (const notice of options.notices ?? []) log.warn(notice);
  for (const warning of telemetry?.warnings ?? []) log.warn(warning);
  logWarnings(config.warnings, log);
  if (certificates !== null) decision.certificates.useListener(certificates);
  decision.certificates.useAuthorities('upstream_ca', upstreamCa);
  decision.certificates.useAuthorities('store_ca', files.storeCa);
  options.onBuilt?.();
  const opened = await open(app, config);
  if (!opened.ok) {
    await close(app);
    await app.telemetry?.close(0);
    sayWhy(app.logger, opened.error);
    return opened;
  }
  app.progress.phase = 'serving';
  app.reloader.start();
  const watch =
    tls === null || certificates === null
      ? null
      : watchCertificates(tls, certificates, {
          setTls: app.proxy.setTls,
          expiry: decision.certificates,
          files: localFiles,
          log,
          watchIntervalMs: options.watchIntervalMs,
        });
  const shutdown = new AbortController();
  const accepting =
    program === null ? Promise.resolve() : acceptMore(callersServers(app), { program, log, shutdown: shutdown.signal });
  const endAccepting = async (): Promise<void> => {
    shutdown.abort();
    return accepting;
  };
  return accept(running(app, opened.value, watch, endAccepting));
}

function callersServers({ proxy, egress, decide }: ComposedApp): readonly ComposedApp['proxy'][] {
  return [proxy, ...(egress === null ? [] : [egress.server]), ...decide.map(({ server }) => server)];
}

/** What runs, with the pages of operators and monitors. */
interface RunningApp extends ComposedApp {
  readonly admin: PageServer;
  readonly probes: PageServer | null;
}

/** What was read before anything is built. */
interface Loaded {
  /** `null` where callers come without TLS. */
  readonly certificates: ListenerCertificates | null;
  readonly files: DecisionFiles;
  /** `null` where nothing is sent to a collector. */
  readonly telemetry: LoadedTelemetry | null;
  readonly parts: OptionalParts;
}

async function load({ config }: CompleteConfig, { env }: AppOptions): Promise<Result<Loaded, StartFailure>> {
  const { tls } = config.listen;
  const certificates = tls === null ? null : await readListenerCertificates(tls, localFiles);
  if (certificates?.ok === false) return certificates;
  const files = await loadDecisionFiles(config);
  if (!files.ok) return files;
  const telemetry = await loadTelemetry(config.telemetry, env);
  if (!telemetry.ok) return telemetry;
  return accept({
    certificates: certificates?.value ?? null,
    files: files.value,
    telemetry: telemetry.value,
    parts: await loadOptionalParts(config),
  });
}

/** How the log is while no config says so. */
const beforeConfig: LogSettings = { level: 'info', clientAddress: false, userAgent: false, refusalsPerSecond: null };

/** The log's last line, where the process ends because it cannot start: whoever reads the log alone learns why. */
function sayWhy({ fatal, flush }: Logger, { messages }: StartFailure): void {
  fatal('the proxy does not start', { problems: messages });
  flush();
}

async function open(
  app: RunningApp,
  { listen, admin, probes, egress, servesCallers }: CompiledConfig,
): Promise<Result<App['listeners'], StartFailure>> {
  const unfit = await findUnfitStore(app.decision);
  if (unfit !== null) return refuse(unfit);
  const {
    logger: { log },
    progress,
  } = app;
  const openOne = async (
    name: Exclude<ListenerName, 'decide'>,
    place: HostPort,
    server: Pick<ComposedApp['proxy'], 'listen'>,
  ): Promise<Result<HostPort, StartFailure>> => {
    const opened = await openListener(name, place, server.listen, log);
    if (opened.ok) progress.listeners[name] = opened.value;
    return opened;
  };
  const adminPlace = await openOne('admin', admin, app.admin);
  if (!adminPlace.ok) return adminPlace;
  const probesPlace = probes === null || app.probes === null ? null : await openOne('probes', probes, app.probes);
  if (probesPlace?.ok === false) return probesPlace;
  const proxyPlace = servesCallers ? await openOne('proxy', listen, app.proxy) : null;
  if (proxyPlace?.ok === false) return proxyPlace;
  const egressPlace =
    egress === null || app.egress === null ? null : await openOne('egress', egress.listen, app.egress.server);
  if (egressPlace?.ok === false) return egressPlace;
  const decidePlaces: HostPort[] = [];
  for (const { settings, server } of app.decide) {
    const place = await openListener('decide', settings.listen, server.listen, log);
    if (!place.ok) return place;
    decidePlaces.push(place.value);
  }
  progress.listeners.decide = decidePlaces;
  return accept({
    proxy: proxyPlace?.value ?? null,
    admin: adminPlace.value,
    probes: probesPlace?.value ?? null,
    egress: egressPlace?.value ?? null,
    decide: decidePlaces,
  });
}

function running(
  app: RunningApp,
  listeners: App['listeners'],
  certificateWatch: Pick<FileWatch, 'close'> | null,
  endAccepting: () => Promise<void>,
): App {
  let stopping: Promise<void> | null = null;
  return {
    listeners,
    readiness: app.readiness,
    status: app.status,
    reload: app.reloader.reload,
    stop: () => {
      stopping ??= stop(app, certificateWatch, endAccepting);
      return stopping;
    },
  };
}

async function stop(
  app: RunningApp,
  certificateWatch: Pick<FileWatch, 'close'> | null,
  endAccepting: () => Promise<void>,
): Promise<void> {
  const {
    logger: { log, flush },
    proxy,
    egress,
    decide,
    progress,
    reloader,
  } = app;
  const { delayMs, graceMs } = app.decision.activator.activeConfig().config.shutdown;
  progress.phase = 'stopping';
  reloader.close();
  certificateWatch?.close();
  // Load balancers need a while to see that this one is no longer ready; until then callers keep coming.
  log.info('shutting down', { delay_ms: delayMs, in_flight: proxy.counts().inFlight });
  for (const server of callersServers(app)) server.announceShutdown();
  // A port is closed when each process has closed it.
  await Promise.all([delay(delayMs), endAccepting()]);
  log.info('draining', { grace_ms: graceMs, in_flight: proxy.counts().inFlight });
  app.decision.endWaits();
  await drainInTurn(
    graceMs,
    async (withinMs) => {
      if (progress.listeners.proxy !== null) await proxy.drain(withinMs);
    },
    async (withinMs) => {
      await Promise.all([egress?.server.drain(withinMs), ...decide.map(({ server }) => server.drain(withinMs))]);
    },
  );
  await close(app);
  await app.telemetry?.close(lastExportMs);
  log.info('stopped');
  flush();
}

async function close({ decision, admin, probes, egress }: RunningApp): Promise<void> {
  await Promise.all([decision.close(), admin.close(), probes?.close(), egress?.close()]);
}
