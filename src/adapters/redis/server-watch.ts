import { Cluster } from 'ioredis';
import type { RedisClient } from './client.js';
import { isFailover, parseInfo, unfitnessOf, type ServerFacts, type Unfitness } from './fitness.js';
import { scripts, scriptText } from './scripts.js';
import type { RedisSettings } from './settings.js';

/** What a look at the servers behind a client found. */
export interface Inspection {
  /** By address: one server, or every primary of a Cluster. */
  readonly servers: ReadonlyMap<string, ServerFacts>;
  readonly unfitness: readonly Unfitness[];
}

/**
 * Asks every primary what it is and loads the scripts there.
 *
 * @throws what ioredis throws when a server does not answer.
 */
export async function inspectServers(client: RedisClient, settings: RedisSettings): Promise<Inspection> {
  const nodes = client instanceof Cluster ? client.nodes('master') : [client];
  const servers = new Map<string, ServerFacts>();
  const unfitness: Unfitness[] = [];
  for (const node of nodes) {
    const facts = parseInfo(await node.info());
    servers.set(`${node.options.host ?? ''}:${node.options.port ?? 0}`, facts);
    const found = unfitnessOf(facts, settings);
    unfitness.push(...found);
    if (found.length > 0) continue;
    for (const script of Object.values(scripts)) await node.script('LOAD', scriptText(script, facts.majorVersion ?? 6));
  }
  if (nodes.length === 0) throw new Error('the cluster has no primary');
  return { servers, unfitness };
}

/** Whether any primary's data may have lost something between two inspections: another run, another history, another primary. */
export function mayHaveForgotten(before: Inspection, after: Inspection): boolean {
  const known = [...before.servers.values()];
  return [...after.servers.values()].some((facts) => !known.some((old) => !isFailover(old, facts)));
}
