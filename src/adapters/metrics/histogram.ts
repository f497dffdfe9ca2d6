import { Gauge, Registry, type Metric, type OpenMetricsContentType, type RegistryContentType } from 'prom-client';
import { failureReasons, type FailureReason, type Reason } from '../../decision/denial.js';
import { grpcCodes } from '../../decision/grpc/status.js';
import type { ExemplarWithValue, Exemplar, HistogramFamily } from '../../ports/tracing.js';
import type { Outcome, RouteTraffic } from '../../ports/observability.js';

/** Counts of one series by size. */
export interface Histogram {
  /** @param exemplar of the request that it is measured of, where that is traced. */
  readonly observe: (value: number, exemplar?: Exemplar) => void;
  /** How many values were at most each bound, in order; the last number counts them all. */
  readonly cumulative: () => readonly number[];
  readonly sum: () => number;
  /** The last example of each bucket, by its place. */
  readonly examples: () => readonly (ExemplarWithValue | undefined)[];
  /** Upper bounds, rising. The last bucket, `+Inf`, has none. */
  readonly bounds: readonly number[];
}

/** Starts at zero. */
export function createHistogram(bounds: readonly number[]): Histogram {
  const counts = new Float64Array(bounds.length + 1);
  const examples: ExemplarWithValue[] = [];
  let sum = 0;
  return {
    observe: (value, exemplar) => {
      // A clock that was set back must not spoil a sum that may only rise.
      const observed = value > 0 ? value : 0;
      let index = 0;
      for (const bound of bounds) {
        if (observed <= bound) break;
        index += 1;
      }
      counts[index] = (counts[index] ?? 0) + 1;
      sum += observed;
      if (exemplar !== undefined) examples[index] = { ...exemplar, value: observed };
    },
    cumulative: () => {
      let total = 0;
      return Array.from(counts, (count) => (total += count));
    },
    sum: () => sum,
    examples: () => examples,
    bounds,
  };
}

/**
 * Writes histograms by one label in Prometheus' text format, version 0.0.4. prom-client's own can only be fed value by
 * value, each time hashing the labels.
 */
