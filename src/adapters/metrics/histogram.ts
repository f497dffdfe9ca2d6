/** Counts of one series by size. */
export interface Histogram {
  readonly observe: (value: number) => void;
  /** How many values were at most each bound, in order; the last number counts them all. */
  readonly cumulative: () => readonly number[];
  readonly sum: () => number;
  /** Upper bounds, rising. The last bucket, `+Inf`, has none. */
  readonly bounds: readonly number[];
}

/** Starts at zero. */
export function createHistogram(bounds: readonly number[]): Histogram {
  const counts = new Float64Array(bounds.length + 1);
  let sum = 0;
  return {
    observe: (value) => {
      // A clock that was set back must not spoil a sum that may only rise.
      const observed = value > 0 ? value : 0;
      let index = 0;
      for (const bound of bounds) {
        if (observed <= bound) break;
        index += 1;
      }
      counts[index] = (counts[index] ?? 0) + 1;
      sum += observed;
    },
    cumulative: () => {
      let total = 0;
      return Array.from(counts, (count) => (total += count));
    },
    sum: () => sum,
    bounds,
  };
}

/**
 * Writes histograms by one label in Prometheus' text format, version 0.0.4. prom-client's own can only be fed value by
 * value, each time hashing the labels.
 */
export function histogramText(
  name: string,
  help: string,
  labelName: string,
  series: readonly (readonly [value: string, Histogram])[],
): string {
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

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
