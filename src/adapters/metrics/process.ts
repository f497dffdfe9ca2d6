import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';

/** Those of prom-client that look at every open connection: some milliseconds where there are thousands. */
const looksAtAll = [
  'nodejs_active_handles',
  'nodejs_active_handles_total',
  'nodejs_active_resources',
  'nodejs_active_resources_total',
  'process_open_fds',
];

/** What such a look found is told for a thousand times as long as it took, but no longer than this. */
const restShare = 1_000;
const mostRestMs = 5_000;

/**
 * Tells of the process what prom-client does. What takes long to find out may be up to five seconds old, so that it
 * takes at most a thousandth of the time for each gauge, however often somebody asks.
 *
 * @param nowMs monotonic milliseconds.
 */
export function showProcess(registry: Registry, nowMs: () => number = () => performance.now()): void {
  collectDefaultMetrics({ register: registry });
  for (const name of looksAtAll) {
    const gauge = registry.getSingleMetric(name);
    // There are fewer of them where a system cannot tell.
    if (gauge instanceof Gauge) restBetweenLooks(gauge, nowMs);
  }
}

function restBetweenLooks(gauge: Gauge, nowMs: () => number): void {
  const look = gauge.get.bind(gauge);
  let found: ReturnType<typeof look> | null = null;
  let restsUntilMs = 0;
  gauge.get = async () => {
    const startedMs = nowMs();
    if (found === null || startedMs >= restsUntilMs) {
      found = look();
      const endedMs = nowMs();
      restsUntilMs = endedMs + Math.min(mostRestMs, restShare * (endedMs - startedMs));
    }
    return found;
  };
}
