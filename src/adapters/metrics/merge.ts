/** The metrics of several workers as those of one proxy. */
import { Registry, type Metric, type OpenMetricsContentType, type RegistryContentType } from 'prom-client';
import type { ExemplarWithValue, HistogramFamily, MetricsSnapshot } from '../../ports/tracing.js';
import { histogramText, registerHistogram } from './histogram.js';

type Family = MetricsSnapshot['families'][number];
type Value = Family['values'][number];

/** A histogram as plain data, which goes from one process to another. */
interface HistogramData {
  readonly bounds: readonly number[];
  readonly cumulative: readonly number[];
  readonly sum: number;
  readonly examples: readonly (ExemplarWithValue | undefined)[];
}

/** What one process counted, as plain data. */
export interface MetricsData {
  readonly families: readonly Family[];
  readonly histograms: readonly (Omit<HistogramFamily, 'series'> & {
    readonly series: readonly (readonly [value: string, histogram: HistogramData])[];
  })[];
}

/** What one process counted, and how its own series are told from those of others. */
export interface MetricsPart {
  /** Value of the label `worker` of what is of each process: its memory, its event loop. */
  readonly worker: string;
  readonly data: MetricsData;
}

export function metricsData({ families, histograms }: MetricsSnapshot): MetricsData {
  return {
    families,
    histograms: histograms.map(({ series, ...family }) => ({
      ...family,
      series: series.map(([value, { bounds, cumulative, sum, examples }]) => [
        value,
        { bounds, cumulative: cumulative(), sum: sum(), examples: [...examples()] },
      ]),
    })),
  };
}

/** Series that a process has for itself whatever it is: a sum of them would say nothing. */
function isOfProcess({ name }: Pick<Family, 'name'>): boolean {
  return !name.startsWith('sallyport_');
}

/** Puts together what several processes counted; of what all have alike, the first one's counts. */
export function mergeMetrics(parts: readonly MetricsPart[]): MetricsSnapshot {
  const families = new Map<string, Family>();
  for (const { worker, data } of parts) {
    for (const family of data.families) {
      const own = isOfProcess(family) ? labelled(family, worker) : family;
      const known = families.get(family.name);
      families.set(family.name, known === undefined ? own : joined(known, own));
    }
  }
  const histograms = new Map<string, MetricsData['histograms'][number]>();
  for (const { data } of parts) {
    for (const family of data.histograms) {
      const known = histograms.get(family.name);
      histograms.set(family.name, known === undefined ? family : joinedHistograms(known, family));
    }
  }
  return { families: [...families.values()], histograms: [...histograms.values()].map(readable) };
}

/**
 * Adds what a worker counted that is gone to what others did before it: totals never fall, and what it had open or in
 * memory is gone.
 *
 * @param isKept whether a series is one of the config in force.
 */
export function retireMetrics(
  before: MetricsData,
  last: MetricsData,
  isKept: (labels: Value['labels']) => boolean,
): MetricsData {
  const counters = (data: MetricsData): readonly Family[] =>
    data.families
      .filter((family) => family.type === 'counter' && !isOfProcess(family))
      .map((family) => ({ ...family, values: family.values.filter(({ labels }) => isKept(labels)) }));
  const kept = (data: MetricsData): MetricsData => ({
    families: counters(data),
    histograms: data.histograms.map((family) => ({
      ...family,
      series: family.series.filter(([value]) => isKept({ [family.label]: value })),
    })),
  });
  return metricsData(
    mergeMetrics([
      { worker: '', data: kept(before) },
      { worker: '', data: kept(last) },
    ]),
  );
}

export const noMetrics: MetricsData = { families: [], histograms: [] };

function labelled(family: Family, worker: string): Family {
  return { ...family, values: family.values.map((value) => ({ ...value, labels: { ...value.labels, worker } })) };
}

function joined(known: Family, more: Family): Family {
  const values = new Map(known.values.map((value) => [keyOf(value), value]));
  for (const value of more.values) {
    const key = keyOf(value);
    const same = values.get(key);
    values.set(
      key,
      same === undefined ? value : { ...same, value: together(known.aggregator, same.value, value.value) },
    );
  }
  return { ...known, values: [...values.values()] };
}

function together(aggregator: string | undefined, one: number, other: number): number {
  if (aggregator === 'min') return Math.min(one, other);
  if (aggregator === 'max') return Math.max(one, other);
  return aggregator === 'first' ? one : one + other;
}

function keyOf({ labels, metricName = '' }: Value): string {
  const pairs = Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([metricName, pairs]);
}

function joinedHistograms(
  known: MetricsData['histograms'][number],
  more: MetricsData['histograms'][number],
): MetricsData['histograms'][number] {
  const series = new Map(known.series);
  for (const [value, histogram] of more.series) {
    const same = series.get(value);
    series.set(value, same === undefined ? histogram : added(same, histogram));
  }
  return { ...known, series: [...series] };
}

function added(one: HistogramData, other: HistogramData): HistogramData {
  return {
    bounds: one.bounds,
    cumulative: one.cumulative.map((count, index) => count + (other.cumulative[index] ?? 0)),
    sum: one.sum + other.sum,
    examples: one.cumulative.map((_, index) => later(one.examples[index], other.examples[index])),
  };
}

function later(
  one: ExemplarWithValue | undefined,
  other: ExemplarWithValue | undefined,
): ExemplarWithValue | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return other.atMs > one.atMs ? other : one;
}

function readable({ series, ...family }: MetricsData['histograms'][number]): HistogramFamily {
  return {
    ...family,
    series: series.map(([value, { bounds, cumulative, sum, examples }]) => [
      value,
      { bounds, cumulative: () => cumulative, sum: () => sum, examples: () => examples },
    ]),
  };
}

/** Writes it in Prometheus' text format. */
export async function mergedText(snapshot: MetricsSnapshot): Promise<string> {
  const registry = new Registry();
  register(registry, snapshot.families);
  return [await registry.metrics(), ...snapshot.histograms.map(histogramText)].join('\n');
}

/** Writes it in OpenMetrics, with examples of traced requests. */
export async function mergedOpenMetrics(snapshot: MetricsSnapshot): Promise<string> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  register(registry, snapshot.families);
  for (const family of snapshot.histograms) registerHistogram(registry, () => family);
  return registry.metrics();
}

/** prom-client asks a metric for its name, which it takes `_total` from in OpenMetrics, and for its values. */
function register(registry: Registry<RegistryContentType>, families: readonly Family[]): void {
  for (const { name, help, type, values } of families) {
    const metric = {
      name,
      type,
      get() {
        return Promise.resolve({ name: this.name, help, type, values });
      },
    };
    registry.registerMetric(metric as unknown as Metric);
  }
}
