import { waitUntil } from '../../lib/promises.js';
import { systemClock, systemTimers } from '../../adapters/system/clock.js';
import { createMemoryStore } from '../../adapters/memory/reservation-store.js';
import type { createRedisStore } from '../../adapters/redis/reservation-store.js';
import type { RedisSettings } from '../../adapters/redis/client/settings.js';
import type { RedisStoreSettings, StoreSettings, CompiledConfig } from '../../config/types.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Files, Log } from '../../ports/system.js';
import type {
  ReservationStore,
  StoreShare,
  UnsettledRecords,
  ReservationParts,
  StoreState,
} from '../../ports/idempotency.js';
import type { InFlightCounter, RateCounter, SharedRateCounter, LimitsState } from '../../ports/limits.js';
import type { RevocationStore, RevocationSource, RevocationsState } from '../../ports/revocations.js';
import { readAuthorities } from '../config/named-files.js';
import { startFailure, type StartFailure } from '../start-failure.js';
import { createInFlightCounter } from '../../adapters/memory/in-flight-counter.js';
import { createRateCounter } from '../../adapters/memory/rate-counter.js';
import { createCallerLimits, type CallerLimits } from '../../proxy/exchange/rate-limiter.js';
import type { ReservationSeries } from '../../adapters/metrics/reservations.js';
import { createDoubtfulWrites, type DoubtfulWrite } from './doubtful-writes.js';
import type { Revocations } from '../../decision/route/policy.js';
import { createRevocationPoller } from '../../proxy/auth/revocation-poller.js';

/** A password of an access list; the adapter reads it for each connection. */
const maxPasswordBytes = 4_096;

/**
 * How long a start waits for the store to say whether it is fit, milliseconds. Out of reach for longer, it is waited
 * for while serving.
 */
const verdictWithinMs = 1_500;

/** Time of the memory store for a settlement: it takes none. */
const memorySettleTimeoutMs = 1_000;

interface StoreDeps {
  readonly log: Log;
  /** Longest time from a token's issue to its last valid moment, milliseconds. */
  readonly maxTokenLifetimeMs: () => number;
  /** Where an operator's command looks on, and writes down nothing of what it sees of the store. */
  readonly looksOn?: boolean;
}

/** A store, with what reserving routes have to know of its settings. */
export interface OpenStore {
  readonly store: ReservationStore;
  /** Counts requests together with other proxies; `null` where nobody else sees the store. */
  readonly rates: SharedRateCounter | null;
  /** What one caller may take of it; `null` where it is this process's alone. */
  readonly share: StoreShare | null;
  /** Revocations for every proxy that shares the store; `null` where nobody else sees it. */
  readonly revocations: RevocationStore | null;
  /** Finds records that are not settled; `null` where nobody else sees the store. */
  readonly unsettled: UnsettledRecords | null;
  /** Replicas that have to confirm a reservation, or what an operator revokes. */
  readonly replicas: number;
  readonly settleTimeoutMs: number;
  /**
   * Resolves with what lasts and makes the store unfit, and how to mend it; with `null` where there is nothing, or
   * nothing is known in time. Until it resolves, nothing of the store is logged.
   */
  readonly lastingProblem: () => Promise<string | null>;
}

/** Reads the files that the store's settings name, so that a wrong one is found before anything is opened. */
export async function readStoreFiles(
  settings: StoreSettings | null,
  files: Files,
): Promise<Result<{ readonly ca: string | null }, StartFailure>> {
  if (settings?.kind !== 'redis') return accept({ ca: null });
  const { passwordFile, tls } = settings;
  if (passwordFile !== null) {
    const password = await files.read(passwordFile, { maxBytes: maxPasswordBytes });
    if (!password.ok) return refuse(startFailure('unreadable', `${passwordFile}: ${password.error}`));
  }
  if (tls === null || tls.caFile === null) return accept({ ca: null });
  const ca = await readAuthorities(tls.caFile, files);
  return ca.ok ? accept({ ca: ca.value }) : ca;
}

/** A store's settings, with the program that the kind needs. */
export type LoadedStore =
  | { readonly kind: 'memory' }
  | {
      readonly kind: 'redis';
      readonly settings: RedisStoreSettings;
      readonly createRedisStore: typeof createRedisStore;
    };

