import type { Complete, Mark, Reserve, StoredResponse } from '../../decision/idempotency/record.js';
import type { ReservationScope } from '../../decision/idempotency/scope.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { ReservationStore, StoreFailure, StoreShare, UnsettledRecords } from '../../ports/idempotency.js';
import type { SharedRateCounter } from '../../ports/limits.js';
import type { RevocationStore } from '../../ports/revocations.js';
import { createSharedRateCounter } from './rate-counter.js';
import { readCompleted, readMarked, readReleased, readReserved, readResolved, readShown } from './scripts/replies.js';
import { createRevocationStore, revocationTag } from './revocation-store.js';
import type { ScriptReply } from './scripts/run-script.js';
import { scripts, type Script } from './scripts/reservation.js';
import { createServers, type Servers, type StoreDeps } from './topology/primaries.js';
import type { RedisSettings } from './client/settings.js';
import { isRecordRefusal } from './scripts/errors.js';
import { createStoreShare } from './store-share.js';
import { createUnsettledRecords } from './unsettled-records.js';
import type { Clock, Log } from '../../ports/system.js';

/** A store in Redis, and what else its connections are used for. */
export interface RedisStore extends ReservationStore {
  readonly verdict: Servers['verdict'];
  readonly rates: SharedRateCounter;
  readonly share: StoreShare;
  readonly revocations: RevocationStore;
  readonly unsettled: UnsettledRecords;
}

/** What is said of a record that is there, and cannot be read. */
const notOurs = 'a record of another version, or a damaged one';

/** Keeps reservations in Redis: what several proxies share, and what outlives each of them. */
export function createRedisStore(settings: RedisSettings, deps: StoreDeps): RedisStore {
  const listeners: (() => void)[] = [];
  const servers = createServers(settings, {
    ...deps,
    onFailover: () => {
      deps.onFailover();
      for (const listener of listeners) listener();
    },
  });
  const unexpected = createUnexpectedRecords(deps);
  const toReserve = { replicas: settings.replicas, deadlineMs: settings.reserveTimeoutMs } as const;
  const toSettle = { replicas: 0, deadlineMs: settings.settleTimeoutMs } as const;

  return {
    reserve: (scope, command) =>
      run(scripts.reserve, scope, reserveValues(command), toReserve, ({ reply, confirmedReplicas }) => ({
        reserved: readReserved(reply),
        confirmedReplicas,
      })),
    complete: (scope, command) => settle(scope, 'completed', scripts.complete, completeValues(command), readCompleted),
    release: (scope, command) => settle(scope, 'released', scripts.release, [command.attempt], readReleased),
    mark: (scope, command) => settle(scope, 'kept', scripts.mark, markValues(command), readMarked),
    resolve: (scope, resolution) => settle(scope, 'absent', scripts.resolve, [resolution], readResolved),
    show: (scope) => settle(scope, null, scripts.show, [], readShown),
    state: servers.state,
    verdict: servers.verdict,
    problemOf: (part) => {
      if (part === 'all') return servers.state().problem;
      return servers.problemOf(part === 'revocations' ? revocationTag : part.principal);
    },
    rates: createSharedRateCounter(servers, settings),
    share: createStoreShare(servers, settings),
    revocations: createRevocationStore(servers, settings),
    unsettled: createUnsettledRecords(servers, settings),
    issuedBeforeFloorS: servers.issuedBeforeFloorS,
    onFailover: (listener) => {
      listeners.push(listener);
    },
    close: () => {
      servers.close();
      return Promise.resolve();
    },
  };

  /** @param nothing the reply where the request has no key, and so no record. */
  async function settle<T>(
    scope: ReservationScope,
    nothing: T,
    script: Script,
    values: readonly (string | Buffer)[],
    reader: (reply: unknown) => T,
  ): Promise<Result<T, StoreFailure>> {
    if (scope.operation === null) return accept(nothing);
    return run(script, { ...scope, token: null }, values, toSettle, ({ reply }) => reader(reply));
  }

  async function run<T>(
    script: Script,
    scope: ReservationScope,
    values: readonly (string | Buffer)[],
    limits: typeof toReserve | typeof toSettle,
    reader: (reply: ScriptReply) => T,
  ): Promise<Result<T, StoreFailure>> {
    const keys = keysOf(settings.prefix, scope);
    const ran = await servers.run(scope.principal, { script, keys, values, ...limits });
    if (!ran.ok) {
      const { kind, reason, mayHaveRun, cause } = ran.error;
      if (isRecordRefusal(cause)) unexpected.tell(keys.join(' '), reason);
      return refuse({ kind, reason, mayHaveRun });
    }
    try {
      const value = reader(ran.value);
      if (isUnsupported(value)) unexpected.tell(keys.join(' '), notOurs);
      return accept(value);
    } catch {
      // A damaged record, or another program under our prefix: not ours to overwrite, nor to trust.
      const reason = script === scripts.show ? notOurs : 'the store answered with something unexpected';
      unexpected.tell(keys.join(' '), reason);
      return refuse({ kind: 'refused', reason, mayHaveRun: true });
    }
  }
}

