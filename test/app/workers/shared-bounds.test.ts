/** `workers: 2`: `listen.max_in_flight` and `listen.max_websockets` are those of one proxy. */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { longestAskMs } from '../../../src/app/workers/worker-places.js';
import { createRandom } from '../../proxy/exchange/chaos.js';
import { childrenOf } from '../../support/linux.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../../support/proxy-process.js';
import { connectRaw, requestBytes, type RawConnection } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';

t.setTimeout(120_000);

const routes = [{ name: 'read', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [] }];

/** A proxy of two workers, the requests that its upstream has, and connections of which it is known who serves them. */
interface Bounded {
  readonly proxy: ProxyProcess;
  readonly configOf: (max: number) => ConfigTree;
  readonly held: ServerResponse[];
  /** Sends a request that the upstream keeps; resolves with its status when it is answered. */
  readonly ask: (
    connection: RawConnection | undefined,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<number | null>;
  /** New connections, by the number of the worker that serves them. */
  readonly connect: (t: Scope, countOfEach: number) => Promise<Readonly<Record<1 | 2, readonly RawConnection[]>>>;
  readonly workers: () => readonly number[];
  /** Answers all that is held, and waits until no place is taken. */
  readonly release: () => Promise<void>;
}

async function startBounded(t: Scope, max: number): Promise<Bounded> {
  const configOf = (bound: number): ConfigTree => ({ workers: 2, listen: { max_in_flight: bound }, routes });
  const proxy = await startProxyProcess(t, { config: configOf(max) });
  const authorization = proxy.authorization();
  const held: ServerResponse[] = [];
  const hold = (): void => proxy.receiver.behave((req, res) => void held.push((req.resume(), res)));
  const send = async (
    connection: RawConnection | undefined,
    headers: Readonly<Record<string, string>>,
  ): Promise<number | null> => {
    if (connection === undefined) throw new Error('no connection');
    const fields = { ...authorization, Connection: 'keep-alive', ...headers };
    connection.write(requestBytes(proxy.port, { path: '/orders', headers: fields }));
    return (await connection.readResponse())?.status ?? null;
  };
  let named = 0;
  const release = async (): Promise<void> => {
    for (const response of held.splice(0)) response.end('held');
    await until('all places to be free', async () => (await proxy.metric('sallyport_requests_in_flight')) === 0);
  };
  hold();
  return {
    proxy,
    configOf,
    held,
    ask: (connection, headers = {}) => send(connection, headers),
    connect: async (scope, countOfEach) => {
      const found: Record<1 | 2, RawConnection[]> = { 1: [], 2: [] };
      proxy.receiver.behave(null);
      while (found[1].length < countOfEach || found[2].length < countOfEach) {
        // They go to the workers in turn, but for those that come as one is replaced.
        const opened: (readonly [string, RawConnection])[] = [];
        for (let index = 0; index < 2 * countOfEach; index += 1) {
          const connection = await connectRaw(proxy.port);
          scope.teardown(connection.end);
          named += 1;
          await send(connection, { 'X-Request-Id': `named-${String(named)}` });
          opened.push([`named-${String(named)}`, connection]);
        }
        for (const [id, connection] of opened) found[(await proxy.logOf(id))['worker'] === 1 ? 1 : 2].push(connection);
      }
      hold();
      return found;
    },
    workers: () => childrenOf(proxy.process.pid),
    release,
  };
}

t.test('a bound of 1 is one request at a time, whichever worker has the connection', async (t) => {
  const { held, ask, connect, release } = await startBounded(t, 1);
  const { 1: one, 2: two } = await connect(t, 2);
  for (const [first, others] of [
    [one[0], [one[1], two[0]]],
    [two[0], [two[1], one[0]]],
    [two[0], [one[1]]],
    [one[0], [two[1]]],
  ] as const) {
    const answer = ask(first);
    await until('it to be under way', () => held.length === 1);
    for (const other of others) t.equal(await ask(other), 503);
    await release();
    t.equal(await answer, 200);
  }
});

t.test('a bound of 10, whose places are all wanted by connections of one worker', async (t) => {
  const { proxy, configOf, held, ask, connect, workers, release } = await startBounded(t, 10);
  await t.test('are all had there, and no more', async (t) => {
    for (const [number, other] of [
      [2, 1],
      [1, 2],
    ] as const) {
      const open = await connect(t, 12);
      const answers = open[number].slice(0, 10).map((connection) => ask(connection));
      await until('ten to be under way', () => held.length === 10);
      t.same(await Promise.all(open[other].map((connection) => ask(connection))), Array(open[other].length).fill(503));
      t.same(await Promise.all(open[number].slice(10, 12).map((connection) => ask(connection))), [503, 503]);
      await release();
      t.same(new Set(await Promise.all(answers)), new Set([200]));
    }
  });

  await t.test('a worker that dies gives back what it had', async (t) => {
    const open = await connect(t, 10);
    const lost = open[1].slice(0, 7).map((connection) => ask(connection));
    await until('seven to be under way', () => held.length === 7);
    const kept = open[2].slice(0, 3).map((connection) => ask(connection));
    await until('ten to be under way', () => held.length === 10);
    t.equal(await ask(open[2][9]), 503);
    const [victim = 0] = workers();
    process.kill(victim, 'SIGKILL');
    t.same(new Set(await Promise.all(lost)), new Set([null]));
    const more = open[2].slice(3, 10).map((connection) => ask(connection));
    await until('their places to be had', () => held.length === 17);
    await until('another worker', async () => (await proxy.metric('sallyport_workers_serving')) === 2);
    const fresh = await Promise.all([1, 2, 3, 4].map(async () => connectRaw(proxy.port)));
    t.same(
      await Promise.all(fresh.map((connection) => ask(connection))),
      [503, 503, 503, 503],
      'the new one has none of its own',
    );
    for (const connection of fresh) connection.end();
    await release();
    t.same(new Set(await Promise.all([...kept, ...more])), new Set([200]));
  });

  await t.test('another bound in a reload counts from the next start on, for both and for a new worker', async (t) => {
    proxy.rewrite(configOf(2));
    await proxy.loaded();
    const { restart_needed: needed } = JSON.parse((await proxy.admin('/status')).text) as Record<string, unknown>;
    t.same(needed, ['listen.max_in_flight']);
    const [, victim = 0] = workers();
    process.kill(victim, 'SIGKILL');
    await until('its end', () => !workers().includes(victim));
    await until('another worker', async () => (await proxy.metric('sallyport_workers_serving')) === 2);
    const { 1: one, 2: two } = await connect(t, 6);
    const answers = [...one.slice(0, 5), ...two.slice(0, 5)].map((connection) => ask(connection));
    await until('ten to be under way', () => held.length === 10);
    t.equal(await ask(one[5]), 503);
    t.equal(await ask(two[5]), 503);
    await release();
    t.same(new Set(await Promise.all(answers)), new Set([200]));
  });

  await t.test('never more than ten under random traffic, and all are free after it', async (t) => {
    const random = createRandom(1);
    /** Long beside what a request takes on its way, so that all places are had at a time. */
    const serviceMs = (): number => 100 + random() * 100;
    let most = 0;
    let now = 0;
    proxy.receiver.behave((req, res) => {
      req.resume();
      // The place of a caller that leaves is free before the upstream hears of it.
      const counts = req.headers['x-leaves'] === undefined ? 1 : 0;
      now += counts;
      most = Math.max(most, now);
      setTimeout(() => {
        now -= counts;
        res.end('done');
      }, serviceMs());
    });
    const statuses: (number | null)[] = [];
    const callers = Array.from({ length: 24 }, async () => {
      for (let round = 0; round < 4; round += 1) {
        const connection = await connectRaw(proxy.port);
        const count = Math.floor(random() * 20);
        for (let sent = 0; sent < count; sent += 1) {
          const status = await ask(connection);
          statuses.push(status);
          if (status === 503) await sleep(random() * 60);
        }
        // Some leave while they wait.
        if (random() < 0.5) void ask(connection, { 'X-Leaves': '1' });
        if (random() < 0.5) await new Promise(setImmediate);
        connection.end();
      }
    });
    await Promise.all(callers);
    t.equal(most, 10);
    t.same([...new Set(statuses)].toSorted(), [200, 503]);
    await until('all places to be free', async () => (await proxy.metric('sallyport_requests_in_flight')) === 0);
    const { 1: one, 2: two } = await connect(t, 10);
    for (const open of [one, two]) {
      const answers = open.slice(0, 10).map((connection) => ask(connection));
      await until('ten to be under way', () => held.length === 10);
      await release();
      t.same(new Set(await Promise.all(answers)), new Set([200]), 'none was lost');
    }
  });
});

t.test('where nobody answers in time a request is refused, and its place is not lost', async (t) => {
  const { proxy, held, ask, connect, release } = await startBounded(t, 1);
  const { 1: one, 2: two } = await connect(t, 2);
  const [first, second] = two;
  const answer = ask(one[0]);
  await until('it to be under way', () => held.length === 1);
  proxy.signal('SIGSTOP');
  const beganMs = performance.now();
  const left = ask(second);
  await sleep(50);
  second?.end();
  t.equal(await ask(first), 503);
  const tookMs = performance.now() - beganMs;
  t.ok(tookMs > longestAskMs - 50 && tookMs < 5 * longestAskMs, `${String(tookMs)} ms`);
  t.equal(await left, null);
  proxy.signal('SIGCONT');
  await release();
  t.equal(await answer, 200);
  for (const connection of [first, one[0], first, one[0]]) {
    // What was granted to those who do not wait any more is on its way back.
    await until('the place', async () => {
      const again = ask(connection);
      const isHeld = await Promise.race([again, until('it to be under way', () => held.length === 1)]);
      if (isHeld === 503) return false;
      await release();
      t.equal(await again, 200);
      return true;
    });
  }
});
