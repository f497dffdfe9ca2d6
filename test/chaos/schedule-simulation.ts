/** Proxies' reserved requests with their real code, on one store and one receiver, in a time that a schedule moves. */
import { PassThrough } from 'node:stream';
import { createMemoryStore } from '../../src/adapters/memory/reservation-store.js';
import { createHeaderRules } from '../../src/decision/http/header-rules.js';
import type { ReservationResult } from '../../src/ports/idempotency.js';
import type { Timers } from '../../src/ports/system.js';
import type { ActiveConfig } from '../../src/proxy/auth/active-config.js';
import { planReservation } from '../../src/proxy/idempotency/plan-reservation.js';
import { createReservedWrites, type ReservedWrites } from '../../src/proxy/idempotency/coordinator.js';
import { manualTime, type ManualTime } from '../adapters/manual-time.js';
import { collectingLog } from '../adapters/store-commands.js';
import { compiled } from '../proxy/harness.js';
import { admissionOf, callerOf, type Answer, type Ask } from './schedule-request.js';
import { createScheduleReceiver, type Dispatch, type ScheduleReceiver } from './schedule-receiver.js';
import { createStoreLink, type StoreLink } from './schedule-store.js';
import { silentReservationMetrics } from '../support/reservation-metrics.js';

const approved = { methods: ['POST'], subjects: ['checkout', 'migration'], permissions: ['orders:write'] };
const small = { mode: 'required', max_stored_response: '1KiB' };

const { routes, ...config } = compiled({
  store: { memory: {} },
  upstream: { connect_timeout: '1s', response_timeout: '10s' },
  routes: [
    { name: 'create', path: '/create', ...approved, idempotency: small },
    { name: 'single', path: '/single', ...approved, idempotency: small, single_use: true },
    { name: 'reports', path: '/reports', ...approved, idempotency: { ...small, receiver: 'reports' } },
    { name: 'deduplicates', path: '/deduplicates', ...approved, idempotency: { ...small, receiver: 'deduplicates' } },
  ],
});

/** One request and what came of it. */
export interface Asked extends Ask {
  readonly id: string;
  readonly proxy: Proxy;
  readonly dispatches: Dispatch[];
  isGone: boolean;
  readonly handle: { leave: () => void };
  answer: Answer | null;
}

export interface Proxy {
  readonly reserving: ReservedWrites;
  readonly link: StoreLink;
  readonly activeConfig: ActiveConfig;
  /** Runs the timers that came due while it was frozen. */
  readonly thaw: () => void;
}

export interface Simulation {
  readonly time: ManualTime;
  readonly receiver: ScheduleReceiver;
  readonly proxies: Proxy[];
  readonly asked: Asked[];
  readonly results: ReservationResult[];
  readonly startProxy: () => Proxy;
  readonly ask: (proxy: Proxy, ask: Ask) => Asked;
  readonly askedOf: (dispatch: Dispatch) => Asked;
  readonly close: () => Promise<void>;
}

/** What a simulation tells of as it happens. */
export interface Witness {
  readonly dispatched: (asked: Asked, dispatch: Dispatch) => void;
  readonly executed: (asked: Asked, dispatch: Dispatch) => void;
  readonly answered: (asked: Asked, answer: Answer) => void;
  readonly violation: (what: string) => void;
}

const headerRules = createHeaderRules({ identityNames: [], underscoreFields: 'drop', http10: 'refuse' });

export function createSimulation(witness: Witness): Simulation {
  const time = manualTime();
  const store = createMemoryStore(time.clock);
  const byId = new Map<string, Asked>();
  const results: ReservationResult[] = [];
  const askedOf = ({ requestId }: Dispatch): Asked => {
    const asked = byId.get(requestId);
    if (asked === undefined) throw new Error('a dispatch that nobody asked for');
    return asked;
  };
  const receiver = createScheduleReceiver(
    (dispatch) => {
      witness.executed(askedOf(dispatch), dispatch);
    },
    (dispatch) => askedOf(dispatch).route === 'deduplicates',
  );
  const simulation: Simulation = {
    time,
    receiver,
    proxies: [],
    asked: [],
    results,
    startProxy,
    ask,
    askedOf,
    close: store.close,
  };
  return simulation;

  function startProxy(): Proxy {
    const link = createStoreLink(store, witness.violation);
    const { timers, thaw } = freezable(time.timers, link);
    const reserving = createReservedWrites(
      {
        store: link.store,
        share: null,
        replicas: 0,
        settleTimeoutMs: 1_000,
        metrics: {
          ...silentReservationMetrics,
          reservation: (result) => results.push(result),
        },
      },
      { clock: time.clock, timers, log: collectingLog() },
    );
    const upstream = receiver.upstreamOf(
      () => true,
      (dispatch) => {
        const asked = askedOf(dispatch);
        asked.dispatches.push(dispatch);
        witness.dispatched(asked, dispatch);
      },
    );
    const keys = {
      find: () => ({ kind: 'unknown' as const }),
      state: () => {
        throw new Error('not asked here');
      },
    };
    const issuers = config.issuers.map(({ rules }) => ({ rules, keys }));
    const activeConfig: ActiveConfig = {
      config: { ...config, routes },
      headerRules,
      upstream,
      sessions: null,
      assertion: null,
      issuers,
      verified: null,
      revocations: () => [],
      knowsRevocations: () => true,
    };
    const proxy: Proxy = {
      reserving,
      link,
      activeConfig,
      thaw: () => {
        link.thaw();
        thaw();
      },
    };
    simulation.proxies.push(proxy);
    return proxy;
  }

  function ask(proxy: Proxy, input: Ask): Asked {
    const asked: Asked = {
      ...input,
      id: `r${simulation.asked.length}`,
      proxy,
      dispatches: [],
      isGone: false,
      handle: { leave: () => undefined },
      answer: null,
    };
    simulation.asked.push(asked);
    byId.set(asked.id, asked);
    const caller = callerOf(asked, (answer) => {
      witness.answered(asked, answer);
    });
    const admission = admissionOf(asked, proxy.activeConfig, time.clock.now());
    const prepared = planReservation(admission, proxy.activeConfig, null);
    if (!prepared.ok || prepared.value === null) throw new Error('every request of a schedule reserves');
    const body = new PassThrough();
    body.end(`body ${input.body}`);
    const handle = proxy.reserving.start({
      admission,
      preparation: prepared.value,
      trace: null,
      method: 'POST',
      activeConfig: proxy.activeConfig,
      client: caller,
      body,
      onOver: () => undefined,
    });
    asked.handle.leave = (): void => {
      asked.isGone = true;
      handle.cancel();
    };
    return asked;
  }
}

/** Timers of a process that can be stopped, and end. */
function freezable(timers: Timers, link: StoreLink): { readonly timers: Timers; readonly thaw: () => void } {
  let due: (() => void)[] = [];
  return {
    timers: {
      after: (delayMs, task) =>
        timers.after(delayMs, () => {
          if (link.isFrozen) due.push(task);
          else if (!link.isCut) task();
        }),
    },
    thaw: () => {
      const tasks = due;
      due = [];
      for (const task of tasks) task();
    },
  };
}
