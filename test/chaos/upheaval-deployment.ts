/**
 * Two proxies, three servers of Redis under a Sentinel, and a receiver, each behind a relay that may cut; and what goes
 * wrong with them.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSteppedClock, type SteppedClock } from '../support/stepped-clock.js';
import { startCuttingRelay, type CuttingRelay } from '../support/cutting-relay.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { startSentinels } from '../support/redis-sentinel.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { mintToken, type Claims } from '../support/tokens.js';
import { until } from '../support/until.js';
import { seriesValue, startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import type { ProxyLife, UpheavalLedger } from './upheaval-ledger.js';

/** One of the servers of Redis. */
interface Member {
  readonly server: RedisServer;
  readonly clock: SteppedClock;
  readonly relay: CuttingRelay;
  /** Ends it as a crash does, and starts it again after a while: one such thing after the other. */
  readonly crash: (forMs: number) => Promise<void>;
}

/** A place of a proxy: processes come and go, the address stays. */
interface Seat {
  proxy: ProxyProcess;
  readonly relay: CuttingRelay;
}

export interface UpheavalDeployment {
  /** Addresses of the two proxies, which may cut. */
  readonly ports: readonly number[];
  readonly token: (claims?: Claims) => string;
  /** Each does one thing, and ends when that is over. */
  readonly disturbances: Readonly<Record<string, () => Promise<void>>>;
  /** Waits until a write is taken, so that there is something to disturb; not for ever. */
  readonly settled: () => Promise<void>;
  /** Ends everything that is still on, and waits until both proxies take writes. */
  readonly heal: () => Promise<void>;
  /** Every process of a proxy that there was. */
  readonly lives: () => readonly ProxyLife[];
  /** Sums over all processes, as far as they could be asked before they ended. */
  readonly metric: (series: string) => Promise<number>;
  readonly cuts: () => number;
}

const approved = { methods: ['POST'], subjects: ['checkout'], permissions: ['orders:write'] };
const name = 'orders';
const replyMs = 2_000;

const counters = [
  'sallyport_duplicate_dispatches_total',
  'sallyport_lost_reservations_total',
  'sallyport_unknown_outcomes_total',
  'sallyport_store_failovers_total',
];

