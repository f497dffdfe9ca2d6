import { systemClock, systemTimers } from '../adapters/system/clock.js';
import { collectGarbage } from '../adapters/system/release-memory.js';
import { localFiles } from '../adapters/files/files.js';
import { createLogger, type Logger, type LoggerOptions } from '../adapters/log/logger.js';
import { createMetrics, type ProcessMetrics } from '../adapters/metrics/metrics.js';
import type { Telemetry } from '../adapters/telemetry/telemetry.js';
import { replaceSampling } from './telemetry.js';
import type { HostPort, ListenSettings } from '../config/types.js';
import type { RequestRecord, UpstreamConnections } from '../ports/observability.js';
import { createRefusedRequests, type RefusedRequests } from '../admin/console/refusals.js';
import { countMetrics } from '../admin/counters.js';
import { readinessOf, type Phase, type Readiness } from '../admin/readiness.js';
import { statusOf, type Status } from '../admin/status.js';
import type { TlsMaterial } from '../proxy/inbound/listener.js';
import { createProxyServer, type ProxyServer, type SharedListener } from '../proxy/server.js';
import { node, revision, version } from '../version.js';
import type { PageSources } from './admin-servers.js';
import type { ConfigSource } from './config/config-source.js';
import { createConsolePages } from './console/pages.js';
import type { Environment } from './config/read-config.js';
import type { CompleteConfig } from './config/load-complete.js';
import { openDecision, type Decision, type DecisionFiles } from './decision.js';
import { openDecideListeners, type RunningDecideListener } from './decide-listeners.js';
import type { Egress } from './egress.js';
import type { OptionalParts } from './optional-parts.js';
import { activatorOf, createReloader, type Reloader } from './reload/reload.js';
import type { LimitCounters } from './store/store.js';

export interface ComposeOptions {
  readonly source: ConfigSource;
  readonly env: Environment;
  /** Takes log lines in the place of standard output. */
  readonly logTo?: NonNullable<LoggerOptions['destination']>;
  /** Milliseconds between two looks at the files that the config names; half a second unless given. */
  readonly watchIntervalMs?: number;
  /** Where this process is one of several that serve together. */
  readonly worker?: WorkerPlace;
}

/** What a worker has of the others. */
interface WorkerPlace {
  /** From 1. */
  readonly number: number;
  /** Count requests of callers for all of them. */
  readonly limitCounters: LimitCounters;
  /** What this one has of a listener, by its name in the config. */
  readonly placesOf: (name: string, listen: ListenSettings) => SharedListener;
}

/** What the process is at the moment; the pages show it. */
interface Progress {
  phase: Phase;
  readonly listeners: {
    proxy: HostPort | null;
    admin: HostPort | null;
    probes: HostPort | null;
    egress: HostPort | null;
    decide: readonly HostPort[];
  };
}

/** Everything that runs, built from a first config and put together; nothing listens yet. */
export interface ComposedApp {
  readonly logger: Logger;
  readonly decision: Decision;
  readonly reloader: Reloader;
  readonly proxy: ProxyServer;
  /** The calling side; `null` where the config has none. */
  readonly egress: (Egress & { readonly server: ProxyServer }) | null;
  /** Where proxies ask, in the order of the config. */
  readonly decide: readonly RunningDecideListener[];
  /** What operators and monitors are shown. */
  readonly pages: PageSources;
  /** The last refusals; `null` where there is no console. */
  readonly refused: RefusedRequests | null;
  readonly metrics: ProcessMetrics;
  /** Takes what follows of another config that is in force. */
  readonly onReplaced: (
    complete: Pick<CompleteConfig, 'config' | 'upstreamCa' | 'targetAuthorities' | 'targetCertificates'>,
  ) => void;
  /** `null` where nothing is sent to a collector. */
  readonly telemetry: Telemetry | null;
  readonly progress: Progress;
  readonly readiness: () => Readiness;
  readonly status: () => Status;
}

/** What was read and loaded that counts at start only. */
interface StartFiles extends DecisionFiles, OptionalParts {
  readonly tls: TlsMaterial | null;
  /** `null` where nothing is sent to a collector. */
  readonly telemetry: Telemetry | null;
}

