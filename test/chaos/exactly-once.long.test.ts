/**
 * docs/guarantees.md "Promises": the example receiver of level 2 on a real PostgreSQL behind two proxies and a Redis
 * server, while each of them is killed, stopped, cut off and emptied. `SALLYPORT_SEED` repeats a choice of faults,
 * `SALLYPORT_ORDERS` asks for more orders.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { createRandom } from '../proxy/exchange/chaos.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { startPostgres, type PostgresServer } from '../support/postgres-server.js';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import { freePort } from '../support/listening.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { startRelay } from '../support/tcp-relay.js';
import { until } from '../support/until.js';
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';
import { kill, problemOrStatus, writeTo } from './shared-redis.js';

const orders = Number(process.env['SALLYPORT_ORDERS'] ?? 1500);
const seed = Number(process.env['SALLYPORT_SEED'] ?? randomInt(2 ** 31));
const example = join(projectDir, 'docs/examples/exactly-once');
const responseTimeoutMs = 400;

t.setTimeout(900_000);

t.test('at level 2 each order is written once, whatever fails', async (t) => {
  t.comment(`seed ${seed}, ${orders} orders`);
  const database = await startPostgres(t);
  await database.pool.query(readFileSync(join(example, 'schema.sql'), 'utf8'));
  const receiver = await startUpstreamProcess(t, database);
  const relay = await startRelay(t, receiver.port);
  const redis = await startRedis(t);
  await redis.client.connect().catch(() => undefined);
  const shared = { key: rsaKey(), jwks: await startJwksServer(t, { keys: [rsaKey()] }) };
  const startProxy = async (): Promise<ProxyProcess> =>
    startProxyProcess(t, {
      ...shared,
      config: {
        upstream: {
          url: `http://127.0.0.1:${relay.port}`,
          connect_timeout: '100ms',
          response_timeout: `${responseTimeoutMs}ms`,
        },
        store: { redis: { url: `redis://127.0.0.1:${redis.port}`, reserve_timeout: '2s', settle_timeout: '300ms' } },
        routes: [
          {
            name: 'create-order',
            methods: ['POST'],
            path: '/orders',
            subjects: ['checkout'],
            permissions: ['orders:write'],
            idempotency: { mode: 'required', receiver: 'deduplicates' },
          },
        ],
      },
    });
  const proxies = [await startProxy(), await startProxy()];
  const random = createRandom(seed);
  const draw = (bound: number): number => Math.floor(random() * bound);
  let done = 0;
  let attempts = 0;
  const counts = new Map<string, number>();

  const faults: Readonly<Record<string, () => Promise<void> | void>> = {
    'receiver killed': async () => receiver.restart(),
    'receiver stopped past its time': async () => receiver.pause(responseTimeoutMs * 2),
    'proxy killed': async () => {
      const index = draw(2);
      const victim = proxies[index];
      if (victim !== undefined) await kill(victim);
      proxies[index] = await startProxy();
    },
    'redis emptied': async () => {
      await redis.client.flushall();
    },
    'redis killed': async () => {
      await redis.kill();
      await redis.restart();
    },
    'connections to the receiver cut': () => relay.cut(),
    'answers of the receiver lost': async () => {
      relay.holdAnswers();
      await pause(50);
      relay.cut();
      relay.resume();
    },
    'sessions of the database ended': async () => {
      const others = 'pid <> pg_backend_pid() and usename = current_user';
      await database.pool
        .query(`select pg_terminate_backend(pid) from pg_stat_activity where ${others}`)
        .catch(() => undefined);
    },
  };

  const outages = (async () => {
    const names = Object.keys(faults);
    while (done < orders) {
      await pause(50 + draw(250));
      const name = names[draw(names.length)] ?? '';
      counts.set(name, (counts.get(name) ?? 0) + 1);
      await faults[name]?.();
    }
  })();

  /** Asks with the same key until the order is there, as a caller that must not lose one does. */
  const answered = new Map<string, string>();
  const place = async (item: string): Promise<unknown> =>
    until(
      `an answer for ${item}`,
      async () => {
        const proxy = proxies[draw(2)];
        if (proxy === undefined) return null;
        attempts += 1;
        const body = JSON.stringify({ customer: 'c', item });
        const answer = await request(proxy.port, writeTo(proxy, { key: item, body }), { limitMs: 20_000 }).catch(
          () => null,
        );
        if (answer?.status === 201) return JSON.parse(answer.text) as unknown;
        if (answer !== null) answered.set(item, problemOrStatus(answer));
        await pause(draw(100));
        return null;
      },
      120_000,
    ).catch((error: unknown) => {
      throw new Error(`${item} was last answered ${answered.get(item) ?? 'nothing'}`, { cause: error });
    });

  const placed = new Map<string, unknown>();
  const caller = async (first: number): Promise<void> => {
    for (let next = first; next < orders; next += 8) {
      const item = `item-${next}`;
      // Two at once now and then, as impatient callers do.
      const answers = await Promise.all(draw(4) === 0 ? [place(item), place(item)] : [place(item)]);
      placed.set(item, answers[0]);
      for (const answer of answers) t.same(answer, answers[0], 'both get the same order');
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: 8 }, async (_, first) => caller(first)));
  await outages;

  const { rows } = await database.pool.query<{ item: string; id: string; customer: string }>(
    'select item, id, customer from orders order by id',
  );
  t.comment(
    `${attempts} attempts for ${orders} orders; ${[...counts].map(([name, count]) => `${name} ${count}`).join(', ')}`,
  );
  t.equal(rows.length, orders, 'no order twice, none lost');
  t.same(
    new Map(rows.map(({ item, id, customer }) => [item, { id, customer, item }])),
    placed,
    'and each caller was told of the one there is',
  );
  const {
    rows: [outbox],
  } = await database.pool.query<{ count: string }>('select count(*) from outbox');
  t.equal(Number(outbox?.count), orders, 'what is to be done elsewhere is there once, too');
  t.ok(attempts > orders, 'the outages were felt');
});