export async function startUpheavalDeployment(t: Scope, ledger: UpheavalLedger): Promise<UpheavalDeployment> {
  const first = await startMember(t, null);
  // One replica has to confirm, and there are two: a planned fail-over forgets what only the other one got.
  const members: readonly Member[] = [
    first,
    await startMember(t, first.relay.port),
    await startMember(t, first.relay.port),
  ];
  const [sentinel] = await startSentinels(t, { name, primaryPort: first.relay.port, quorum: 1, replicas: 2, count: 1 });
  if (sentinel === undefined) throw new Error('there is a Sentinel');
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const receiver = await startUpstreamServer(t);
  receiver.behave(serve);
  const upstream = await startCuttingRelay(t, () => receiver.port);
  const config: ConfigTree = {
    upstream: {
      url: `http://127.0.0.1:${String(upstream.port)}`,
      connect_timeout: '500ms',
      response_timeout: `${String(replyMs)}ms`,
    },
    shutdown: { delay: '0s', grace: '5s' },
    store: {
      redis: {
        sentinel: { name, nodes: [`127.0.0.1:${String(sentinel.port)}`] },
        replicas: 1,
        reserve_timeout: '1s',
        settle_timeout: '1s',
      },
    },
    routes: [
      { name: 'plain', path: '/plain', ...approved, idempotency: 'required' },
      { name: 'reports', path: '/reports', ...approved, idempotency: { mode: 'required', receiver: 'reports' } },
      {
        name: 'deduplicates',
        path: '/deduplicates',
        ...approved,
        idempotency: { mode: 'required', receiver: 'deduplicates' },
      },
      {
        name: 'single',
        path: '/single',
        ...approved,
        idempotency: { mode: 'none', because: 'a test' },
        single_use: true,
      },
    ],
  };
  const proxies: ProxyProcess[] = [];
  const ends = new Map<ProxyProcess, ProxyLife['end']>();
  const sums = new Map<string, number>();
  const start = async (): Promise<ProxyProcess> => {
    const proxy = await startProxyProcess(t, { key, jwks, receiver, config, ready: false });
    proxies.push(proxy);
    return proxy;
  };
  const startSeat = async (): Promise<Seat> => {
    const seat: Seat = { proxy: await start(), relay: await startCuttingRelay(t, () => seat.proxy.port) };
    return seat;
  };
  const seats: readonly [Seat, Seat] = [await startSeat(), await startSeat()];
  const token = (claims: Claims = {}): string => mintToken({ key, claims });

  const pick = <T>(from: readonly T[]): T => {
    const one = from[Math.floor(Math.random() * from.length)];
    if (one === undefined) throw new Error('there is one to pick');
    return one;
  };
  const between = (least: number, most: number): number => least + Math.random() * (most - least);
  const storm = async (relays: readonly CuttingRelay[], meanBytes: number, ms: number): Promise<void> => {
    for (const relay of relays) relay.storm(meanBytes);
    await sleep(ms);
    for (const relay of relays) relay.storm(null);
  };
  const primary = async (): Promise<Member> =>
    until(
      'a primary',
      async () => {
        for (const member of members) {
          const role = await Promise.race([member.server.client.role().catch(() => []), sleep(500, [])]);
          if (role[0] === 'master') return member;
        }
        return null;
      },
      120_000,
    );
  const replica = async (): Promise<Member> => {
    const found = await primary();
    return pick(members.filter((member) => member !== found));
  };
  const paired = async (): Promise<void> => {
    await until(
      'a primary and two replicas',
      async () => {
        const roles = await Promise.all(
          members.map(async ({ server }) => Promise.race([server.client.role().catch(() => []), sleep(500, [])])),
        );
        return roles.filter((role) => role[0] === 'slave' && role[3] === 'connected').length === 2;
      },
      180_000,
    );
  };
  const setAside = async ({ proxy }: Seat): Promise<void> => {
    const page = await Promise.race([
      proxy.admin('/metrics').then(
        ({ text }) => text,
        () => '',
      ),
      sleep(1_000, ''),
    ]);
    for (const series of counters) sums.set(series, (sums.get(series) ?? 0) + seriesValue(page, series));
  };
  /** One change of a proxy after the other, for both disturb at once. */
  let last = Promise.resolve();
  const inTurn = async (work: () => Promise<void>): Promise<void> => (last = last.then(work));
  const restart = async (seat: Seat, signal: NodeJS.Signals): Promise<void> => {
    await setAside(seat);
    const { process } = seat.proxy;
    process.signal(signal);
    ends.set(seat.proxy, { atMs: performance.now(), signal });
    const next = start();
    await process.exited;
    seat.proxy = await next;
  };

  return {
    ports: seats.map(({ relay }) => relay.port),
    token,
    disturbances: {
      'cuts between callers and proxies': async () =>
        storm(
          seats.map(({ relay }) => relay),
          400,
          between(500, 2_000),
        ),
      'cuts between proxies and receiver': async () => storm([upstream], 600, between(500, 2_000)),
      'cuts at Redis': async () =>
        storm(
          members.map(({ relay }) => relay),
          3_000,
          between(500, 2_500),
        ),
      'planned fail-over': async () => {
        await paired();
        await sentinel.client.call('sentinel', 'failover', name).catch(() => undefined);
        await sleep(between(2_000, 6_000));
      },
      'planned fail-over, paused first': async () => {
        await paired();
        const { server } = await primary();
        await server.client.call('client', 'pause', '6000', 'write').catch(() => undefined);
        await sentinel.client.call('sentinel', 'failover', name).catch(() => undefined);
        await sleep(between(2_000, 6_000));
      },
      'primary killed': async () => {
        await paired();
        await (await primary()).crash(between(100, 5_000));
      },
      'primary stopped': async () => {
        const { server } = await primary();
        server.freeze();
        await sleep(between(200, 900));
        server.thaw();
      },
      'replica restarted': async () => {
        await (await replica()).crash(between(100, 1_000));
      },
      'clock of a server stepped': async () => {
        pick(members).clock.setAheadMs(
          pick([-3_600_000, -600_000, -30_000, -2_000, 0, 0, 2_000, 30_000, 600_000, 3_600_000]),
        );
        await sleep(between(500, 3_000));
      },
      'proxy restarted': async () => inTurn(async () => restart(pick(seats), 'SIGTERM')),
      'proxy killed': async () => inTurn(async () => restart(pick(seats), 'SIGKILL')),
      'proxy stopped': async () =>
        inTurn(async () => {
          const { proxy } = pick(seats);
          proxy.process.signal('SIGSTOP');
          await sleep(between(500, 12_000));
          proxy.process.signal('SIGCONT');
        }),
      reload: async () => {
        for (const { proxy } of seats) proxy.process.signal('SIGHUP');
        await sleep(200);
      },
    },
    settled: async () => {
      const isTaken = async (): Promise<boolean> => (await ledger.probe(pick(seats).relay.port, token())) === 201;
      await until('a write is taken', isTaken, 20_000).catch(() => undefined);
    },
    heal: async () => {
      for (const relay of [upstream, ...members.map((member) => member.relay), ...seats.map((seat) => seat.relay)]) {
        relay.storm(null);
      }
      for (const { clock } of members) clock.setAheadMs(0);
      await paired();
      for (const { relay } of seats) {
        await until('writes are taken', async () => (await ledger.probe(relay.port, token())) === 201, 180_000);
      }
      for (const seat of seats) await setAside(seat);
    },
    lives: () => proxies.map((proxy) => ({ lines: proxy.logs(), end: ends.get(proxy) ?? null })),
    metric: async (series) => Promise.resolve(sums.get(series) ?? 0),
    cuts: () =>
      [upstream, ...members.map((member) => member.relay), ...seats.map((seat) => seat.relay)].reduce(
        (sum, relay) => sum + relay.cuts(),
        0,
      ),
  };

  /** Acts once the whole request is there, and answers in its own time. */
  function serve(req: IncomingMessage, res: ServerResponse): void {
    receiver.requests.length = 0;
    req.resume().on('end', () => {
      const answer = ledger.received({
        route: (req.url ?? '').slice(1),
        key: String(req.headers['idempotency-key'] ?? req.headers['x-auth-token-id']),
        requestId: String(req.headers['x-request-id']),
        record: String(req.headers['idempotency-record']),
        fence: Number(req.headers['idempotency-fence'] ?? 0),
      });
      const chance = Math.random();
      if (chance < 0.02) res.destroy();
      else {
        setTimeout(
          () => res.writeHead(answer.status, answer.fields).end(answer.body),
          chance < 0.04 ? replyMs * 2 : Math.random() * 30,
        );
      }
    });
  }
}

async function startMember(t: Scope, primaryPort: number | null): Promise<Member> {
  const clock = createSteppedClock(t);
  const place: { server: RedisServer | null } = { server: null };
  const relay = await startCuttingRelay(t, () => place.server?.port ?? 0);
  const follow = primaryPort === null ? [] : ['--replicaof', '127.0.0.1', String(primaryPort)];
  const announced = ['--replica-announce-ip', '127.0.0.1', '--replica-announce-port', String(relay.port)];
  const server = await startRedis(t, [...announced, ...follow, '--appendfsync', 'everysec'], {
    env: clock.env,
    keepsConfig: true,
  });
  place.server = server;
  if (primaryPort !== null) {
    await until('the replica has copied', async () =>
      (await server.client.info('replication')).includes('master_link_status:up'),
    );
  }
  let last = Promise.resolve();
  return {
    server,
    clock,
    relay,
    crash: async (forMs) =>
      (last = last.then(async () => {
        await server.kill();
        await sleep(forMs);
        await server.restart();
      })),
  };
}
