import { createRedisStore } from '../../../src/adapters/redis/reservation-store.js';
import type { RedisSettings } from '../../../src/adapters/redis/client/settings.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { collectingLog } from '../store-commands.js';

export const wallClock = { now: (): number => Date.now(), monotonic: (): number => performance.now() };

/** The rights that docs/storage.md lists: no CONFIG, no SCRIPT, no KEYS, no other keys. */
export const leastRights = [
  '~sallyport:*',
  '+eval',
  '+evalsha',
  '+info',
  '+wait',
  '+time',
  '+get',
  '+set',
  '+hmget',
  '+hset',
  '+exists',
  '+del',
  '+pexpire',
  '+pttl',
  '&sallyport:*',
  '+hlen',
  '+hgetall',
  '+hdel',
  '+publish',
  '+subscribe',
];

/** Settings for a server on loopback. The deadlines are wide: machines that run tests are slow at times. */
export function redisSettings(port: number, change: Partial<RedisSettings> = {}): RedisSettings {
  return {
    topology: { kind: 'single', host: '127.0.0.1', port, database: 0 },
    username: null,
    passwordFile: null,
    tls: null,
    prefix: 'sallyport',
    replicas: 0,
    reserveTimeoutMs: 10_000,
    settleTimeoutMs: 10_000,
    keptPerCaller: null,
    durability: 'verified',
    ...change,
  };
}

export interface OpenedStore {
  readonly store: ReturnType<typeof createRedisStore>;
  readonly log: ReturnType<typeof collectingLog>;
  /** How often the store told of one. */
  readonly failovers: () => number;
  readonly up: () => Promise<unknown>;
  readonly down: () => Promise<unknown>;
  /** Waits until the store gives such a reason. */
  readonly problem: (words: RegExp) => Promise<unknown>;
}

/** A store that closes with the test. */
export function openStore(t: Scope, settings: RedisSettings): OpenedStore {
  const log = collectingLog();
  let failovers = 0;
  const store = createRedisStore(settings, {
    clock: wallClock,
    log,
    maxTokenLifetimeMs: () => 7_200_000,
    onFailover: () => (failovers += 1),
  });
  t.teardown(() => store.close());
  return {
    store,
    log,
    failovers: () => failovers,
    up: () => until('the store is up', () => store.state().up),
    down: () => until('the store is down', () => !store.state().up),
    problem: (words: RegExp) => until(`the store says ${String(words)}`, () => words.test(store.state().problem ?? '')),
  };
}