t.test(
  'an attempt that was overtaken changes nothing and says so; what is applied is answered whatever the fence',
  async (t) => {
    const database = await startPostgres(t);
    await database.pool.query(readFileSync(join(example, 'schema.sql'), 'utf8'));
    const receiver = await startUpstreamProcess(t, database);
    const send = async (
      fence: number,
      body: object,
    ): Promise<{ status: number; outcome: string | null; text: string }> => {
      const headers = {
        'Idempotency-Record': 'r',
        'Idempotency-Fence': String(fence),
        'Content-Type': 'application/json',
      };
      const answer = await request(receiver.port, {
        method: 'POST',
        path: '/orders',
        headers,
        body: JSON.stringify(body),
      });
      return { status: answer.status, outcome: answer.field('Idempotency-Outcome'), text: answer.text };
    };
    const order = { customer: 'c', item: 'i' };
    t.match(await send(7, {}), { status: 422, outcome: 'not-applied' });
    t.match(
      await send(6, order),
      { status: 409, outcome: 'not-applied' },
      'the docs: whatever the status, it is not kept as the result',
    );
    const done = await send(8, order);
    t.match(done, { status: 201, outcome: 'committed' });
    for (const fence of [5, 8, 9]) t.same(await send(fence, order), done);
    const {
      rows: [count],
    } = await database.pool.query<{ count: string }>('select count(*) from orders');
    t.equal(Number(count?.count), 1);
  },
);

t.test('the documentation shows the schema that is tried', (t) => {
  const page = readFileSync(join(projectDir, 'docs/idempotency.md'), 'utf8');
  for (const table of readFileSync(join(example, 'schema.sql'), 'utf8').split('\n\n')) {
    if (!table.startsWith('create table orders')) t.ok(page.includes(table.trim()), table.slice(0, 40));
  }
  t.end();
});

interface ReceiverProcess {
  readonly port: number;
  /** Killed as a crash does, and started again. */
  readonly restart: () => Promise<void>;
  readonly pause: (ms: number) => Promise<void>;
}

async function startUpstreamProcess(t: Scope, database: PostgresServer): Promise<ReceiverProcess> {
  const port = await freePort();
  let child = await start();
  t.teardown(() => {
    child.kill('SIGKILL');
  });
  return {
    port,
    restart: async () => {
      if (child.exitCode !== null) throw new Error(`the receiver ended by itself with ${child.exitCode}`);
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      child = await start();
    },
    pause: async (ms) => {
      child.kill('SIGSTOP');
      await pause(ms);
      child.kill('SIGCONT');
    },
  };

  async function start(): Promise<ChildProcess> {
    const started = spawn(process.execPath, [join(example, 'receiver.mjs')], {
      env: { ...process.env, DATABASE_URL: database.url, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(started.stdout, 'data');
    return started;
  }
}
