/** Two proxies, Redis with a replica and a Sentinel, a key server and a receiver, and what goes wrong with them. */
import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { startJwksServer, type JwksServer } from '../support/jwks-server.js';
import { rsaKey, withKeyId, type RsaKey } from '../support/keys.js';
import { openDescriptors, residentBytes } from '../support/linux.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.js';
import { startSentinels } from '../support/redis-sentinel.js';
import { startRedis, startReplica, type RedisServer } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { mintToken, type Claims } from '../support/tokens.js';
import { until } from '../support/until.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import type { SoakModel } from './soak-model.js';

const approved = { subjects: ['checkout', 'mole'], permissions: ['orders:write'] };

/** What a reload changes: who is revoked, and whether a route asks for a permission that nobody has. */
export interface SoakPolicy {
  readonly revoked: boolean;
  readonly closed: boolean;
}

/** How a process stands, in bytes and numbers. */
export interface Footprint {
  readonly rss: number;
  readonly heap: number;
  readonly descriptors: number;
}

export interface SoakDeployment {
  readonly proxies: readonly [ProxyProcess, ProxyProcess];
  /** What the policy is; `null` while it changes. */
  readonly policy: () => SoakPolicy | null;
  /** How often the policy changed. */
  readonly policies: () => number;
  readonly token: (claims?: Claims) => string;
  /** A key that signed once and was withdrawn; `null` before the first. */
  readonly withdrawnKey: () => RsaKey | null;
  /** How often the receiver ran the write with this key or token id. */
  readonly runs: (id: string) => number;
  /** Requests at the receiver that nobody was to see there. */
  readonly strays: () => readonly string[];
  /**
   * Seconds since the epoch: single-use tokens from before may be refused, for a fail-over may have lost their markers.
   */
  readonly floorS: () => number;
  readonly footprints: () => Promise<Footprint[]>;
  /** Asks Redis how it is: a Sentinel on a busy machine fails over unasked. */
  readonly lookAtRedis: () => Promise<void>;
  readonly reload: (policy: SoakPolicy) => Promise<void>;
  /** Writes a config that is none; the one in force has to stay. */
  readonly breakConfig: () => Promise<void>;
  readonly rotateKeys: () => Promise<void>;
  readonly loseKeys: () => Promise<void>;
  readonly crashReceiver: () => Promise<void>;
  readonly restartReplica: () => Promise<void>;
  /** Kills the primary; the Sentinel promotes the replica, and the old primary comes back as its replica. */
  readonly failOver: () => Promise<void>;
}

/** So far ahead may the clock of an issuer be. */
const skewS = 5;

/** So long may Redis take to say how it is. */
const lookMs = 400;

/** Whether there is a primary, and a replica that is connected to it. */
async function isPair({
  primary,
  replica,
}: {
  readonly primary: RedisServer;
  readonly replica: RedisServer;
}): Promise<boolean> {
  const [first, second] = await Promise.all([primary.client.role(), replica.client.role()]);
  return (
    first[0] === 'master' &&
    Array.isArray(first[2]) &&
    first[2].length === 1 &&
    second[0] === 'slave' &&
    second[3] === 'connected'
  );
}

/** Fields that name nobody: what a caller sends of them must not reach the receiver. */
const forged = 'admin';

