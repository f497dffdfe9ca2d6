import { Counter, Gauge, Registry } from 'prom-client';
import { denialReasons, type Reason } from '../../decision/denial.js';
import { nothingStripped, strippedKinds, type StrippedKind } from '../../decision/http/stripped-headers.js';
import type { IntrospectionState, KeySourceState, TokenCacheState } from '../../ports/auth.js';
import type { LimitsState } from '../../ports/limits.js';
import type {
  CertificateStatus,
  ConnectionsByProtocol,
  EgressState,
  Metrics,
  Traffic,
  UpstreamConnections,
} from '../../ports/observability.js';
import type { RevocationsState } from '../../ports/revocations.js';
import type { HistogramFamily, MetricsSnapshot, TelemetryState } from '../../ports/tracing.js';
import { closeCauseLabels, type CloseCauseLabel } from '../../decision/websocket/close-codes.js';
import { showConnections } from './connections.js';
import { createEgressSeries, type EgressSeries } from './egress.js';
import {
  createRouteSeries,
  histogramText,
  openMetricsText,
  registerHistogram,
  trafficOf,
  type Histogram,
  type RouteSeries,
} from './histogram.js';
import { createIntrospectionSeries } from './introspection.js';
import { createKeySeries } from './keys.js';
import { showProcess } from './process.js';
import { createReservationSeries, type ReservationSeries } from './reservations.js';
import { showRevocations } from './revocations.js';
import { showTelemetry } from './telemetry.js';
import { showWorkers, type WorkersState } from './workers.js';

/** Names that label values may come from: those of the config in force. */
interface MetricLabels {
  readonly routes: readonly string[];
  readonly issuers: readonly string[];
  /** SHA-256 of the config, hex. */
  readonly configSha256: string;
}

/** What is read from the running proxy at each scrape. */
interface MetricReadings {
  readonly keys: () => readonly KeySourceState[];
  readonly introspections: () => readonly IntrospectionState[];
  readonly inFlight: () => number;
  readonly connections: () => number;
  /** `null` while nothing serves. */
  readonly connectionsByProtocol: () => ConnectionsByProtocol | null;
  readonly upstreamConnections: () => UpstreamConnections | null;
  readonly webSockets: () => number;
  /** `null` where there are no limits. */
  readonly limits: () => LimitsState | null;
  /** `null` where no store tells of any. */
  readonly revocations: () => RevocationsState | null;
  /** `null` where no token is remembered. */
  readonly tokenCache: () => TokenCacheState | null;
  readonly certificates: () => readonly CertificateStatus[];
  readonly build: () => Build | null;
  /** `null` where there is no calling side. */
  readonly egress: () => EgressState | null;
  /** `null` where nothing is sent to a collector. */
  readonly telemetry: () => TelemetryState | null;
  /** `null` where one process does everything. */
  readonly workers: () => WorkersState | null;
}

/** What runs. */
interface Build {
  readonly version: string;
  /** The commit that it was built from. */
  readonly revision: string;
  /** Version of Node.js. */
  readonly node: string;
}

export interface ProcessMetrics extends Metrics {
  readonly reservations: ReservationSeries;
  readonly egress: EgressSeries;
  /** Fixes the label values. Series of routes and issuers that are gone are dropped; new ones start at zero. */
  readonly setLabels: (labels: MetricLabels) => void;
  /** What is left out stays as it was. */
  readonly setReadings: (readings: Partial<MetricReadings>) => void;
  /** Everything in Prometheus' text format. */
  readonly expose: () => Promise<string>;
  /** The same in OpenMetrics 1.0, with examples of traced requests beside the histograms. */
  readonly exposeOpenMetrics: () => Promise<string>;
  /** The same as data. */
  readonly snapshot: () => Promise<MetricsSnapshot>;
  /** What was counted of the requests of each route. */
  readonly traffic: () => Traffic;
  /** Media types of the two texts. */
  readonly contentType: string;
  readonly openMetricsType: string;
}

/** Label of requests that no route of the config in force takes. */
const noRoute = 'none';

/** Seconds. */
const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Seconds: a decision takes some 100 microseconds, or waits for keys. */
const overheadBuckets = [
  0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5,
];

const results = ['ok', 'failed'] as const;

/**
 * Counts in plain numbers and hands them to prom-client at a scrape, so that a request costs a few additions and no
 * hashing of labels.
 *
 * @param given an application's own registry, which tells of its process by itself; throws where it has series of ours.
 */
