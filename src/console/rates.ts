/** What two looks at the counters tell: how many a second, and how long they took. */
import type { ConsoleState } from '../app/console/pages.js';
import type { RouteTraffic } from '../ports/observability.js';

/** One look. */
export type Sample = Pick<ConsoleState, 'at_ms' | 'traffic'>;

/** Of one moment, by name and a second. */
type Rates = ReadonlyMap<string, number>;

/** What becomes a line of its own in the chart of requests. */
export type Grouping = 'outcome' | 'route' | 'reason';

/** How many requests a second there were between two looks. */
export function ratesBetween(before: Sample, after: Sample, grouping: Grouping): Rates {
  const seconds = (after.at_ms - before.at_ms) / 1000;
  const rates = new Map<string, number>();
  if (seconds <= 0) return rates;
  const earlier = new Map(before.traffic.routes.map((route) => [route.route, route]));
  for (const route of after.traffic.routes) {
    const known = earlier.get(route.route);
    for (const [name, total] of totals(route, grouping)) {
      const was = known === undefined ? 0 : (totals(known, grouping).get(name) ?? 0);
      // After a restart of the process counters begin anew.
      rates.set(name, (rates.get(name) ?? 0) + (total >= was ? total - was : total) / seconds);
    }
  }
  return rates;
}

function totals(route: RouteTraffic, grouping: Grouping): ReadonlyMap<string, number> {
  const { requests } = route;
  switch (grouping) {
    case 'outcome':
      return new Map(Object.entries(requests));
    case 'route':
      return new Map([[route.route, Object.values(requests).reduce((sum, one) => sum + one, 0)]]);
    case 'reason':
      return sums([route.denials, route.failures, route.shadow_denials]);
  }
}

function sums(counts: readonly Readonly<Partial<Record<string, number>>>[]): ReadonlyMap<string, number> {
  const all = new Map<string, number>();
  for (const [name, value = 0] of counts.flatMap((one) => Object.entries(one))) {
    all.set(name, (all.get(name) ?? 0) + value);
  }
  return all;
}

/** Which of the two times is meant. */
type Timing = 'duration' | 'overhead';

/**
 * The time in seconds that so large a part of the requests between two looks took at most; `null` where there were
 * none.
 * Within a bucket values are taken to be spread evenly, as Prometheus' `histogram_quantile` has it.
 */
export function quantile(before: Sample, after: Sample, timing: Timing, part: number): number | null {
  const bounds = after.traffic[timing === 'duration' ? 'duration_bounds' : 'overhead_bounds'];
  const counts = Array.from({ length: bounds.length + 1 }, () => 0);
  const add = ({ traffic }: Sample, sign: number): void => {
    for (const route of traffic.routes) {
      route[timing].forEach((value, index) => (counts[index] = (counts[index] ?? 0) + sign * value));
    }
  };
  add(after, 1);
  add(before, -1);
  const total = counts.at(-1) ?? 0;
  if (total <= 0) return null;
  const wanted = part * total;
  const index = counts.findIndex((value) => value >= wanted);
  const upper = bounds[index];
  const lower = index === 0 ? 0 : (bounds[index - 1] ?? 0);
  // Above the last bound nothing more is known.
  if (upper === undefined) return bounds.at(-1) ?? null;
  const below = index === 0 ? 0 : (counts[index - 1] ?? 0);
  const inside = (counts[index] ?? 0) - below;
  return inside === 0 ? upper : lower + ((upper - lower) * (wanted - below)) / inside;
}

/** A chart's lines: the names that count most first, all the rest as one. */
export function series(
  samples: readonly Sample[],
  grouping: Grouping,
  most: number,
): { readonly names: readonly string[]; readonly values: readonly (readonly number[])[] } {
  const moments = samples.slice(1).map((after, index) => ratesBetween(samples[index] ?? after, after, grouping));
  const weights = new Map<string, number>();
  for (const [name, value] of moments.flatMap((rates) => [...rates])) {
    weights.set(name, (weights.get(name) ?? 0) + value);
  }
  const seen = [...weights].filter(([, weight]) => weight > 0).map(([name]) => name);
  const ordered =
    grouping === 'outcome'
      ? ['forwarded', 'denied', 'failed', 'shadow', 'replayed'].filter((name) => seen.includes(name))
      : seen.sort((one, other) => (weights.get(other) ?? 0) - (weights.get(one) ?? 0) || (one < other ? -1 : 1));
  const named = ordered.slice(0, most);
  const rest = ordered.slice(most);
  const values = named.map((name) => moments.map((rates) => rates.get(name) ?? 0));
  if (rest.length === 0) return { names: named, values };
  const others = moments.map((rates) => rest.reduce((sum, name) => sum + (rates.get(name) ?? 0), 0));
  return { names: [...named, `${rest.length} others`], values: [...values, others] };
}