export async function startSoakDeployment(t: Scope, model: SoakModel, pauseMs: number): Promise<SoakDeployment> {
  const first = await startRedis(t);
  const redis: { primary: RedisServer; replica: RedisServer } = {
    primary: first,
    replica: await startReplica(t, first.port),
  };
  const [sentinel] = await startSentinels(t, {
    name: 'orders',
    primaryPort: first.port,
    quorum: 1,
    replicas: 1,
    count: 1,
  });
  const ring = [rsaKey('d-0'), rsaKey('d-1'), rsaKey('d-2')];
  let turn = 0;
  let signing = ring[0] ?? rsaKey('d-0');
  let withdrawn: RsaKey | null = null;
  const jwks: JwksServer = await startJwksServer(t, { keys: [signing] });
  const runs = new Map<string, number>();
  const strays: string[] = [];
  let receiver: UpstreamServer = await startUpstreamServer(t);
  receiver.behave(serve);

  const configOf = ({ revoked, closed }: SoakPolicy): ConfigTree => ({
    issuers: {
      core: { max_lifetime: '10m', jwks: { min_age: '1s', max_age: '2s', cooldown: '500ms', timeout: '2s' } },
    },
    upstream: { connect_timeout: '1s', response_timeout: '10s' },
    token_cache: '1MiB',
    store: {
      redis: {
        sentinel: { name: 'orders', nodes: [`127.0.0.1:${sentinel?.port ?? 0}`] },
        replicas: 1,
        reserve_timeout: '2s',
        settle_timeout: '2s',
      },
    },
    revoked: { subjects: revoked ? ['mole'] : [] },
    routes: [
      {
        name: 'list-orders',
        methods: ['GET'],
        path: '/orders',
        subjects: ['checkout', 'mole'],
        permissions: ['orders:read'],
      },
      {
        name: 'read-order',
        methods: ['GET'],
        path: '/orders/{id}',
        subjects: ['checkout'],
        permissions: ['orders:read'],
      },
      {
        name: 'closable',
        methods: ['GET'],
        path: '/closable',
        subjects: ['checkout'],
        permissions: [closed ? 'orders:admin' : 'orders:read'],
      },
      { name: 'admin', methods: ['GET'], path: '/admin/**', subjects: ['admin'], permissions: ['orders:admin'] },
      { name: 'create-order', methods: ['POST'], path: '/orders', ...approved, idempotency: 'required' },
      { name: 'single', methods: ['POST'], path: '/single', ...approved, idempotency: 'none', single_use: true },
    ],
  });

  /** Notes what it runs, and says so. */
  function serve(req: IncomingMessage, res: ServerResponse): void {
    receiver.requests.length = 0;
    const {
      'x-auth-subject': subject,
      'x-auth-token-id': tokenId,
      'idempotency-key': key,
      'x-request-id': requestId,
    } = req.headers;
    const isStray = String(requestId).startsWith('attack-') || subject === forged || subject === undefined;
    if (isStray) strays.push(`${req.method ?? ''} ${req.url ?? ''} ${String(requestId)}`);
    req.resume().on('end', () => {
      const id = req.url === '/single' ? String(tokenId) : String(key);
      if (req.method === 'POST') runs.set(id, (runs.get(id) ?? 0) + 1);
      const body = JSON.stringify({ subject, id, run: runs.get(id) ?? 0, target: req.url });
      setTimeout(
        () => res.writeHead(req.method === 'POST' ? 201 : 200, { 'content-type': 'application/json' }).end(body),
        Math.random() * 20,
      );
    });
  }

  let policy: SoakPolicy | null = { revoked: false, closed: false };
  let activeConfig = policy;
  let policies = 0;
  const start = async (): Promise<ProxyProcess> =>
    startProxyProcess(t, { key: signing, jwks, receiver, config: configOf(activeConfig) });
  const proxies: readonly [ProxyProcess, ProxyProcess] = [await start(), await start()];
  let floorS = Math.ceil(Date.now() / 1000) + skewS;

  const everywhere = async (what: string, holds: (proxy: ProxyProcess) => Promise<boolean>): Promise<void> => {
    for (const proxy of proxies) await until(what, () => holds(proxy), 180_000);
  };
  const token = (claims: Claims = {}): string => mintToken({ key: signing, claims });
  const keyIds = async (proxy: ProxyProcess): Promise<string[]> => {
    const { issuers } = JSON.parse((await proxy.admin('/status')).text) as {
      issuers: { keys: { key_id: string }[] }[];
    };
    return issuers.flatMap(({ keys }) => keys.map(({ key_id: id }) => id));
  };
  /** Until both proxies take writes again: each needs a primary, a replica that confirms, and a look at both. */
  const storeWell = async (): Promise<void> =>
    everywhere('writes are taken', async ({ port, metric }) => {
      if ((await metric('sallyport_store_up')) !== 1) return false;
      const headers = { Authorization: `Bearer ${token()}`, 'Idempotency-Key': `probe-${String(Math.random())}` };
      const { status } = await request(port, { method: 'POST', path: '/orders', headers, body: 'probe' });
      return status === 201 || status === 502 || (status === 503 && model.troubledSince('receiver', performance.now()));
    });
  const pause = async (): Promise<void> => new Promise((resolve) => setTimeout(resolve, pauseMs));

  return {
    proxies,
    policy: () => policy,
    policies: () => policies,
    token,
    withdrawnKey: () => withdrawn,
    runs: (id) => runs.get(id) ?? 0,
    strays: () => strays,
    floorS: () => floorS,
    footprints: async () =>
      Promise.all(
        proxies.map(async ({ process: { pid }, metric }) => ({
          rss: residentBytes(pid),
          heap: await metric('nodejs_heap_size_used_bytes'),
          descriptors: openDescriptors(pid),
        })),
      ),
    lookAtRedis: async () => {
      const isWell = await Promise.race([
        isPair(redis),
        new Promise<boolean>((resolve) => setTimeout(resolve, lookMs, false)),
      ]);
      if (!isWell) floorS = Math.ceil(Date.now() / 1000) + skewS;
      model.notice('redis', !isWell);
    },
    reload: async (next) => {
      policy = null;
      policies += 1;
      const before = await Promise.all(
        proxies.map(({ metric }) => metric('sallyport_config_reloads_total{result="ok"}')),
      );
      for (const proxy of proxies) proxy.rewrite(configOf(next));
      for (const [index, { metric }] of proxies.entries()) {
        await until(
          'the reload',
          async () => (await metric('sallyport_config_reloads_total{result="ok"}')) > (before[index] ?? 0),
          60_000,
        );
      }
      activeConfig = next;
      policy = next;
      model.count('reload');
    },
    breakConfig: async () => {
      const failures = await Promise.all(
        proxies.map(({ metric }) => metric('sallyport_config_reloads_total{result="failed"}')),
      );
      for (const { configFile } of proxies) {
        writeFileSync(configFile, 'routes: [{ name: x, methods: [GET], path: /admin/**, access: public }]\n');
      }
      for (const [index, { metric }] of proxies.entries()) {
        await until(
          'the refusal of the config',
          async () => (await metric('sallyport_config_reloads_total{result="failed"}')) > (failures[index] ?? 0),
          60_000,
        );
      }
      await pause();
      for (const proxy of proxies) proxy.rewrite(configOf(activeConfig));
      model.count('broken config');
      await pause();
    },
    rotateKeys: async () => {
      turn += 1;
      const old = signing;
      const next = withKeyId(ring[turn % ring.length] ?? old, `d-${turn}`);
      jwks.setKeys([old, next]);
      await everywhere('the new key', async (proxy) => (await keyIds(proxy)).includes(next.keyId));
      signing = next;
      await pause();
      jwks.setKeys([next]);
      await everywhere('the old key to be forgotten', async (proxy) => !(await keyIds(proxy)).includes(old.keyId));
      withdrawn = old;
      model.count('key rotation');
    },
    loseKeys: async () =>
      model.during('keys', async () => {
        jwks.behave((_req, res) => {
          if (Math.random() < 0.5) res.destroy();
          else res.writeHead(500).end('{"keys":[]}');
        });
        await pause();
        jwks.behave(null);
        await everywhere('keys that are fresh', async (proxy) =>
          (await proxy.admin('/readyz')).text.includes('{"name":"keys:core","status":"ok"}'),
        );
      }),
    crashReceiver: async () =>
      model.during('receiver', async () => {
        const { port } = receiver;
        await receiver.close();
        await pause();
        receiver = await startUpstreamServer(t, { port });
        receiver.behave(serve);
        await everywhere(
          'the receiver',
          async ({ port: proxy }) =>
            (await request(proxy, { path: '/orders', headers: { Authorization: `Bearer ${token()}` } })).status === 200,
        );
      }),
    restartReplica: async () =>
      model.during('redis', async () => {
        await redis.replica.kill();
        await pause();
        await redis.replica.restart();
        await storeWell();
      }),
    failOver: async () =>
      model.during('redis', async () => {
        const { primary, replica } = redis;
        await primary.kill();
        await until('the replica is promoted', async () => (await replica.client.role())[0] === 'master', 180_000);
        await primary.restart();
        // A Sentinel does so too, and may take minutes over it where one fail-over follows another.
        await primary.client.replicaof('127.0.0.1', String(replica.port));
        redis.primary = replica;
        redis.replica = primary;
        const wanted = `status=ok,address=127.0.0.1:${replica.port},slaves=1,`;
        await until(
          'the Sentinel knows both',
          async () => (await sentinel?.client.info('sentinel'))?.includes(wanted),
          180_000,
        );
        await storeWell();
        floorS = Math.ceil(Date.now() / 1000) + skewS;
        model.count('fail-over');
      }),
  };
}