export function createMetrics(given: Registry | null = null): ProcessMetrics {
  const registry = given ?? new Registry();
  const registers = [registry];
  const reservations = createReservationSeries(registry);
  const newSeries = (): RouteSeries => createRouteSeries(durationBuckets, overheadBuckets);
  // Every reason has a series of one route from the start; for each route there would be too many.
  const unrouted = createRouteSeries(durationBuckets, overheadBuckets, denialReasons);
  let routes = new Map([[noRoute, unrouted]]);
  const reloads: Record<(typeof results)[number], number> = { ok: 0, failed: 0 };
  const stripped = new Map<StrippedKind, number>(strippedKinds.map((kind) => [kind, 0]));
  let configSha256: string | null = null;
  let readings: MetricReadings = {
    keys: () => [],
    introspections: () => [],
    inFlight: () => 0,
    connections: () => 0,
    connectionsByProtocol: () => null,
    upstreamConnections: () => null,
    webSockets: () => 0,
    limits: () => null,
    revocations: () => null,
    tokenCache: () => null,
    certificates: () => [],
    build: () => null,
    egress: () => null,
    telemetry: () => null,
    workers: () => null,
  };
  const webSocketCloses = Object.fromEntries(closeCauseLabels.map((cause) => [cause, 0])) as Record<
    CloseCauseLabel,
    number
  >;

  // A request may outlive its route by a reload.
  const seriesOf = (route: string): RouteSeries => routes.get(route) ?? unrouted;

  const byRoute = (pick: (series: RouteSeries) => Histogram): HistogramFamily['series'] =>
    [...routes].map(([route, series]) => [route, pick(series)] as const);
  const families: readonly (() => HistogramFamily)[] = [
    () => ({
      name: 'sallyport_request_duration_seconds',
      help: 'From the head of a request to the end of its response.',
      label: 'route',
      series: byRoute(({ duration }) => duration),
    }),
    () => ({
      name: 'sallyport_overhead_seconds',
      help: 'Time spent here for a request, without the upstream.',
      label: 'route',
      series: byRoute(({ overhead }) => overhead),
    }),
    reservations.durations,
  ];
  const histograms = (): readonly HistogramFamily[] => families.map((family) => family());

  if (given === null) showProcess(registry);
  else for (const family of families) registerHistogram(given, family);
  new Counter({
    name: 'sallyport_requests_total',
    help: 'Requests by route, how they ended and the first digit of what was answered.',
    labelNames: ['route', 'outcome', 'code'],
    registers,
    collect() {
      this.reset();
      for (const [route, series] of routes) {
        for (const { outcome, code, count } of series.requests()) this.inc({ route, outcome, code }, count);
      }
    },
  });
  const byReason = (
    name: string,
    help: string,
    countsOf: (series: RouteSeries) => Iterable<readonly [Reason, number]>,
  ): void => {
    new Counter({
      name,
      help,
      labelNames: ['route', 'reason'],
      registers,
      collect() {
        this.reset();
        for (const [route, series] of routes) {
          for (const [reason, count] of countsOf(series)) this.inc({ route, reason }, count);
        }
      },
    });
  };
  byReason('sallyport_denials_total', 'Requests that were refused, by route and reason.', ({ denials }) => denials);
  byReason(
    'sallyport_failures_total',
    'Requests that something broke, by route and reason.',
    ({ failures }) => failures,
  );
  byReason(
    'sallyport_shadow_denials_total',
    'Requests that shadow mode let pass, by route and why they would have been refused.',
    ({ shadowDenials }) => shadowDenials,
  );
  new Counter({
    name: 'sallyport_grpc_calls_total',
    help: 'gRPC calls by route and the grpc-status that their callers were sent.',
    labelNames: ['route', 'grpc_status'],
    registers,
    collect() {
      this.reset();
      for (const [route, series] of routes) {
        for (const [status, count] of series.grpcCalls()) this.inc({ route, grpc_status: status }, count);
      }
    },
  });
  // A series begins with its first decision.
  const decisions = new Counter({
    name: 'sallyport_decisions_total',
    help: 'Requests that a proxy in front asked about, by its form and how they ended.',
    labelNames: ['form', 'outcome'],
    registers,
  });
  new Counter({
    name: 'sallyport_stripped_fields_total',
    help: 'Headers of callers that were dropped, by what they would have told the upstream.',
    labelNames: ['kind'],
    registers,
    collect() {
      this.reset();
      for (const [kind, count] of stripped) this.inc({ kind }, count);
    },
  });
  new Gauge({
    name: 'sallyport_requests_in_flight',
    help: 'Requests that are being served.',
    registers,
    collect() {
      this.set(readings.inFlight());
    },
  });
  new Gauge({
    name: 'sallyport_websockets_open',
    help: 'WebSocket connections that are open.',
    registers,
    collect() {
      this.set(readings.webSockets());
    },
  });
  new Counter({
    name: 'sallyport_websocket_closes_total',
    help: 'WebSocket connections that ended, by reason.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of closeCauseLabels) this.inc({ reason }, webSocketCloses[reason]);
    },
  });
  new Gauge({
    name: 'sallyport_limits_shared',
    help: 'Whether shared limits are counted in the store; absent where none is shared.',
    aggregator: 'min',
    registers,
    collect() {
      const state = readings.limits();
      if (state?.shared !== true) this.remove();
      else this.set(state.isShared ? 1 : 0);
    },
  });
  const connectionEnded = showConnections(registry, {
    open: () => readings.connections(),
    byProtocol: () => readings.connectionsByProtocol(),
    upstream: () => readings.upstreamConnections(),
  });
  showRevocations(registry, () => readings.revocations());
  new Counter({
    name: 'sallyport_token_cache_lookups_total',
    help: 'Accepted service tokens: those remembered, and those that had to be verified.',
    labelNames: ['result'],
    registers,
    collect() {
      this.reset();
      const state = readings.tokenCache();
      if (state === null) return;
      this.inc({ result: 'hit' }, state.hits);
      this.inc({ result: 'miss' }, state.misses);
    },
  });
  new Gauge({
    name: 'sallyport_token_cache_bytes',
    help: 'Memory that verified tokens take; absent where none is remembered.',
    registers,
    collect() {
      const state = readings.tokenCache();
      if (state === null) this.remove();
      else this.set(state.bytes);
    },
  });
  const keys = createKeySeries(registry, () => readings.keys());
  const introspections = createIntrospectionSeries(registry, () => readings.introspections());
  showTelemetry(registry, () => readings.telemetry());
  showWorkers(registry, () => readings.workers());
  const egress = createEgressSeries(registry, () => readings.egress());
  new Counter({
    name: 'sallyport_config_reloads_total',
    help: 'Attempts to load a changed config.',
    aggregator: 'first',
    labelNames: ['result'],
    registers,
    collect() {
      this.reset();
      for (const result of results) this.inc({ result }, reloads[result]);
    },
  });
  new Gauge({
    name: 'sallyport_config_info',
    help: 'SHA-256 of the config in force; the value is 1.',
    aggregator: 'first',
    labelNames: ['sha256'],
    registers,
    collect() {
      this.reset();
      if (configSha256 !== null) this.set({ sha256: configSha256 }, 1);
    },
  });
  new Gauge({
    name: 'sallyport_build_info',
    help: 'What runs; the value is 1.',
    aggregator: 'first',
    labelNames: ['version', 'revision', 'node'],
    registers,
    collect() {
      this.reset();
      const build = readings.build();
      if (build !== null) this.set({ ...build }, 1);
    },
  });
  const ofCertificates = (
    name: string,
    help: string,
    aggregator: 'min' | 'max',
    valueOf: (status: CertificateStatus) => number,
  ): void => {
    new Gauge({
      name,
      help,
      aggregator,
      labelNames: ['certificate'],
      registers,
      collect() {
        this.reset();
        for (const status of readings.certificates()) this.set({ certificate: status.certificate }, valueOf(status));
      },
    });
  };
  ofCertificates(
    'sallyport_certificate_not_before_seconds',
    'From when on a certificate in use counts, in seconds since the epoch.',
    'max',
    ({ notBeforeS }) => notBeforeS,
  );
  ofCertificates(
    'sallyport_certificate_not_after_seconds',
    'When a certificate in use expires, in seconds since the epoch.',
    'min',
    ({ notAfterS }) => notAfterS,
  );

  return {
    reservations,
    egress,
    request: (route, outcome, status, durationMs, overheadMs, exemplar) =>
      seriesOf(route).add(outcome, status, durationMs, overheadMs, exemplar),
    decided: (form, outcome) => decisions.inc({ form, outcome }),
    denial: (route, reason) => seriesOf(route).addDenial(reason),
    failure: (route, reason) => seriesOf(route).addFailure(reason),
    shadowDenial: (route, reason) => seriesOf(route).addShadowDenial(reason),
    grpcCall: (route, status) => seriesOf(route).addGrpcCall(status),
    strippedHeaders: (counts) => {
      // What almost every request has.
      if (counts === nothingStripped) return;
      for (const [kind, count] of stripped) stripped.set(kind, count + (counts[kind] ?? 0));
    },
    jwksRefresh: keys.refresh,
    discoveryRefresh: keys.discovery,
    jwksWait: keys.wait,
    introspection: introspections.asked,
    introspectionLookup: introspections.lookedUp,
    configReload: (result) => {
      reloads[result] += 1;
    },
    webSocketClosed: (cause) => {
      webSocketCloses[cause] += 1;
    },
    connectionEnded,
    setLabels: (labels) => {
      const known = routes;
      routes = new Map([
        [noRoute, unrouted],
        ...labels.routes.map((name) => [name, known.get(name) ?? newSeries()] as const),
      ]);
      keys.setIssuers(labels.issuers);
      configSha256 = labels.configSha256;
    },
    setReadings: (next) => {
      readings = { ...readings, ...next };
    },
    expose: async () =>
      given === null ? [await registry.metrics(), ...histograms().map(histogramText)].join('\n') : given.metrics(),
    exposeOpenMetrics: () => openMetricsText(registry, given === null ? families : []),
    snapshot: async () => {
      const families = await registry.getMetricsAsJSON();
      return {
        // A word, though the types of prom-client have a number of an enum for it.
        families: families.map(({ name, help, type, values, aggregator }) => ({
          name,
          help,
          type: String(type),
          aggregator,
          values,
        })),
        histograms: histograms(),
      };
    },
    traffic: () => ({
      duration_bounds: durationBuckets,
      overhead_bounds: overheadBuckets,
      routes: [...routes].map(([route, series]) => trafficOf(route, series)),
    }),
    contentType: registry.contentType,
    openMetricsType: Registry.OPENMETRICS_CONTENT_TYPE,
  };
}
