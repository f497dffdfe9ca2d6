import { isLoopback } from '../../lib/ip-ranges.js';
import { topologyOf, usesTls } from './store-compile.js';
import type { ConfigParts } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';
import type { RedisFile, StoreFile } from './store-schema.js';

/** What is said of a store that nobody else sees. */
export const memoryWarning =
  'reservations are kept by this process alone and forgotten at its end: a write may then run twice';

/** Checks what the settings of the store say together. */
export function checkStore({ store, shutdown }: ConfigParts, report: Report): void {
  if (store === null || store.value === null) return;
  const { redis, memory }: StoreFile = store.value;
  if (redis === null && memory === null) {
    report.error(['store'], 'store does not say where reservations are kept', 'redis, or memory for development');
  }
  if (redis !== null && memory !== null) {
    report.keyError(['store', 'memory'], 'store.memory stands beside store.redis', 'one of them');
  }
  if (redis === null && memory !== null) {
    report.warning(['store', 'memory'], memoryWarning, 'store.redis, unless this is development');
  }
  if (redis === null) return;
  checkRedis(redis, report);
  if (shutdown !== null) checkSettleTimeout(redis, shutdown.value.grace, report);
}

/** A stop settles what is under way once more: within its grace, or the process ends before results are kept. */
function checkSettleTimeout({ settle_timeout: settleMs }: RedisFile, graceMs: number, report: Report): void {
  if (settleMs <= graceMs / 2) return;
  report.error(
    ['store', 'redis', 'settle_timeout'],
    'store.redis.settle_timeout is more than half of shutdown.grace: a stop could end before results are kept',
    `at most ${Math.floor(graceMs / 2)}ms, or a longer shutdown.grace`,
  );
}

function checkRedis(redis: RedisFile, report: Report): void {
  const [way, second] = (['url', 'sentinel', 'cluster'] as const).filter((key) => redis[key] !== null);
  if (way === undefined) {
    report.error(['store', 'redis'], 'store.redis does not say where Redis is', 'url, sentinel or cluster');
    return;
  }
  if (second !== undefined) {
    report.keyError(
      ['store', 'redis', second],
      `store.redis.${second} stands beside store.redis.${way}`,
      'one of them',
    );
    return;
  }
  if (redis.url !== null && redis.tls !== null && !usesTls(redis)) {
    report.error(['store', 'redis', 'tls'], 'store.redis.tls has no use with redis://', 'rediss:// in store.redis.url');
  } else if (!usesTls(redis) && !isLocal(redis)) {
    report.warning(
      ['store', 'redis', way],
      'reservations and kept answers cross the network in plaintext: Redis is on another host, without TLS',
      way === 'url' ? 'rediss://, or a loopback address' : 'store.redis.tls, or loopback addresses',
    );
  }
  if (redis.durability === 'none') {
    report.warning(
      ['store', 'redis', 'durability'],
      'store.redis.durability is none: Redis may forget reservations, and a write may then run twice',
      'verified, or unverified where the provider hides its settings',
    );
  }
}

function isLocal(redis: RedisFile): boolean {
  const topology = topologyOf(redis);
  const places = topology.kind === 'single' ? [topology] : topology.nodes;
  return places.every(({ host }) => isLoopback(host));
}