/** Loads the client of Redis where settings ask for it: a start without it takes a tenth less. */
export async function loadStore(settings: StoreSettings): Promise<LoadedStore> {
  if (settings.kind === 'memory') return settings;
  return { kind: 'redis', settings, ...(await import('../../adapters/redis/reservation-store.js')) };
}

/** Opens the store. Redis is connected to from here on, for as long as it takes. */
export function openStore(
  loaded: LoadedStore,
  ca: () => string | null,
  { log, maxTokenLifetimeMs, looksOn = false }: StoreDeps,
): OpenStore {
  if (loaded.kind === 'memory') {
    const store = createMemoryStore(systemClock);
    const alone = { rates: null, share: null, revocations: null, unsettled: null, replicas: 0 };
    return { ...alone, store, settleTimeoutMs: memorySettleTimeoutMs, lastingProblem: () => Promise.resolve(null) };
  }
  const { settings } = loaded;
  const held = holdLog(log);
  const deps = { clock: systemClock, log: held.log, maxTokenLifetimeMs, onFailover: () => undefined, looksOn };
  const store = loaded.createRedisStore(redisSettingsOf(settings, ca), deps);
  return {
    store,
    rates: store.rates,
    share: store.share,
    revocations: store.revocations,
    unsettled: store.unsettled,
    replicas: settings.replicas,
    settleTimeoutMs: settings.settleTimeoutMs,
    lastingProblem: async () => {
      await waitUntil(() => store.verdict() !== null, verdictWithinMs);
      const problem = store.verdict()?.problem ?? null;
      if (problem === null) held.pass();
      return problem;
    },
  };
}

/**
 * Holds the log's lines until the start is decided. Why it fails is said once, by the start, and not before that in
 * other words.
 */
