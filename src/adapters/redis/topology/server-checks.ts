import type { Durability } from '../client/settings.js';

/** What the server says of itself, read from `INFO`; `null` where it does not say. */
export interface ServerFacts {
  /** Identifies this run of the process. */
  readonly runId: string | null;
  /** Identifies the data's history: changes when a replica is promoted. */
  readonly replicationId: string | null;
  readonly majorVersion: number | null;
  readonly version: string | null;
  readonly role: string | null;
  readonly evictionPolicy: string | null;
  /** Bytes that it may hold; 0 where nothing limits it. */
  readonly maxMemory: number | null;
  readonly appendOnly: boolean | null;
  /** Replicas that are connected and have caught up. */
  readonly connectedReplicas: number | null;
  /** Whether it is still reading its data from disk. */
  readonly loading: boolean;
  /** Whether it is part of a Redis Cluster. */
  readonly clustered: boolean;
}

/** Something that makes the server unfit, and what to do about it. */
export interface Unfitness {
  /** Whether it will not pass by itself: a setting, not a moment. */
  readonly lasting: boolean;
  readonly problem: string;
  readonly fix: string;
}

/** Reads the reply of `INFO`. */
export function parseInfo(text: string): ServerFacts {
  const facts = infoFields(text);
  const version = facts.get('redis_version') ?? null;
  const appendOnly = facts.get('aof_enabled');
  return {
    runId: facts.get('run_id') ?? null,
    replicationId: facts.get('master_replid') ?? null,
    majorVersion: version === null ? null : numberOf(version.split('.')[0]),
    version,
    role: facts.get('role') ?? null,
    evictionPolicy: facts.get('maxmemory_policy') ?? null,
    maxMemory: numberOf(facts.get('maxmemory')),
    appendOnly: appendOnly === undefined ? null : appendOnly === '1',
    connectedReplicas: onlineReplicas(facts) ?? numberOf(facts.get('connected_slaves')),
    loading: facts.get('loading') === '1',
    clustered: facts.get('cluster_enabled') === '1',
  };
}

/** Names and values of a reply of `INFO`, or of a part of it. */
export function infoFields(text: string): ReadonlyMap<string, string> {
  const facts = new Map<string, string>();
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) facts.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return facts;
}

/** Replicas that still copy the data are connected, too, and confirm nothing. `null` where none are listed. */
function onlineReplicas(facts: ReadonlyMap<string, string>): number | null {
  const listed = [...facts].filter(([name]) => /^slave\d+$/.test(name));
  return listed.length === 0 ? null : listed.filter(([, value]) => value.split(',').includes('state=online')).length;
}

function numberOf(text: string | undefined): number | null {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}

/** Oldest server whose scripts and commands are used. */
const oldest = { major: 6, minor: 2 } as const;

/**
 * Decides whether a server may hold reservations: what it forgets, it lets run twice.
 *
 * @returns why not, or nothing.
 */
export function unfitnessOf(facts: ServerFacts, needs: FitnessNeeds): readonly Unfitness[] {
  // What is wrong with a server that is the wrong one anyway is not the operator's problem.
  const wrong = [...versionProblems(facts), ...roleProblems(facts), ...clusterProblems(facts, needs.clustered)];
  if (wrong.length > 0) return wrong;
  return [...replicaProblems(facts, needs.replicas), ...durabilityProblems(facts, needs.durability)];
}

/** What is wrong and what to do about it, in one line. */
export function wordsOf(unfitness: readonly Unfitness[]): string {
  return unfitness.map(({ problem, fix }) => `${problem}; ${fix}`).join('; ');
}

/** Whether what is settled may be written there: the records are there, whatever else it lacks. */
export function takesSettlements({ role, loading }: ServerFacts): boolean {
  return role === 'master' && !loading;
}

/** What the settings ask of a server. */
export interface FitnessNeeds {
  readonly replicas: number;
  readonly durability: Durability;
  /** Whether the settings say that it is part of a Cluster. */
  readonly clustered: boolean;
}

function versionProblems({ version }: ServerFacts): readonly Unfitness[] {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version ?? '') ?? [];
  if (major === undefined || minor === undefined) {
    return [{ lasting: true, problem: 'the server does not say its version', fix: 'allow INFO to the Redis user' }];
  }
  if (Number(major) > oldest.major || (Number(major) === oldest.major && Number(minor) >= oldest.minor)) return [];
  return [
    { lasting: true, problem: `the server is version ${major}.${minor}`, fix: 'use Redis 6.2 or newer, or Valkey' },
  ];
}

function roleProblems({ role, loading }: ServerFacts): readonly Unfitness[] {
  if (loading) return [{ lasting: false, problem: 'the server is loading its data', fix: 'wait until it has' }];
  if (role === 'master') return [];
  const found = role === null ? 'of unknown role' : `a ${role}`;
  return [
    { lasting: false, problem: `the server is ${found}, not a primary`, fix: 'point store.redis at the primary' },
  ];
}

function clusterProblems(facts: ServerFacts, clustered: boolean): readonly Unfitness[] {
  if (!facts.clustered || clustered) return [];
  return [
    {
      lasting: true,
      problem: 'the server is part of a Redis Cluster',
      fix: 'name its nodes in store.redis.cluster instead of store.redis.url',
    },
  ];
}

function replicaProblems({ connectedReplicas }: ServerFacts, needed: number): readonly Unfitness[] {
  if (needed === 0 || (connectedReplicas ?? 0) >= needed) return [];
  return [
    {
      lasting: false,
      problem: `replicas connected: ${connectedReplicas ?? 'unknown'}; store.redis.replicas asks for ${needed}`,
      fix: 'connect more replicas, or lower store.redis.replicas',
    },
  ];
}

function durabilityProblems(facts: ServerFacts, durability: Durability): readonly Unfitness[] {
  if (durability === 'none') return [];
  const problems: Unfitness[] = [];
  if (facts.evictionPolicy === null) problems.push(...unread('maxmemory_policy', durability));
  else if (facts.evictionPolicy !== 'noeviction') {
    problems.push({
      lasting: true,
      problem: `maxmemory-policy is ${facts.evictionPolicy}: reservations can be evicted`,
      fix: 'set maxmemory-policy noeviction',
    });
  }
  if (facts.appendOnly === null && (facts.connectedReplicas ?? 0) === 0) {
    problems.push(...unread('aof_enabled', durability));
  } else if (facts.appendOnly === false && (facts.connectedReplicas ?? 0) === 0) {
    problems.push({
      lasting: true,
      problem: 'there is no append-only file and no replica: a restart forgets reservations',
      fix: 'set appendonly yes, or connect a replica',
    });
  }
  return problems;
}

function unread(field: string, durability: Durability): readonly Unfitness[] {
  if (durability === 'unverified') return [];
  return [
    {
      lasting: true,
      problem: `INFO does not tell ${field}`,
      fix: 'allow INFO to the Redis user, or write durability: unverified where the provider hides it',
    },
  ];
}

/** Names this run of the server and this history of its data: what was written under another may be forgotten. */
export function identityOf({ runId, replicationId }: ServerFacts): string {
  return `${runId ?? ''}/${replicationId ?? ''}`;
}
