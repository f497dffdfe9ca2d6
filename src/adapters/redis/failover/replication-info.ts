/** What servers and Sentinels say of replication. */
import { infoFields } from '../topology/server-checks.js';
import type { RedisAddress } from '../client/settings.js';

/** A replica as its primary sees it. */
export interface ListedReplica {
  readonly address: RedisAddress;
  readonly state: string;
  /** Bytes of the primary's history that it has confirmed. */
  readonly offset: number;
  /** Seconds since it last confirmed. */
  readonly lagS: number;
}

export interface Replication {
  readonly role: string;
  readonly runId: string | null;
  /** Name of the data's history, and its length in bytes. */
  readonly replid: string;
  readonly offset: number;
  /**
   * The history that was followed before this server was promoted, and the first byte that was not taken over; -1 where
   * there is none.
   */
  readonly formerReplid: string;
  readonly formerEnd: number;
  /** Of a replica: whether its link to the primary is up. */
  readonly linkUp: boolean;
  readonly replicas: readonly ListedReplica[];
}

/** Reads the reply of `INFO`, or of its part on replication, which does not tell the run. */
export function replicationOf(text: string): Replication {
  const facts = infoFields(text);
  return {
    role: facts.get('role') ?? 'unknown',
    runId: facts.get('run_id') ?? null,
    replid: facts.get('master_replid') ?? '',
    offset: numberOf(facts.get('master_repl_offset')),
    formerReplid: facts.get('master_replid2') ?? '',
    formerEnd: numberOf(facts.get('second_repl_offset')),
    linkUp: facts.get('master_link_status') === 'up',
    replicas: [...facts].flatMap(([name, value]) => (/^slave\d+$/.test(name) ? [listedReplica(value)] : [])),
  };
}

/** `ip=10.0.0.2,port=6379,state=online,offset=1234,lag=0`. */
function listedReplica(text: string): ListedReplica {
  const parts = new Map(
    text.split(',').map((part) => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]),
  );
  return {
    address: { host: parts.get('ip') ?? '', port: numberOf(parts.get('port')) },
    state: parts.get('state') ?? 'unknown',
    offset: numberOf(parts.get('offset')),
    lagS: parts.has('lag') ? numberOf(parts.get('lag')) : Infinity,
  };
}

function numberOf(text: string | undefined): number {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : -1;
}

/** A primary or replica as a Sentinel sees it. */
export interface WatchedServer {
  readonly address: RedisAddress;
  readonly flags: readonly string[];
  /** 0 is never promoted. */
  readonly priority: number;
}

/** Reads one server of the replies of `SENTINEL MASTER` and `SENTINEL REPLICAS`: names and values in turn. */
export function watchedServer(reply: unknown): WatchedServer {
  const words: readonly unknown[] = Array.isArray(reply) ? reply : [];
  const facts = new Map<string, string>();
  for (let index = 0; index + 1 < words.length; index += 2) facts.set(String(words[index]), String(words[index + 1]));
  return {
    address: { host: facts.get('ip') ?? '', port: numberOf(facts.get('port')) },
    flags: (facts.get('flags') ?? '').split(','),
    priority: numberOf(facts.get('slave-priority') ?? '100'),
  };
}

export function watchedServers(reply: unknown): readonly WatchedServer[] {
  return Array.isArray(reply) ? reply.map(watchedServer) : [];
}