function holdLog(log: Log): { readonly log: Log; readonly pass: () => void } {
  let held: (() => void)[] | null = [];
  const level =
    (name: keyof Log): Log['info'] =>
    (message, fields) => {
      const write = (): void => log[name](message, fields);
      if (held === null) write();
      else held.push(write);
    };
  return {
    log: { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') },
    pass: () => {
      const waiting = held ?? [];
      held = null;
      for (const write of waiting) write();
    },
  };
}

/** The settings as the adapter takes them: with the authorities that the file holds, asked for at each connect. */
export function redisSettingsOf(
  { tls, kind: _kind, ...settings }: RedisStoreSettings,
  ca: () => string | null,
): RedisSettings {
  return { ...settings, tls: tls === null ? null : { ca, serverName: tls.serverName } };
}

/** Limits by caller while the proxy runs. */
export interface OpenLimits {
  readonly callers: CallerLimits;
  /** `null` where no route in force has limits. */
  readonly state: () => LimitsState | null;
}

/** Where requests of callers are counted that no store counts. */
export interface LimitCounters {
  readonly local: RateCounter;
  readonly inFlight: InFlightCounter;
}

/**
 * @param activeRoutes asked again and again: a reload may bring limits.
 * @param counters of this process alone unless given.
 */
export function openLimits(
  rates: SharedRateCounter | null,
  activeRoutes: () => CompiledConfig['routes'],
  log: Log,
  counters: LimitCounters = { local: createRateCounter(systemClock), inFlight: createInFlightCounter() },
): OpenLimits {
  const callers = createCallerLimits({ ...counters, shared: rates, clock: systemClock, log });
  return {
    callers,
    state: () => {
      const limits = activeRoutes().flatMap((route) => route.limits ?? []);
      if (limits.length === 0) return null;
      const shared = limits.some(({ rate }) => rate?.shared === true);
      return shared ? { shared, ...callers.state() } : { shared, isShared: false, problem: null };
    },
  };
}

/** The store while the proxy runs, and what is counted of it. */
export interface Reservations {
  readonly parts: ReservationParts;
  /** Counts requests together with other proxies; `null` where nobody else sees the store. */
  readonly rates: SharedRateCounter | null;
  /** What is revoked through the store; `null` where nobody else sees it. */
  readonly revocations: RevocationSource | null;
  /** Whether protected routes wait until that was read once. */
  readonly requiresRevocations: boolean;
  readonly state: () => StoreState;
  /** Writes of this process that are in doubt, the oldest first, so many at most. */
  readonly inDoubt: (most: number) => readonly DoubtfulWrite[];
  /** What lasts and makes the store unfit; `null` where nothing is, or nothing is known yet. */
  readonly lastingProblem: () => Promise<string | null>;
  /** After the last settlement. */
  readonly close: () => Promise<void>;
}

/**
 * How long a token or a proof may be used again after its use was forgotten, milliseconds: for so long after a
 * fail-over those from before are refused.
 */
export function longestUseMs({ issuers, listen: { dpop } }: Pick<CompiledConfig, 'issuers' | 'listen'>): number {
  // Twice: the other clock may have been ahead when it was made, and the skew is allowed for again when its end is
  // judged.
  const ofProofs = dpop === null ? 0 : dpop.maxAgeMs + 2 * dpop.clockSkewMs;
  return Math.max(ofProofs, ...issuers.map(({ rules }) => (rules.maxLifetimeS + 2 * rules.clockSkewS) * 1000));
}

/**
 * Opens the store that a config names; `null` where it names none.
 *
 * @param activeConfig asked again and again: a reload may bring tokens that live longer.
 */
export function openReservations(
  loaded: LoadedStore | null,
  storeCa: () => string | null,
  activeConfig: () => Pick<CompiledConfig, 'issuers' | 'listen'>,
  series: ReservationSeries,
  log: Log,
): Reservations | null {
  if (loaded === null) {
    series.setReadings({ store: () => null, oldestUnknownMs: () => null });
    return null;
  }
  const maxTokenLifetimeMs = (): number => longestUseMs(activeConfig());
  const { store, rates, share, revocations, replicas, settleTimeoutMs, lastingProblem } = openStore(loaded, storeCa, {
    log,
    maxTokenLifetimeMs,
  });
  const unknowns = createDoubtfulWrites({ store, clock: systemClock, timers: systemTimers });
  series.setReadings({ store: store.state, oldestUnknownMs: unknowns.oldestMs });
  const metrics: ReservationParts['metrics'] = {
    ...series,
    unknownOutcome: (recordId) => {
      series.unknownOutcome(recordId);
      unknowns.add(recordId);
    },
  };
  return {
    parts: { store, metrics, share, replicas, settleTimeoutMs },
    rates,
    revocations,
    requiresRevocations: loaded.kind === 'redis' && !loaded.settings.startsWithoutRevocations,
    state: store.state,
    inDoubt: unknowns.oldest,
    lastingProblem,
    close: async () => {
      unknowns.close();
      await store.close();
    },
  };
}

/** Revocations through the store while the proxy runs. */
export interface OpenRevocations {
  readonly listed: () => readonly Revocations[];
  /** Whether they were read once, or need not be for protected routes to be served. */
  readonly areKnown: () => boolean;
  /** `null` where no store tells of any. */
  readonly state: () => RevocationsState | null;
  /** Begins to look, and gives the first list a moment: what comes in before would be judged without it. */
  readonly start: () => Promise<void>;
  /** Calls back whenever more is revoked than before. */
  readonly onRevoked: (listener: () => void) => void;
  readonly close: () => void;
}

/**
 * How long a start waits for the first list, milliseconds. Out of reach for longer, protected routes and `/readyz` wait
 * for it.
 */
const firstWithinMs = 1_500;

interface RevocationsDeps {
  readonly log: Log;
  readonly areRequired: boolean;
}

export function openRevocations(source: RevocationSource | null, deps: RevocationsDeps): OpenRevocations {
  if (source === null) {
    return {
      listed: () => [],
      areKnown: () => true,
      state: () => null,
      start: () => Promise.resolve(),
      onRevoked: () => undefined,
      close: () => undefined,
    };
  }
  const listeners: (() => void)[] = [];
  const watch = createRevocationPoller({
    ...deps,
    source,
    clock: systemClock,
    timers: systemTimers,
    onRevoked: () => {
      for (const listener of listeners) listener();
    },
  });
  return {
    listed: watch.rules,
    areKnown: watch.areKnown,
    state: watch.state,
    start: async () => {
      watch.start();
      await waitUntil(() => watch.state().isLoaded, firstWithinMs);
    },
    onRevoked: (listener) => {
      listeners.push(listener);
    },
    close: watch.close,
  };
}
