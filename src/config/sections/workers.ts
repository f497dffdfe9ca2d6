/** The section that says how many processes serve callers. */
import { z } from 'zod';
import type { ParsedConfig } from '../load/parse-sections.js';
import { nameOf, type Report } from '../load/report.js';
import type { Path } from '../load/source-tree.js';
import { integer } from '../schema/scalars.js';
import { section } from '../schema/section.js';

/** Each is some 40 MB; a machine with more cores than this is shared by several proxies. */
export const mostWorkers = 64;

const allowed = `a whole number from 1 to ${mostWorkers}, or auto`;

export const workers = section({
  schema: z
    .union([integer(1, mostWorkers), z.literal('auto')], allowed)
    .meta({ allowed })
    .prefault(1)
    .describe(
      'Processes that serve callers on the same listeners, each on a core of its own: see [workers](deployment.md#more-than-one-core). `auto` is one for each core ' +
        'that this process may use. 1 is one process for everything. Limits hold over all of them. More than one, or `auto`, do not go with `store.memory`. ' +
        'Read once, at start.',
    ),
  check,
  compile: (count) => ({ workers: count }),
  keys: { '': { restart: true, of: (config) => config.workers } },
});

function check(config: ParsedConfig, report: Report): void {
  const count = config.workers?.value ?? 1;
  if (count === 1) return;
  if (config.isPresent(['store', 'memory']) && config.rawValue(['store', 'memory']) !== null) {
    report.error(
      ['workers'],
      `workers is ${String(count)} beside store.memory, which each process would have for itself: a write could run once in each`,
      '1, or store.redis in the place of store.memory',
    );
  }
  if (count === 'auto') return;
  for (const { path, value } of connectionBounds(config)) {
    if (value >= count) continue;
    report.error(path, leavesNothing(nameOf(path), value, count), `at least ${String(count)}, or fewer workers`);
  }
}

/** Of so many connections some workers would have none, and could serve nobody. */
export function leavesNothing(name: string, connections: number, count: number): string {
  return `${name} is ${String(connections)}, which leaves nothing for some of ${String(count)} workers`;
}

/** Each worker has its part of these, and connections of its own. */
function connectionBounds({
  upstream,
  servesCallers,
  egress,
}: ParsedConfig): readonly { readonly path: Path; readonly value: number }[] {
  const targets = egress?.value?.targets ?? [];
  return [
    ...(servesCallers && upstream !== null
      ? [{ path: ['upstream', 'max_connections'], value: upstream.value.max_connections }]
      : []),
    ...targets.map((target, index) => ({
      path: ['egress', 'targets', index, 'max_connections'],
      value: target.max_connections,
    })),
  ];
}
