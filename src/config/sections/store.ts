/** The section that says where reservations are kept. */
import { z } from 'zod';
import type { ParsedConfig } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';
import {
  always,
  listOf,
  saidByAnother,
  towards,
  whenAdded,
  whenLess,
  whenLimitRises,
  whenOn,
  whenRemoved,
} from '../schema/key-changes.js';
import {
  duration,
  filePath,
  flag,
  host,
  integer,
  line,
  list,
  map,
  size,
  text,
  visibleText,
  word,
} from '../schema/scalars.js';
import { type AbsolutePath, section } from '../schema/section.js';
import type { RedisPlace, RedisStoreSettings, RedisTopology, StoreSettings } from '../types.js';
import { isLoopback } from '../../lib/ip-ranges.js';
import { isIP } from 'node:net';
import { readUrl } from '../schema/addresses.js';

const tlsSchema = map({
  ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe('Authorities in PEM that vouch for Redis, instead of the system’s. Read again when it changes.'),
  server_name: host()
    .nullable()
    .prefault(null)
    .describe('Name its certificate has to bear, where that is not the host connected to.'),
});

const nodes = list(nodeAddress(), 1, 'addresses such as redis-0:6379');

const sentinelSchema = map({
  name: line(128).describe('Name of the group of servers, as the Sentinels know it.'),
  nodes: nodes.describe('Addresses of Sentinels: HOST:PORT. One that answers is enough.'),
});

const clusterSchema = map({
  nodes: nodes.describe('Addresses of servers of the Cluster: HOST:PORT. One that answers is enough.'),
});

const redisSchema = map({
  url: redisUrl()
    .nullable()
    .prefault(null)
    .describe(
      'One server: `redis://HOST:PORT` or, with TLS, `rediss://HOST:PORT`, with `/N` for the database. Port 6379 unless given.',
    ),
  sentinel: sentinelSchema.nullable().prefault(null).describe('Instead of `url`: the primary that Sentinels name.'),
  cluster: clusterSchema.nullable().prefault(null).describe('Instead of `url`: a Redis Cluster.'),
  username: visibleText(128)
    .nullable()
    .prefault(null)
    .describe('User of the server’s access list; without one, the default user.'),
  password_file: filePath().nullable().prefault(null).describe('File with the password. Read again at each connect.'),
  tls: tlsSchema
    .nullable()
    .prefault(null)
    .describe('TLS towards Redis. With `url`, `rediss://` asks for it; otherwise `{}` does.'),
  prefix: text(/^[A-Za-z0-9._-]+$/, '1 to 64 letters, digits and `._-`', 64)
    .prefault('sallyport')
    .describe('First part of every key. Proxies that share reservations share it.'),
  replicas: integer(0, 10)
    .prefault(0)
    .describe(
      'Replicas that have to confirm a reservation before the write is sent on, and what `sallyport revoke` writes.',
    ),
  reserve_timeout: duration('10ms', '10s')
    .prefault('250ms')
    .describe('Longest wait for a reservation, replicas included; then 503.'),
  settle_timeout: duration('10ms', '60s')
    .prefault('1s')
    .describe(
      'Longest wait for a result to be kept before the caller is answered; then it is tried again. At most half of `shutdown.grace`.',
    ),
  start_without_revocations: flag()
    .prefault(false)
    .describe(
      'Set to true to serve protected routes while what `sallyport revoke` wrote was never read since the start: a caller that is revoked there is ' +
        'allowed until Redis is back. Otherwise they answer 503, and `/readyz` too.',
    ),
  kept_per_caller: size('64KiB', '1024GiB')
    .nullable()
    .prefault(null)
    .describe(
      'Memory that the kept results of one caller may take. Beyond it its writes run and are kept without their responses; beyond twice of it new ones ' +
        'are refused with 429. null: a quarter of the server’s `maxmemory`; no limit where it has none.',
    ),
  durability: word('verified', 'unverified', 'none')
    .prefault('verified')
    .describe(
      '`verified`: settings that can forget are refused. `unverified`: those that Redis does not tell are taken to be fit. `none`: any are.',
    ),
});

const storeSchema = map({
  redis: redisSchema
    .nullable()
    .prefault(null)
    .describe(
      'Redis 6.2 or newer, or Valkey: shared by all proxies in front of a service. It ' +
        'needs `maxmemory-policy noeviction`, and `appendonly yes` or a replica; see [storage.md](storage.md#what-the-server-has-to-be).',
    ),
  memory: map({})
    .nullable()
    .prefault(null)
    .describe('Instead of `redis`: this process alone, forgotten at its end. For development.'),
});

type StoreFile = z.output<typeof storeSchema>;
type RedisFile = z.output<typeof redisSchema>;

