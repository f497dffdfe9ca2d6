import type { Durability } from './settings.js';

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
  readonly appendOnly: boolean | null;
  readonly connectedReplicas: number | null;
}

/** Something that makes the server unfit, and what to do about it. */
export interface Unfitness {
  /** Whether it will not pass by itself: a setting, not a moment. */
  readonly lasting: boolean;
  readonly problem: string;
  readonly fix: string;
}

/** Reads the answer of `INFO`. */
export function parseInfo(text: string): ServerFacts {
  const facts = new Map<string, string>();
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) facts.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const version = facts.get('redis_version') ?? null;
  const appendOnly = facts.get('aof_enabled');
  return {
    runId: facts.get('run_id') ?? null,
    replicationId: facts.get('master_replid') ?? null,
    majorVersion: version === null ? null : Number.parseInt(version, 10),
    version,
    role: facts.get('role') ?? null,
    evictionPolicy: facts.get('maxmemory_policy') ?? null,
    appendOnly: appendOnly === undefined ? null : appendOnly === '1',
    connectedReplicas: numberOf(facts.get('connected_slaves')),
  };
}

function numberOf(text: string | undefined): number | null {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}

/** Oldest server whose scripts and commands are used. */
const oldest = { major: 6, minor: 2 } as const;

/**
 * Decides whether a server may hold reservations (REPLAY section 7): what it forgets, it lets run twice.
 *
 * @returns why not, or nothing.
 */
export function unfitnessOf(facts: ServerFacts, needs: { readonly replicas: number; readonly durability: Durability }): readonly Unfitness[] {
  return [...versionProblems(facts), ...roleProblems(facts), ...replicaProblems(facts, needs.replicas), ...durabilityProblems(facts, needs.durability)];
}

function versionProblems({ version }: ServerFacts): readonly Unfitness[] {
  const [major, minor] = (version ?? '').split('.').map(Number);
  if (major === undefined || minor === undefined || Number.isNaN(major) || Number.isNaN(minor)) {
    return [{ lasting: true, problem: 'the server does not say its version', fix: 'allow INFO to the Redis user' }];
  }
  if (major > oldest.major || (major === oldest.major && minor >= oldest.minor)) return [];
  return [{ lasting: true, problem: `the server is version ${major}.${minor}`, fix: 'use Redis 6.2 or newer, or Valkey' }];
}

function roleProblems({ role }: ServerFacts): readonly Unfitness[] {
  if (role === 'master') return [];
  return [{ lasting: false, problem: `the server is ${role === null ? 'of unknown role' : `a ${role}`}, not a primary`, fix: 'point store.redis at the primary' }];
}

function replicaProblems({ connectedReplicas }: ServerFacts, needed: number): readonly Unfitness[] {
  if (needed === 0 || (connectedReplicas ?? 0) >= needed) return [];
  return [{
    lasting: false,
    problem: `${connectedReplicas ?? 'an unknown number of'} replicas are connected, store.redis.replicas asks for ${needed}`,
    fix: 'connect more replicas, or lower store.redis.replicas',
  }];
}

function durabilityProblems(facts: ServerFacts, durability: Durability): readonly Unfitness[] {
  if (durability === 'none') return [];
  const problems: Unfitness[] = [];
  if (facts.evictionPolicy === null) problems.push(...unread('maxmemory_policy', durability));
  else if (facts.evictionPolicy !== 'noeviction') {
    problems.push({
      lasting: true, problem: `maxmemory-policy is ${facts.evictionPolicy}: reservations can be evicted`, fix: 'set maxmemory-policy noeviction',
    });
  }
  if (facts.appendOnly === null && (facts.connectedReplicas ?? 0) === 0) problems.push(...unread('aof_enabled', durability));
  else if (facts.appendOnly === false && (facts.connectedReplicas ?? 0) === 0) {
    problems.push({
      lasting: true, problem: 'there is no append-only file and no replica: a restart forgets reservations', fix: 'set appendonly yes, or connect a replica',
    });
  }
  return problems;
}

function unread(field: string, durability: Durability): readonly Unfitness[] {
  if (durability === 'unverified') return [];
  return [{
    lasting: true,
    problem: `INFO does not tell ${field}`,
    fix: 'allow INFO to the Redis user, or write durability: unverified where the provider hides it',
  }];
}

/** Whether the data's history may have changed between two looks: then reservations may have been lost. */
export function isFailover(before: ServerFacts, after: ServerFacts): boolean {
  return before.runId !== after.runId || before.replicationId !== after.replicationId;
}
