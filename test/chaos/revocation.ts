/** Proxies as processes of their own on one Redis server, and `sallyport revoke` as another. */
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Test } from 'tap';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import { mintToken, type Claims } from '../support/tokens.js';
import { until } from '../support/until.js';
import type { ProxyProcess } from '../support/proxy-process.js';
import { shareRedis, type SharedRedis } from './shared-redis.js';

export interface Commanded {
  readonly code: number;
  readonly out: Readonly<Record<string, unknown>>;
  readonly err: string;
}

/**
 * Milliseconds until the last proxy answered otherwise: from the start of the command, and from the moment that Redis
 * wrote it down.
 */
export interface Spread {
  readonly fromCommandMs: number;
  readonly fromWriteMs: number;
  readonly id: string;
}

export interface Fleet {
  readonly shared: SharedRedis;
  readonly proxies: readonly ProxyProcess[];
  readonly revoke: (...args: readonly string[]) => Promise<Commanded>;
  /** Revokes while every proxy is asked with such a token, over and over, until all refuse it. */
  readonly spread: (claims: Claims, args: readonly string[], stdin?: string) => Promise<Spread>;
  /** What each proxy answers to such a token. */
  readonly answers: (claims: Claims) => Promise<readonly number[]>;
  /** Until each of them answers so. */
  readonly all: (status: number, claims: Claims) => Promise<void>;
  /** Until the sum over all proxies is this. */
  readonly total: (series: string, expected: number) => Promise<void>;
  /** Starts Redis again, with what it kept or with nothing. */
  readonly restartRedis: (kept: boolean) => Promise<void>;
}

const pauseMs = 20;

export async function startFleet(t: Test, count: number): Promise<Fleet> {
  const subjects = ['checkout', 'reporting', 'migration', 'support'];
  const routes = [{ name: 'list', methods: ['GET'], path: '/orders', subjects, permissions: [] }];
  const shared = await shareRedis(t, { config: { routes, token_cache: '1MiB' } });
  const proxies: ProxyProcess[] = [];
  while (proxies.length < count) proxies.push(await shared.startProxy());
  const [first] = proxies;
  if (first === undefined) throw new Error('no proxies');
  const { configFile, key } = first;

  const revoke = async (args: readonly string[], stdin = ''): Promise<Commanded> =>
    new Promise((resolve) => {
      const words = [join(projectDir, 'dist/main.js'), 'revoke', '--config', configFile, '--json', ...args];
      const child = execFile(process.execPath, words, { timeout: 60_000 }, (error, stdout, stderr) => {
        const out = stdout === '' ? {} : (JSON.parse(stdout) as Commanded['out']);
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err: stderr });
      });
      child.stdin?.end(stdin);
    });
  const ask = async (proxy: ProxyProcess, token: string): Promise<number> =>
    (await request(proxy.port, { path: '/orders', headers: { Authorization: `Bearer ${token}` } })).status;
  const answers = async (claims: Claims): Promise<readonly number[]> => {
    const token = mintToken({ key, claims });
    return Promise.all(proxies.map(async (proxy) => ask(proxy, token)));
  };

  return {
    shared,
    proxies,
    revoke: async (...args) => revoke(args),
    answers,
    spread: async (claims, args, stdin) => {
      const token = stdin ?? mintToken({ key, claims });
      let isOver = false;
      const refusedAtMs = proxies.map(async (proxy) => {
        while (!isOver) {
          if ((await ask(proxy, token)) === 401) return Date.now();
          await delay(pauseMs);
        }
        return Infinity;
      });
      const startedMs = Date.now();
      const { code, out, err } = await revoke(args, stdin);
      if (code !== 0) throw new Error(err);
      const patience = setTimeout(() => (isOver = true), 30_000);
      const lastMs = Math.max(...(await Promise.all(refusedAtMs)));
      clearTimeout(patience);
      return {
        fromCommandMs: lastMs - startedMs,
        fromWriteMs: lastMs - Date.parse(String(out['created_at'])),
        id: String(out['id']),
      };
    },
    all: async (status, claims) => {
      await until(
        `every proxy answers ${String(status)}`,
        async () => (await answers(claims)).every((answer) => answer === status),
        60_000,
      );
    },
    total: async (series, expected) => {
      const sum = async (): Promise<number> =>
        (await Promise.all(proxies.map(async (proxy) => proxy.metric(series)))).reduce((all, one) => all + one, 0);
      await until(`${series} is ${String(expected)} in all`, async () => (await sum()) === expected, 60_000);
    },
    restartRedis: async (kept) => {
      if (!kept) {
        for (const name of ['appendonlydir', 'dump.rdb']) {
          rmSync(join(shared.redis.dir, name), { recursive: true, force: true });
        }
      }
      await shared.redis.restart();
    },
  };
}

/**
 * The same for few proxies and for many.
 *
 * @param shortS seconds that a short revocation holds: long enough for all of them to be asked meanwhile.
 */