export const store = section({
  schema: storeSchema
    .nullable()
    .prefault(null)
    .describe('Where reservations are kept. Required where a route reserves. Read once, at start.'),
  check: checkStore,
  compile: (file, { absolute }): { readonly store: StoreSettings | null } => ({ store: compileStore(file, absolute) }),
  // Compared for a restart where it is Redis before and after.
  keys: {
    '': { restart: true, of: ({ store }) => store?.kind ?? null, widens: (from) => from === 'redis' },
    memory: saidByAnother,
    'redis.url': {
      restart: true,
      of: ofRedis(({ topology, tls }) =>
        topology.kind === 'single' ? JSON.stringify([topology, tls !== null]) : null,
      ),
      shown: ofRedis(({ topology }) =>
        topology.kind === 'single' ? `${placeText(topology)}/${topology.database}` : null,
      ),
      // What another server was told is unknown there: keys, tokens that were used, revocations.
      widens: always,
    },
    'redis.sentinel': {
      restart: true,
      of: ofRedis(({ topology }) => (topology.kind === 'sentinel' ? JSON.stringify(topology) : null)),
      shown: ofRedis(({ topology }) =>
        topology.kind === 'sentinel' ? [`name=${topology.name}`, ...topology.nodes.map(placeText)] : null,
      ),
      widens: (from, to) => !haveCommon(from, to, isGroup) || !haveCommon(from, to, isServer),
      whole: true,
    },
    'redis.cluster': {
      restart: true,
      of: ofRedis(({ topology }) => (topology.kind === 'cluster' ? JSON.stringify(topology) : null)),
      shown: ofRedis(({ topology }) => (topology.kind === 'cluster' ? topology.nodes.map(placeText) : null)),
      widens: (from, to) => !haveCommon(from, to, isServer),
      whole: true,
    },
    'redis.username': { restart: true, of: ofRedis(({ username }) => username) },
    'redis.password_file': { restart: true, of: ofRedis(({ passwordFile }) => passwordFile) },
    'redis.tls': {
      restart: true,
      // By a URL, TLS is asked for there; the key says whom to trust.
      of: ofRedis(({ topology, tls }) =>
        tls === null || (topology.kind === 'single' && (tls.caFile ?? tls.serverName) === null)
          ? null
          : JSON.stringify(tls),
      ),
      shown: ofRedis(({ tls }) =>
        tls === null
          ? null
          : [
              'on',
              ...(tls.caFile === null ? [] : [`ca_file=${tls.caFile}`]),
              ...(tls.serverName === null ? [] : [`server_name=${tls.serverName}`]),
            ],
      ),
      widens: (from, to) =>
        whenRemoved(from, to) || whenAdded(entriesOf(from, isServerName), entriesOf(to, isServerName)),
      whole: true,
    },
    'redis.prefix': { restart: true, of: ofRedis(({ prefix }) => prefix), widens: always },
    'redis.replicas': {
      restart: true,
      of: ofRedis(({ replicas }) => replicas),
      widens: whenLess,
    },
    'redis.reserve_timeout': { restart: true, of: ofRedis(({ reserveTimeoutMs }) => reserveTimeoutMs) },
    'redis.settle_timeout': { restart: true, of: ofRedis(({ settleTimeoutMs }) => settleTimeoutMs) },
    'redis.start_without_revocations': {
      restart: true,
      of: ofRedis(({ startsWithoutRevocations }) => startsWithoutRevocations),
      widens: whenOn,
    },
    'redis.kept_per_caller': {
      restart: true,
      of: ofRedis(({ keptPerCaller }) => keptPerCaller),
      widens: whenLimitRises,
    },
    'redis.durability': {
      restart: true,
      of: ofRedis(({ durability }) => durability),
      widens: towards('verified', 'unverified', 'none'),
    },
  },
});

/** Returns what reads a setting of Redis; it says nothing of another store. */
function ofRedis<Value>(
  read: (settings: RedisStoreSettings) => Value,
): (config: { readonly store: StoreSettings | null }) => Value | undefined {
  return ({ store }) => (store?.kind === 'redis' ? read(store) : undefined);
}

function placeText({ host, port }: RedisPlace): string {
  return `${host}:${port}`;
}

/** Entries of what is shown of a way to Redis that say what this one says, such as `name=`. */
function entriesOf(shown: unknown, isOne: (entry: string) => boolean): readonly string[] {
  return listOf(shown).map(String).filter(isOne);
}

const isGroup = (entry: string): boolean => entry.startsWith('name=');
const isServer = (entry: string): boolean => !isGroup(entry);
/** The name that a certificate has to bear in the place of the host's: another one lets others vouch. */
const isServerName = (entry: string): boolean => entry.startsWith('server_name=');

/** Whether two ways to Redis have one such entry in common: servers beside it come and go. */
function haveCommon(from: unknown, to: unknown, isOne: (entry: string) => boolean): boolean {
  const after = entriesOf(to, isOne);
  return entriesOf(from, isOne).some((entry) => after.includes(entry));
}

