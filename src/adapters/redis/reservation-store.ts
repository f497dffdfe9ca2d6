import type { Complete, Reserve, ReservationRecord } from '../../decision/reservation.js';
import type { ReservationScope } from '../../decision/reservation-scope.js';
import { accept, refuse, type Result } from '../../decision/result.js';
import type { ReservationStore, ShownRecord, StoreFailure } from '../../ports.js';
import { createLanes, type LaneDeps, type Lanes } from './lanes.js';
import { numberOf, readCompleted, readMarked, readReleased, readReserved, readResolved, readResponse, textOf } from './replies.js';
import { scripts, type Script } from './scripts.js';
import type { RedisSettings } from './settings.js';

/** Keeps reservations in Redis: what several proxies share, and what outlives each of them. */
export function createRedisStore(settings: RedisSettings, deps: LaneDeps): ReservationStore & { readonly verdict: Lanes['verdict'] } {
  const lanes = createLanes(settings, deps);
  const settle = { replicas: 0, deadlineMs: settings.settleTimeoutMs } as const;

  return {
    reserve: async (scope, command) => {
      const call = { replicas: settings.replicas, deadlineMs: settings.reserveTimeoutMs };
      const ran = await run(scripts.reserve, scope, reserveValues(command), call);
      if (!ran.ok) return ran;
      return read(ran.value.reply, (reply) => ({ reserved: readReserved(reply), confirmedReplicas: ran.value.confirmedReplicas }));
    },
    complete: async (scope, command) => readRun(await run(scripts.complete, scope, completeValues(command), settle), readCompleted),
    release: async (scope, command) => readRun(await run(scripts.release, scope, [command.attempt], settle), readReleased),
    mark: async (scope, command) => readRun(await run(scripts.mark, scope, [command.attempt, String(command.fence)], settle), readMarked),
    resolve: async (scope, resolution) => readRun(await run(scripts.resolve, scope, [resolution], settle), readResolved),
    show: async (scope) => readRun(await run(scripts.show, scope, [], settle), readShown),
    state: lanes.state,
    verdict: lanes.verdict,
    issuedBeforeFloorS: lanes.issuedBeforeFloorS,
    close: () => {
      lanes.close();
      return Promise.resolve();
    },
  };

  function run(script: Script, scope: ReservationScope, values: readonly (string | Buffer)[], limits: { readonly replicas: number; readonly deadlineMs: number }) {
    return lanes.run(script, { keys: keysOf(settings.prefix, scope), values, ...limits });
  }
}

/** The keys of one scope, on one slot of a Cluster. A key that a command does not touch is named all the same. */
export function keysOf(prefix: string, scope: ReservationScope): readonly [string, string] {
  const tag = `${prefix}:{${scope.principal}}`;
  return [`${tag}:i:${scope.operation ?? ''}`, `${tag}:t:${scope.token ?? ''}`];
}

function reserveValues(command: Reserve): readonly string[] {
  const { attempt, key, markerTtlMs } = command;
  return [
    attempt,
    flag(key !== null),
    key?.fingerprint ?? '',
    String(key?.leaseMs ?? 0),
    String(key?.retentionMs ?? 0),
    flag(key?.takesOver === true),
    flag(markerTtlMs !== null),
    String(markerTtlMs ?? 0),
  ];
}

function completeValues(command: Complete): readonly (string | Buffer)[] {
  const { response } = command;
  return [
    command.attempt,
    String(command.fence),
    command.fingerprint,
    command.state,
    String(response.status),
    JSON.stringify(response.fields),
    Buffer.from(response.body.buffer, response.body.byteOffset, response.body.byteLength),
    String(command.retentionMs),
  ];
}

function flag(value: boolean): string {
  return value ? '1' : '0';
}

function readRun<T>(ran: Result<{ readonly reply: unknown }, StoreFailure>, reader: (reply: unknown) => T): Result<T, StoreFailure> {
  return ran.ok ? read(ran.value.reply, reader) : ran;
}

function read<T>(reply: unknown, reader: (reply: unknown) => T): Result<T, StoreFailure> {
  try {
    return accept(reader(reply));
  } catch {
    // A damaged record, or another program under our prefix: not ours to overwrite, nor to trust.
    return refuse({ kind: 'refused', reason: 'the store answered with something unexpected', mayHaveRun: true });
  }
}

const states: ReadonlySet<string> = new Set<ReservationRecord['state']>(['pending', 'completed', 'tombstone', 'unknown']);

function readShown(reply: unknown): ShownRecord | null {
  const parts: readonly unknown[] = Array.isArray(reply) ? reply : [];
  const [now, version, state, fingerprint, owner, fence, created, lease, status, fields, body, ttl] = parts;
  if (parts.length === 1) return null;
  if (!states.has(textOf(state))) throw new Error('unexpected state');
  const nowMs = numberOf(now);
  return {
    nowMs,
    record: {
      version: numberOf(version),
      state: textOf(state) as ReservationRecord['state'],
      fingerprint: textOf(fingerprint),
      owner: textOf(owner),
      fence: numberOf(fence),
      createdAtMs: numberOf(created),
      leaseEndsAtMs: numberOf(lease),
      response: status === null ? null : readResponse(status, fields, body),
      expiresAtMs: nowMs + numberOf(ttl),
    },
  };
}
