/**
 * What docs/performance.md counts with: memory of a proxy that is full in one way after the other, and what a reserved
 * write takes of Redis.
 */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { acquire, freshScope, reserveOf } from '../adapters/store-commands.js';
import { openStore, redisSettings } from '../adapters/redis/redis-store.js';
import { peakBytes, residentBytes } from '../support/linux.js';
import { connectRaw, requestBytes } from '../support/raw-client.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';

const mib = 1024 ** 2;

/** The table of memory, and what a write takes of Redis, as docs/performance.md has them. */
export async function measureCapacity(t: Scope): Promise<string> {
  const rows = (await measureMemory(t)).map(([name, peak]) => `| ${name} | ${peak.toFixed(0)} MiB |`);
  const costs = [];
  for (const atOnce of [1, 50]) {
    const { cpuUs, scripts, bytes } = await measureRedis(t, 20_000, atOnce);
    costs.push(
      `Redis, ${String(atOnce)} at once: ${cpuUs.toFixed(0)} µs of CPU, ${scripts.toFixed(2)} scripts, ${bytes.toFixed(0)} bytes for a write`,
    );
  }
  return ['| proxy | most memory |', '| --- | ---: |', ...rows, '', ...costs].join('\n');
}

/** Memory that the process has now, and the most it ever had, MiB. */
function memoryOf(proxy: ProxyProcess): { readonly now: number; readonly peak: number } {
  const { pid } = proxy.process;
  return { now: residentBytes(pid) / 1024 ** 2, peak: peakBytes(pid) / 1024 ** 2 };
}

interface Load {
  readonly name: string;
  readonly count: number;
  readonly method: string;
  readonly bodyBytes: number;
  /** Body of the answer, held back by a caller that does not read. */
  readonly answerBytes: number;
}

const loads: readonly Load[] = [
  { name: 'at rest', count: 0, method: 'GET', bodyBytes: 0, answerBytes: 0 },
  { name: '512 reads in flight', count: 512, method: 'GET', bodyBytes: 0, answerBytes: 0 },
  {
    name: '512 reads in flight, answers of 1 MiB that nobody takes',
    count: 512,
    method: 'GET',
    bodyBytes: 0,
    answerBytes: mib,
  },
  { name: '240 reserved writes of 1 MiB', count: 240, method: 'POST', bodyBytes: mib, answerBytes: 0 },
  {
    name: '240 reserved writes of 1 MiB, answers of 256 KiB',
    count: 240,
    method: 'POST',
    bodyBytes: mib,
    answerBytes: mib / 4,
  },
];

/** What the rows of memory are called. */
export const loadNames: readonly string[] = loads.map(({ name }) => name);

/** Rows of name and memory, MiB. Each load meets a proxy of its own. */
export async function measureMemory(t: Scope): Promise<readonly (readonly [string, number])[]> {
  const rows: (readonly [string, number])[] = [];
  for (const load of loads) rows.push([load.name, await peakUnder(t, load)]);
  return rows;
}

async function peakUnder(t: Scope, { count, method, bodyBytes, answerBytes }: Load): Promise<number> {
  const callers = ['a', 'b', 'c', 'd'];
  const route = { methods: [method], path: '/orders', subjects: callers, permissions: [], max_body: '2MiB' };
  const proxy = await startProxyProcess(t, {
    config: {
      store: { memory: {} },
      listen: { max_in_flight: 512 },
      upstream: { max_connections: 512, response_timeout: '5m' },
      routes: [
        {
          name: 'orders',
          ...route,
          ...(method === 'POST' ? { idempotency: { mode: 'required', max_body: '2MiB' } } : {}),
        },
      ],
    },
  });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => {
      held.push(res);
      if (answerBytes > 0) res.writeHead(200, { 'content-length': answerBytes }).write(Buffer.alloc(answerBytes - 1));
    });
  });
  const body = randomBytes(bodyBytes).toString('latin1');
  for (let i = 0; i < count; i += 1) {
    const token = mintToken({ key: proxy.key, claims: { sub: callers[i % callers.length], permissions: [] } });
    const key = method === 'POST' ? { 'Idempotency-Key': `key-${String(i)}` } : {};
    const headers = { Authorization: `Bearer ${token}`, 'Content-Length': String(bodyBytes), ...key };
    const connection = await connectRaw(proxy.port);
    t.teardown(connection.end);
    connection.write(
      Buffer.concat([requestBytes(proxy.port, { method, path: '/orders', headers }), Buffer.from(body, 'latin1')]),
    );
    if (answerBytes > 0) connection.socket.pause();
  }
  await until('all are in flight', () => held.length >= count, 60_000);
  if (answerBytes > 0) await until('the proxy holds what it holds', settled(proxy), 60_000);
  return memoryOf(proxy).peak;
}

/** Whether memory did not grow between two looks. */
function settled(proxy: ProxyProcess): () => boolean {
  let [before, looks] = [0, 0];
  return () => {
    const { now } = memoryOf(proxy);
    looks = now - before < 0.5 ? looks + 1 : 0;
    before = now;
    return looks > 20;
  };
}

export interface RedisCost {
  /** Microseconds of Redis' CPU for a write: its reservation and its completion. */
  readonly cpuUs: number;
  readonly scripts: number;
  /** Of memory, for a record with an answer of 1 KiB. */
  readonly bytes: number;
}

/** What reserved writes take of Redis, `atOnce` at a time. */
export async function measureRedis(t: Scope, writes: number, atOnce: number): Promise<RedisCost> {
  const server = await startRedis(t, ['--appendfsync', 'everysec']);
  const { store, up } = openStore(t, redisSettings(server.port));
  await up();
  const body = randomBytes(1024);
  const number = async (section: string, name: string): Promise<number> =>
    Number(new RegExp(`${name}([\\d.]+)`).exec(await server.client.info(section))?.[1] ?? 0);
  const cpu = async (): Promise<number> =>
    (await number('cpu', 'used_cpu_sys:')) + (await number('cpu', 'used_cpu_user:'));
  const scripts = async (): Promise<number> => number('commandstats', 'cmdstat_evalsha:calls=');
  const one = async (): Promise<void> => {
    const scope = freshScope();
    const fence = await acquire(
      store,
      scope,
      reserveOf('attempt-of-22-letters-', { leaseMs: 60_000, retentionMs: 86_400_000 }),
    );
    await store.complete(scope, {
      attempt: 'attempt-of-22-letters-',
      fence,
      fingerprint: 'f',
      state: 'completed',
      retentionMs: 86_400_000,
      response: { status: 200, headers: ['Content-Type', 'application/json'], body },
    });
  };
  await one();
  const before = { cpu: await cpu(), scripts: await scripts(), bytes: await number('memory', 'used_memory:') };
  for (let done = 0; done < writes; done += atOnce) await Promise.all(Array.from({ length: atOnce }, one));
  return {
    cpuUs: (((await cpu()) - before.cpu) * 1e6) / writes,
    scripts: ((await scripts()) - before.scripts) / writes,
    bytes: ((await number('memory', 'used_memory:')) - before.bytes) / writes,
  };
}