/** Composes what runs. From here on the issuers' keys are fetched and the store is connected to. */
export function composeApp(
  first: CompleteConfig,
  { tls, telemetry, createDecideHandler, openEgress, ...files }: StartFiles,
  options: ComposeOptions,
): ComposedApp {
  const opened = first.config;
  const logger = createLogger({
    ...opened.log,
    timers: systemTimers,
    ...(options.logTo === undefined ? {} : { destination: options.logTo }),
    ...(options.worker === undefined ? {} : { worker: options.worker.number }),
  });
  const { log } = logger;
  const onLine = telemetry?.onLine ?? null;
  if (onLine !== null) logger.copyTo(onLine);
  const processMetrics = createMetrics();
  const metrics = countMetrics(processMetrics);
  const decision = openDecision(first, files, {
    log,
    metrics: processMetrics,
    watchIntervalMs: options.watchIntervalMs,
    limitCounters: options.worker?.limitCounters,
  });
  const { activator, reservations, revocations, limits, assertions, certificates, keyStates, storeState } = decision;
  const progress: Progress = {
    phase: 'starting',
    listeners: { proxy: null, admin: null, probes: null, egress: null, decide: [] },
  };
  const readiness = (): Readiness => readinessOf(progress.phase, keyStates(), storeState(), revocations.state());
  const refused = opened.admin.console ? createRefusedRequests() : null;
  const requestLog =
    refused === null
      ? logger.request
      : (record: RequestRecord): void => {
          if (record.reason !== null) refused.add(record, systemClock.now());
          logger.request(record);
        };
  const placesOf = (name: string, listen: ListenSettings): { readonly places?: SharedListener } =>
    options.worker === undefined ? {} : { places: options.worker.placesOf(name, listen) };
  /** What every listener for requests has. */
  const shared = { clock: systemClock, timers: systemTimers, metrics, log, limits: limits.callers, collectGarbage };
  const proxy = createProxyServer({
    ...shared,
    activeConfig: activator.activeConfig,
    requestLog,
    listen: opened.listen,
    ...placesOf('listen', opened.listen),
    tls,
    tracer: telemetry?.tracer ?? null,
    challenges: decision.challenges,
    reservations: reservations?.parts ?? null,
    isReady: () => readiness().status !== 'unavailable',
  });
  const egress =
    opened.egress === null || openEgress === null
      ? null
      : openEgress(opened, opened.egress, first, {
          log,
          metrics: processMetrics,
          expiry: certificates,
          watchIntervalMs: options.watchIntervalMs,
        });
  const egressServer =
    egress === null || opened.egress === null
      ? null
      : createProxyServer({
          ...shared,
          activeConfig: egress.activeConfig,
          requestLog: logger.request,
          listen: opened.egress.listen,
          ...placesOf('egress.listen', opened.egress.listen),
          ...(opened.egress.socket === null ? {} : { socket: opened.egress.socket }),
          tls: null,
          tracer: telemetry?.tracer ?? null,
          reservations: null,
          isReady: () => true,
        });
  const decide =
    createDecideHandler === null
      ? []
      : openDecideListeners(opened.decide, activator.activeConfig, (settings, activeConfig) =>
          createProxyServer({
            ...shared,
            activeConfig,
            requestLog,
            listen: settings.listen,
            ...placesOf(`decide.${String(opened.decide.indexOf(settings))}`, settings.listen),
            tls: null,
            tracer: telemetry?.tracer ?? null,
            challenges: decision.challenges,
            reservations: null,
            decide: createDecideHandler(settings),
            isReady: () => true,
          }),
        );
  revocations.onRevoked(() => void proxy.reauthorizeConnections());
  const onReplaced: ComposedApp['onReplaced'] = ({ config, upstreamCa, ...targetFiles }) => {
    certificates.useAuthorities('upstream_ca', upstreamCa);
    if (telemetry !== null) replaceSampling(telemetry, config.telemetry, options.env);
    if (config.egress !== null) egress?.replace(config, config.egress, targetFiles);
    void proxy.reauthorizeConnections();
  };
  const reloader = createReloader(first, activatorOf(activator), {
    assertions,
    source: options.source,
    reading: { env: options.env },
    files: localFiles,
    clock: systemClock,
    log,
    metrics,
    useLog: logger.use,
    watchIntervalMs: options.watchIntervalMs,
    onReplaced,
  });
  const upstreamConnections = (): UpstreamConnections => {
    const { config, upstream } = activator.activeConfig();
    const { active, waiting } = upstream.counts();
    return { isHttp2: config.upstream.http2, connections: upstream.connections(), requests: active, waiting };
  };
  processMetrics.setReadings({
    keys: keyStates,
    introspections: activator.introspectionStates,
    inFlight: () => proxy.counts().inFlight,
    connections: () => proxy.counts().connections,
    connectionsByProtocol: proxy.connectionsByProtocol,
    upstreamConnections,
    webSockets: () => proxy.openWebSockets(),
    limits: limits.state,
    revocations: revocations.state,
    tokenCache: activator.tokenCache,
    certificates: certificates.states,
    build: () => ({ version, revision, node }),
    egress: () => egress?.state() ?? null,
    telemetry: () => telemetry?.state() ?? null,
  });

  telemetry?.sendMetrics(processMetrics.snapshot);

  const startedAtMs = systemClock.now();
  const status = (): Status =>
    statusOf({
      version,
      revision,
      node,
      pid: process.pid,
      startedAtMs,
      ...progress,
      ...reloader.state(),
      configName: options.source.name,
      config: activator.activeConfig().config,
      keys: keyStates(),
      introspections: activator.introspectionStates(),
      store: storeState(),
      revocations: revocations.state(),
      limits: limits.state(),
      certificates: certificates.states(),
      connections: proxy.connectionsByProtocol(),
      upstreamConnections: upstreamConnections(),
      egress: egress?.state() ?? null,
      decide: decide.map(({ settings: { form, listen }, server }) => ({
        form,
        trust: listen.trustForwarded,
        ...server.counts(),
      })),
      telemetry: telemetry?.state() ?? null,
      counts: metrics.counts(),
    });
  const pages: PageSources = {
    assertionKeys: assertions.jwks,
    readiness,
    status,
    metrics: processMetrics,
    upstream: activator.upstream,
    console:
      refused === null
        ? null
        : createConsolePages({
            policy: () => ({ config: activator.activeConfig().config, listed: revocations.listed }),
            refused,
            traffic: processMetrics.traffic,
            inDoubt: reservations?.inDoubt ?? (() => []),
            clock: systemClock,
          }),
  };
  return {
    logger,
    decision,
    reloader,
    proxy,
    decide,
    egress: egress === null || egressServer === null ? null : { ...egress, server: egressServer },
    pages,
    refused,
    metrics: processMetrics,
    onReplaced,
    telemetry,
    progress,
    readiness,
    status,
  };
}