export function histogramText({ name, help, label: labelName, series }: HistogramFamily): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
  for (const [value, histogram] of series) {
    const label = `${labelName}="${escapeLabel(value)}"`;
    const counts = histogram.cumulative();
    counts.forEach((count, index) => {
      lines.push(`${name}_bucket{${label},le="${String(histogram.bounds[index] ?? '+Inf')}"} ${String(count)}`);
    });
    lines.push(
      `${name}_sum{${label}} ${String(histogram.sum())}`,
      `${name}_count{${label}} ${String(counts.at(-1) ?? 0)}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

/** Adds such histograms to a registry that others read, where text of ours has no place. Asked anew at each reading. */
export function registerHistogram(registry: Registry<RegistryContentType>, family: () => HistogramFamily): void {
  const { name, help, label: labelName } = family();
  const metric = new Gauge({ name, help, labelNames: [labelName], registers: [] });
  const get = (): Promise<unknown> =>
    Promise.resolve({
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: family().series.flatMap(([value, histogram]) => {
        const labels = { [labelName]: value };
        const counts = histogram.cumulative();
        const examples = histogram.examples();
        return [
          ...counts.map((count, index) => ({
            metricName: `${name}_bucket`,
            labels: { ...labels, le: histogram.bounds[index] ?? '+Inf' },
            value: count,
            ...exemplarOf(examples[index]),
          })),
          { metricName: `${name}_sum`, labels, value: histogram.sum() },
          { metricName: `${name}_count`, labels, value: counts.at(-1) ?? 0 },
        ];
      }),
    });
  registry.registerMetric(Object.assign(metric, { get }));
}

/** As prom-client writes it, where the registry is of OpenMetrics; else it passes over it. */
function exemplarOf(example: ExemplarWithValue | undefined): object {
  if (example === undefined) return {};
  const { traceId, spanId, atMs, value } = example;
  return { exemplar: { labelSet: { trace_id: traceId, span_id: spanId }, value, timestamp: atMs / 1000 } };
}

/**
 * Writes everything in OpenMetrics, with the exemplars of histograms, under the names and labels of the text format. A
 * registry of that type takes `_total` from the names of its counters for good, and so gets heirs of them.
 */
export async function openMetricsText(
  registry: Registry,
  families: readonly (() => HistogramFamily)[],
): Promise<string> {
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const metric of registry.getMetricsAsArray()) open.registerMetric(Object.create(metric) as Metric);
  for (const family of families) registerHistogram(open, family);
  return open.metrics();
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

/** Every way a request can end. */
const outcomes = ['forwarded', 'replayed', 'denied', 'failed', 'shadow'] as const satisfies readonly Outcome[];

/** What a caller was answered, by the first digit of the status; `none` where it was answered nothing. */
const statusClasses = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/**
 * Outcomes and classes that are there from the start, at zero: what has just begun has no rate yet, and alerts ask for
 * these. The others begin with their first request.
 */
const expected: readonly (readonly [Outcome, (typeof statusClasses)[number]])[] = [
  ['forwarded', '2xx'],
  ['forwarded', '4xx'],
  ['forwarded', '5xx'],
  ['replayed', '2xx'],
  ['denied', '4xx'],
  ['failed', '5xx'],
  ['shadow', '2xx'],
];

/** Requests that ended in one way and were answered with one class. */
interface RequestCount {
  readonly outcome: Outcome;
  readonly code: (typeof statusClasses)[number];
  readonly count: number;
}

/** What is counted of one route. */
export interface RouteSeries {
  readonly requests: () => readonly RequestCount[];
  /** By reason; only those that occurred. So are those that shadow mode let pass. */
  readonly denials: ReadonlyMap<Reason, number>;
  readonly shadowDenials: ReadonlyMap<Reason, number>;
  /** Every one of them, from the start: the first may be one too many. */
  readonly failures: ReadonlyMap<FailureReason, number>;
  readonly duration: Histogram;
  readonly overhead: Histogram;
  /** By status, 0 to 16; only those that occurred. */
  readonly grpcCalls: () => readonly (readonly [status: number, count: number])[];
  readonly addGrpcCall: (status: number) => void;
  readonly addDenial: (reason: Reason) => void;
  readonly addShadowDenial: (reason: Reason) => void;
  readonly addFailure: (reason: FailureReason) => void;
  /** `status` is 0 where nothing was answered. */
  readonly add: (outcome: Outcome, status: number, durationMs: number, overheadMs: number, exemplar?: Exemplar) => void;
}

/** Starts at zero. Bounds are seconds, rising. `expectedDenials` are there from the start. */
export function createRouteSeries(
  durationBounds: readonly number[],
  overheadBounds: readonly number[],
  expectedDenials: readonly Reason[] = [],
): RouteSeries {
  // One number for each outcome and class, so that a request costs an addition.
  const counts = new Float64Array(outcomes.length * statusClasses.length);
  const grpcCounts = new Float64Array(grpcCodes.length);
  const denials = new Map(expectedDenials.map((reason) => [reason, 0]));
  const shadowDenials = new Map<Reason, number>();
  const failures = new Map<FailureReason, number>(failureReasons.map((reason) => [reason, 0]));
  const duration = createHistogram(durationBounds);
  const overhead = createHistogram(overheadBounds);
  return {
    requests: () =>
      outcomes.flatMap((outcome) =>
        statusClasses.flatMap((code, classIndex) => {
          const count = counts[placeOf(outcome, classIndex)] ?? 0;
          const isExpected = expected.some(([one, other]) => one === outcome && other === code);
          return count > 0 || isExpected ? [{ outcome, code, count }] : [];
        }),
      ),
    denials,
    shadowDenials,
    failures,
    duration,
    overhead,
    grpcCalls: () => [...grpcCounts].flatMap((count, status) => (count > 0 ? [[status, count] as const] : [])),
    addGrpcCall: (status) => {
      grpcCounts[status] = (grpcCounts[status] ?? 0) + 1;
    },
    addDenial: (reason) => increment(denials, reason),
    addShadowDenial: (reason) => increment(shadowDenials, reason),
    addFailure: (reason) => increment(failures, reason),
    add: (outcome, status, durationMs, overheadMs, exemplar) => {
      const place = placeOf(outcome, Math.floor(status / 100));
      counts[place] = (counts[place] ?? 0) + 1;
      duration.observe(durationMs / 1000, exemplar);
      overhead.observe(overheadMs / 1000, exemplar);
    },
  };
}

const indexOf: Readonly<Record<Outcome, number>> = { forwarded: 0, replayed: 1, denied: 2, failed: 3, shadow: 4 };

/** Where this way to end and this class are counted: a status that there is not (RFC 9110 §15) counts as none. */
function placeOf(outcome: Outcome, statusClass: number): number {
  return indexOf[outcome] * statusClasses.length + (statusClass < statusClasses.length ? statusClass : 0);
}

function increment<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** The counts of a route, for who asks again and again. */
export function trafficOf(route: string, series: RouteSeries): RouteTraffic {
  const requests = { forwarded: 0, replayed: 0, denied: 0, failed: 0, shadow: 0 };
  for (const { outcome, count } of series.requests()) requests[outcome] += count;
  return {
    route,
    requests,
    denials: occurred(series.denials),
    failures: occurred(series.failures),
    shadow_denials: occurred(series.shadowDenials),
    duration: series.duration.cumulative(),
    overhead: series.overhead.cumulative(),
  };
}

function occurred(counts: ReadonlyMap<Reason, number>): Readonly<Partial<Record<Reason, number>>> {
  return Object.fromEntries([...counts].filter(([, count]) => count > 0));
}