function isUnsupported(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || !('reserved' in value)) return value === 'unsupported';
  const { reserved } = value;
  return typeof reserved === 'object' && reserved !== null && 'kind' in reserved && reserved.kind === 'unsupported';
}

/**
 * The keys of one scope, on one slot of a Cluster: the record first, then the token's marker. Only what is touched is
 * named: a Cluster that hands a slot over refuses commands on several keys meanwhile.
 */
export function keysOf(prefix: string, scope: ReservationScope): readonly string[] {
  const tag = `${prefix}:{${scope.principal}}`;
  const marker = scope.token === null ? [] : [`${tag}:t:${scope.token}`];
  return [...(scope.operation === null ? marker : [`${tag}:i:${scope.operation}`]), ...marker];
}

export function reserveValues(command: Reserve): readonly string[] {
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
    key?.route ?? '',
  ];
}

export function completeValues(command: Complete): readonly (string | Buffer)[] {
  const { response } = command;
  return [
    command.attempt,
    String(command.fence),
    command.fingerprint,
    command.state,
    String(response.status),
    headersText(response),
    Buffer.from(response.body.buffer, response.body.byteOffset, response.body.byteLength),
    String(command.retentionMs),
    response.traceparent ?? '',
  ];
}

/**
 * Kept fields: a list, and where there are trailers an object that names both. Versions that know no trailers take the
 * object for damage and answer 503: without its trailers the response would be another one.
 */
function headersText({ headers, trailers }: StoredResponse): string {
  return JSON.stringify(trailers === undefined ? headers : { fields: headers, trailers });
}

export function markValues({ attempt, fence, fingerprint, route, retentionMs }: Mark): readonly string[] {
  return [attempt, String(fence), fingerprint, route, String(retentionMs)];
}

function flag(value: boolean): string {
  return value ? '1' : '0';
}

/** Tells of records that are not as Sallyport writes them: damaged, another program's, or of another version. */
interface UnexpectedRecords {
  readonly tell: (key: string, reason: string) => void;
}

/** Longest silence between two lines, milliseconds: a caller that tries again and again fills no log. */
const quietMs = 10_000;

export function createUnexpectedRecords({
  clock,
  log,
}: {
  readonly clock: Clock;
  readonly log: Log;
}): UnexpectedRecords {
  let quietUntilMs = -Infinity;
  return {
    tell: (key, reason) => {
      const nowMs = clock.monotonic();
      if (nowMs < quietUntilMs) return;
      quietUntilMs = nowMs + quietMs;
      log.error('unexpected data under our key prefix: requests that use this key get 503', {
        key,
        reason,
      });
    },
  };
}
