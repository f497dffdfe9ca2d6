import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import type { Reserve } from '../../../src/decision/idempotency/record.js';
import type { ReservationStore } from '../../../src/ports/idempotency.js';
import type { RecentLimits } from '../../../src/proxy/idempotency/recent-settlements.js';
import { createSettlements, type Settlements } from '../../../src/proxy/idempotency/settlement-queue.js';
import type { SettleCommand, Settling } from '../../../src/proxy/idempotency/settlement-queue.js';
import { manualTime, type ManualTime } from '../../adapters/manual-time.js';
import { acquire, collectingLog, reserveOf } from '../../adapters/store-commands.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { createFaultyStore, type FaultyStore } from './faulty-store.js';
import { silentReservationMetrics } from '../../support/reservation-metrics.js';

interface Bench {
  readonly time: ManualTime;
  readonly store: FaultyStore;
  readonly settlements: Settlements;
  /** What was counted since it was last looked at. */
  readonly counted: () => readonly string[];
  readonly lines: readonly string[];
  readonly reserve: (
    operation: string,
    attempt?: string,
    key?: Partial<NonNullable<Reserve['key']>>,
  ) => Promise<number>;
  readonly settle: (operation: string, write: SettleCommand, change?: Partial<Settling>) => Promise<void>;
  readonly state: (operation: string) => Promise<string | null>;
  /** Everything is forgotten but this, and that is noticed. */
  readonly failOver: (forgets?: boolean) => void;
  /** Whether the store says that it is there; for callers whose operations begin with this, where it is given. */
  readonly isUp: (up: boolean, part?: string) => void;
  /** Keys that an operator frees. */
  readonly free: (operation: string) => Promise<unknown>;
  /** Everything is forgotten but this, and nobody notices. */
  readonly forget: () => void;
  /** Resolves once all is offered. */
  readonly offered: () => Promise<string>;
}

/** A store that fails over, on a clock that stands still. */
export function bench(t: Scope, limits?: RecentLimits): Bench {
  const time = manualTime();
  let memory = createMemoryStore(time.clock);
  t.teardown(() => memory.close());
  const current = (): ReservationStore => memory;
  const away = new Set<string>();
  const store = createFaultyStore({
    ...memory,
    state: () => ({ ...memory.state(), up: away.size === 0 }),
    problemOf: (part) => {
      const isAway = away.has('') || (typeof part !== 'string' && away.has(part.principal));
      return isAway ? 'out of reach' : null;
    },
    reserve: (...args) => current().reserve(...args),
    complete: (...args) => current().complete(...args),
    release: (...args) => current().release(...args),
    mark: (...args) => current().mark(...args),
    show: (...args) => current().show(...args),
  });
  const log = collectingLog();
  const counted: string[] = [];
  const settlements = createSettlements(
    {
      store: store.store,
      clock: time.clock,
      timers: time.timers,
      log,
      metrics: {
        ...silentReservationMetrics,
        reservation: (result) => counted.push(result),
        unknownOutcome: () => counted.push('in doubt'),
        offeredAgain: (count) => counted.push(`again ${String(count)}`),
      },
    },
    undefined,
    limits,
  );
  const forget = (): void => {
    void memory.close();
    memory = createMemoryStore(time.clock);
  };
  const scopeOf = (operation: string) => ({ principal: operation.split(':')[0] ?? '', operation, token: null });
  return {
    time,
    store,
    settlements,
    lines: log.lines,
    counted: () => counted.splice(0),
    reserve: (operation, attempt = 'a', key = {}) => acquire(store.store, scopeOf(operation), reserveOf(attempt, key)),
    settle: (operation, write, change) =>
      settlements.settle({
        scope: scopeOf(operation),
        recordId: `p.${operation}`,
        write,
        untilMs: time.clock.monotonic() + 60_000,
        deduplicates: false,
        ...change,
      }),
    state: async (operation) => {
      const shown = await memory.show(scopeOf(operation));
      return shown.ok ? (shown.value?.record.state ?? null) : 'away';
    },
    failOver: (forgets = true) => {
      if (forgets) forget();
      store.failOver();
    },
    isUp: (isIt, part = '') => {
      if (isIt) away.delete(part);
      else away.add(part);
    },
    free: async (operation) => memory.resolve(scopeOf(operation), 'not-applied'),
    forget,
    offered: async () =>
      until('all to be offered', () => {
        const line = log.lines.at(-1);
        return line?.includes('offered to the store once more') === true ? line : null;
      }),
  };
}

export function completion(attempt: string, fence: number, bytes = 4): SettleCommand {
  const response = { status: 201, headers: [], body: Buffer.alloc(bytes) };
  return {
    kind: 'complete',
    command: { attempt, fence, fingerprint: 'f', state: 'completed', response, retentionMs: 60_000 },
  };
}
