/** How many processes serve. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Path } from '../../config/load/source-tree.js';
import { mostWorkers } from '../../config/sections/workers.js';
import type { CompiledConfig } from '../../config/types.js';

/** Time of the processors that a container may use: `200000 100000` is two of them, `max 100000` all. */
const quotaFile = '/sys/fs/cgroup/cpu.max';

/** Connections of which each worker has its part, and needs one at least. */
export function connectionBounds({
  upstream,
  servesCallers,
  egress,
}: Pick<CompiledConfig, 'upstream' | 'servesCallers' | 'egress'>): readonly {
  readonly path: Path;
  readonly connections: number;
}[] {
  const targets = egress?.targets ?? [];
  return [
    ...(servesCallers ? [{ path: ['upstream', 'max_connections'], connections: upstream.maxConnections }] : []),
    ...targets.map((target, index) => ({
      path: ['egress', 'targets', index, 'max_connections'],
      connections: target.upstream.maxConnections,
    })),
  ];
}

/** Workers of a config: as many as it says, or one for each core that this process may use. */
export function countWorkers(
  config: Pick<CompiledConfig, 'workers' | 'upstream' | 'servesCallers' | 'egress'>,
): number {
  if (config.workers !== 'auto') return config.workers;
  const bounds = connectionBounds(config).map(({ connections }) => connections);
  return Math.max(1, Math.min(mostWorkers, ...bounds, usableCores(availableParallelism(), readQuota())));
}

/**
 * Cores that may be used: half a core is not one more worker, which would be held up in each period in which both have
 * work.
 *
 * @param quota as `cpu.max` of the control group says; `null` where there is none.
 */
export function usableCores(cores: number, quota: string | null): number {
  const [, quotaUs, periodUs] = /^(\d+) (\d+)\s*$/.exec(quota ?? '') ?? [];
  if (quotaUs === undefined) return cores;
  return Math.max(1, Math.min(cores, Math.floor(Number(quotaUs) / Number(periodUs))));
}

function readQuota(): string | null {
  try {
    return readFileSync(quotaFile, 'utf8');
  } catch {
    return null;
  }
}
