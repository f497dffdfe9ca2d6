import { readFileSync } from 'node:fs';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisSettings } from './settings.js';

/** A connection of ioredis: to one server, to the primary that Sentinel names, or to a Cluster. */
export type RedisClient = Redis | Cluster;

/** Longest pause between two attempts to connect, milliseconds. */
const longestPauseMs = 1_000;
const connectTimeoutMs = 2_000;

/**
 * Creates a client that never queues and never resends: a command that got no answer may have run, and what is sent
 * later than its deadline answers nobody. Connects by itself, again and again.
 */
export function createClient(settings: RedisSettings): RedisClient {
  const { topology } = settings;
  const shared = {
    ...(settings.username === null ? {} : { username: settings.username }),
    ...passwordOf(settings),
    ...(settings.tls === null ? {} : { tls: tlsOf(settings) }),
    connectTimeout: connectTimeoutMs,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    protocol: 2,
    lazyConnect: true,
    noDelay: true,
    keepAlive: 10_000,
  } satisfies RedisOptions;
  switch (topology.kind) {
    case 'single':
      return reconnecting(settings, (retry) => new Redis({ ...shared, host: topology.host, port: topology.port, db: topology.database, retryStrategy: retry }));
    case 'sentinel':
      return reconnecting(settings, (retry) => new Redis({
        ...shared,
        name: topology.name,
        sentinels: topology.nodes.map(({ host, port }) => ({ host, port })),
        role: 'master',
        failoverDetector: true,
        retryStrategy: retry,
        sentinelRetryStrategy: pauseMs,
      }));
    case 'cluster':
      return new Cluster(topology.nodes.map(({ host, port }) => ({ host, port })), {
        redisOptions: shared,
        enableOfflineQueue: false,
        lazyConnect: true,
        scaleReads: 'master',
        clusterRetryStrategy: pauseMs,
        slotsRefreshInterval: 1_000,
        slotsRefreshTimeout: 2_000,
      });
  }
}

/** The password is read at every connect: secrets rotate. */
function reconnecting(settings: RedisSettings, create: (retry: (attempt: number) => number) => Redis): Redis {
  const client = create((attempt) => {
    Object.assign(client.options, passwordOf(settings));
    return pauseMs(attempt);
  });
  return client;
}

function passwordOf({ passwordFile }: RedisSettings): { readonly password?: string } {
  if (passwordFile === null) return {};
  try {
    return { password: readFileSync(passwordFile, 'utf8').replace(/\r?\n$/, '') };
  } catch {
    // Without it the server refuses us, which is what the state then says; the file may be back at the next attempt.
    return {};
  }
}

function tlsOf({ tls, topology }: RedisSettings): NonNullable<RedisOptions['tls']> {
  return {
    rejectUnauthorized: true,
    ...(tls?.ca == null ? {} : { ca: tls.ca }),
    ...(tls?.serverName != null ? { servername: tls.serverName } : topology.kind === 'single' ? { servername: topology.host } : {}),
  };
}

function pauseMs(attempt: number): number {
  return Math.min(longestPauseMs, 50 * 2 ** Math.min(attempt, 6)) * (0.5 + Math.random() / 2);
}
