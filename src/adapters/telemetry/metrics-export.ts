/** What `/metrics` shows, in the shape that OpenTelemetry's serializers take: the same names, cumulative. */
/* eslint-disable @typescript-eslint/no-unsafe-enum-assignment -- enums would load their packages for a number */
import type { MetricsSnapshot, HistogramFamily } from '../../ports/tracing.js';
import { hrTime, scope, type Resource, type ResourceMetrics } from './otlp-messages.js';

type MetricData = ResourceMetrics['scopeMetrics'][number]['metrics'][number];

/** Numbers of OpenTelemetry's API. */
const [histogramPoint, gaugePoint, sumPoint] = [0, 2, 3] as const;
const cumulative = 1;
const double = 1;

interface Period {
  readonly startTime: [number, number];
  readonly endTime: [number, number];
}

export function resourceMetrics(
  { families, histograms }: MetricsSnapshot,
  resource: Resource,
  { startMs, nowMs }: { readonly startMs: number; readonly nowMs: number },
): ResourceMetrics {
  const period = { startTime: hrTime(startMs), endTime: hrTime(nowMs) };
  const metrics = [
    ...families.flatMap(({ name, help, type, values }): MetricData[] => {
      // prom-client writes the parts of its own histograms and summaries as values with names of their own.
      const points = values.flatMap(({ value, labels, metricName = name }) =>
        Number.isFinite(value) && metricName === name ? [{ ...period, attributes: labels, value }] : [],
      );
      if (points.length === 0) return [];
      const common = { descriptor: descriptor(name, help), aggregationTemporality: cumulative };
      return type === 'counter'
        ? [{ ...common, dataPointType: sumPoint, isMonotonic: true, dataPoints: points }]
        : [{ ...common, dataPointType: gaugePoint, dataPoints: points }];
    }),
    ...histograms.map((family): MetricData => histogramData(family, period)),
  ];
  return { resource, scopeMetrics: [{ scope, metrics }] };
}

function histogramData({ name, help, label, series }: HistogramFamily, period: Period): MetricData {
  return {
    descriptor: descriptor(name, help),
    aggregationTemporality: cumulative,
    dataPointType: histogramPoint,
    dataPoints: series.map(([value, histogram]) => {
      const totals = histogram.cumulative();
      const counts = totals.map((total, index) => total - (totals[index - 1] ?? 0));
      const count = totals.at(-1) ?? 0;
      return {
        ...period,
        attributes: { [label]: value },
        value: { buckets: { boundaries: [...histogram.bounds], counts }, sum: histogram.sum(), count },
      };
    }),
  };
}

function descriptor(name: string, description: string): MetricData['descriptor'] {
  return {
    name,
    description,
    unit: name.includes('_seconds') ? 's' : name.includes('_bytes') ? 'By' : '1',
    valueType: double,
  };
}