/** What is said of a store that nobody else sees. */
export const memoryWarning =
  'reservations are kept by this process alone and forgotten at its end: a write may then run twice';

/** Checks what the settings of the store say together. */
function checkStore({ store, shutdown }: ParsedConfig, report: Report): void {
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
      'reservations and kept responses cross the network in plaintext: Redis is on another host, without TLS',
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

/** Where reservations are kept; `null` where nothing says so. */
function compileStore(file: StoreFile | null, absolute: AbsolutePath): StoreSettings | null {
  if (file === null) return null;
  return file.redis === null ? { kind: 'memory' } : compileRedis(file.redis, absolute);
}

function compileRedis(file: RedisFile, absolute: AbsolutePath): RedisStoreSettings {
  const tls = file.tls ?? (usesTls(file) ? { ca_file: null, server_name: null } : null);
  return {
    kind: 'redis',
    topology: topologyOf(file),
    username: file.username,
    passwordFile: absolute(file.password_file),
    tls: tls === null ? null : { caFile: absolute(tls.ca_file), serverName: tls.server_name },
    prefix: file.prefix,
    replicas: file.replicas,
    reserveTimeoutMs: file.reserve_timeout,
    settleTimeoutMs: file.settle_timeout,
    startsWithoutRevocations: file.start_without_revocations,
    keptPerCaller: file.kept_per_caller,
    durability: file.durability,
  };
}

/** Whether what is sent to Redis is encrypted. */
function usesTls({ url, tls }: Pick<RedisFile, 'url' | 'tls'>): boolean {
  return url === null ? tls !== null : readRedisUrl(url)?.tls === true;
}

/** How Redis is found. The rules see to it that the file says one way. */
function topologyOf({ url, sentinel, cluster }: RedisFile): RedisTopology {
  if (sentinel !== null) return { kind: 'sentinel', name: sentinel.name, nodes: placesOf(sentinel.nodes) };
  if (cluster !== null) return { kind: 'cluster', nodes: placesOf(cluster.nodes) };
  const { host, port, database } = readRedisUrl(url ?? '') ?? { host: '', port: 0, database: 0 };
  return { kind: 'single', host, port, database };
}

function placesOf(nodes: readonly string[]): readonly RedisPlace[] {
  return nodes.flatMap((node) => readNodeAddress(node) ?? []);
}

/** One server, by URL. */
interface RedisServerPlace extends RedisPlace {
  readonly tls: boolean;
  readonly database: number;
}

const standardPort = 6_379;

/** `redis://HOST:PORT/DATABASE`, or `rediss://` for TLS. */
function redisUrl(): z.ZodType<string, string> {
  const allowed = 'redis://HOST:PORT or rediss://HOST:PORT, with /N for another database than 0';
  return z
    .string(allowed)
    .superRefine((value, context) => {
      if (value.includes('@')) {
        // A config is shown, compared and copied; a password in it is everybody's.
        const message = `${allowed}; the user in username, the password in a file that password_file names`;
        context.addIssue({
          code: 'custom',
          message,
          params: { fault: 'has a user or a password in it, where it would be read with the config' },
        });
      } else if (readRedisUrl(value) === null) {
        context.addIssue({ code: 'custom', message: allowed });
      }
    })
    .meta({ allowed });
}

/** `HOST:PORT`; an IPv6 address in brackets. */
function nodeAddress(): z.ZodType<string, string> {
  const allowed = 'HOST:PORT, such as redis-0:6379 or [::1]:6379';
  return z
    .string(allowed)
    .refine((value) => readNodeAddress(value) !== null, allowed)
    .meta({ allowed });
}

/** Reads a URL of one server; `null` where it is none. */
function readRedisUrl(text: string): RedisServerPlace | null {
  const [, scheme, authority = '', database = '0'] =
    /^(redis|rediss):\/\/([^/?#@\\\s]+)(?:\/(0|[1-9][0-9]{0,4})?)?$/.exec(text) ?? [];
  if (scheme === undefined || readUrl(text) === null) return null;
  const place = readNodeAddress(/:[0-9]+$/.test(authority) ? authority : `${authority}:${standardPort}`);
  return place === null ? null : { ...place, tls: scheme === 'rediss', database: Number(database) };
}

/** Reads a host with its port; `null` where it is none. */
function readNodeAddress(text: string): RedisPlace | null {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+)):([1-9][0-9]{0,4})$/.exec(text) ?? [];
  const port = Number(digits);
  const name = bracketed ?? plain;
  if (name === undefined || port > 65_535) return null;
  const isSound = bracketed === undefined ? host().safeParse(name).success : isIP(name) === 6;
  return isSound ? { host: name, port } : null;
}