export function revocationSuite(t: Test, fleet: Fleet, shortS: number): void {
  const {
    proxies: { length: count },
    shared: { redis },
  } = fleet;
  const why = ['--reason', 'a test', '--for', '1h'];
  const tell = (what: string, { fromCommandMs, fromWriteMs }: Spread): void => {
    const after = `${String(fromCommandMs)} ms after the command began, ${String(fromWriteMs)} ms after Redis had it`;
    t.comment(`${what}, ${String(count)} proxies: all refuse ${after}`);
  };

  t.test('every proxy refuses what the command revokes', async (t) => {
    await fleet.all(200, { sub: 'checkout' });
    const spread = await fleet.spread({ sub: 'checkout' }, ['--subject', 'checkout', ...why]);
    tell('revoked', spread);
    t.ok(spread.fromWriteMs < 10_000, JSON.stringify(spread));
    t.same([...new Set(await fleet.answers({ sub: 'checkout' }))], [401]);
    t.same([...new Set(await fleet.answers({ sub: 'reporting' }))], [200]);
    t.equal((await fleet.revoke('--undo', spread.id)).code, 0);
    await fleet.all(200, { sub: 'checkout' });
  });

  t.test('a token without a jti, from standard input; the verified-token cache does not keep it alive', async (t) => {
    const [first] = fleet.proxies;
    const token = first?.token({ sub: 'reporting' }) ?? '';
    const other = first?.token({ sub: 'reporting', jti: 'other' }) ?? '';
    const spread = await fleet.spread({}, ['--token-stdin', ...why], token);
    tell('revoked by digest', spread);
    for (const [presented, status] of [
      [token, 401],
      [other, 200],
    ] as const) {
      const answers = await Promise.all(
        fleet.proxies.map(
          async ({ port }) =>
            (await request(port, { path: '/orders', headers: { Authorization: `Bearer ${presented}` } })).status,
        ),
      );
      t.same([...new Set(answers)], [status]);
    }
    t.notOk(JSON.stringify(await redis.client.hgetall('sallyport:{revoked}:list')).includes(token.split('.')[1] ?? ''));
    t.equal((await fleet.revoke('--undo', spread.id)).code, 0);
  });

  t.test(
    'Redis killed: what was revoked holds, also while it is away and when it is back with what it kept',
    async (t) => {
      const { id } = await fleet.spread({ sub: 'checkout' }, ['--subject', 'checkout', ...why]);
      await redis.kill();
      await until(
        'it is said',
        async () =>
          (await Promise.all(fleet.proxies.map(async (proxy) => proxy.admin('/readyz')))).every(
            ({ status, text }) => status === 200 && text.includes('{"name":"revocations","status":"stale"}'),
          ),
        60_000,
      );
      t.same([...new Set(await fleet.answers({ sub: 'checkout' }))], [401]);
      t.equal((await fleet.revoke('--subject', 'reporting', ...why)).code, 3);
      await fleet.restartRedis(true);
      const spread = await fleet.spread({ sub: 'reporting' }, ['--subject', 'reporting', ...why]);
      tell('revoked as soon as Redis is back', spread);
      t.ok(spread.fromWriteMs < 10_000, JSON.stringify(spread));
      t.same([...new Set(await fleet.answers({ sub: 'checkout' }))], [401]);
      await fleet.total('sallyport_revocations_lost', 0);
      for (const undone of [id, spread.id]) t.equal((await fleet.revoke('--undo', undone)).code, 0);
      for (const sub of ['checkout', 'reporting']) await fleet.all(200, { sub });
    },
  );

  t.test(
    'Redis killed and back with nothing: every entry holds to its own end, and an undo by its id counts',
    async (t) => {
      const { id } = await fleet.spread({ sub: 'checkout' }, ['--subject', 'checkout', ...why]);
      await fleet.spread({ sub: 'support' }, [
        '--subject',
        'support',
        '--reason',
        'a test',
        '--for',
        `${String(shortS)}s`,
      ]);
      await redis.kill();
      await fleet.restartRedis(false);
      const spread = await fleet.spread({ sub: 'reporting' }, ['--subject', 'reporting', ...why]);
      tell('revoked as soon as an empty Redis is back', spread);
      t.same([...new Set(await fleet.answers({ sub: 'checkout' }))], [401]);
      await fleet.all(200, { sub: 'support' });
      t.pass('what was to hold for a short time ended, though the store was empty');
      await fleet.total('sallyport_revocations_lost', count);
      t.match((await fleet.proxies[0]?.admin('/status'))?.text, new RegExp(`"id": "${id}"[^}]*"lost": true`));
      await redis.client.flushall();
      await fleet.total('sallyport_revocations_lost', 2 * count);
      for (const sub of ['checkout', 'reporting']) t.same([...new Set(await fleet.answers({ sub }))], [401], sub);
      for (const lost of [id, spread.id]) {
        t.match(await fleet.revoke('--undo', lost), { code: 1, out: { result: 'unknown' } });
      }
      for (const sub of ['checkout', 'reporting']) await fleet.all(200, { sub });
      await fleet.total('sallyport_revocations_lost', 0);
    },
  );
}
