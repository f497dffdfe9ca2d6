/**
 * docs/performance.md: its sums are right, and begin with the defaults of the code and the figures of the pages that
 * have them.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { validateConfig } from '../../src/config/load/validate-config.js';
import { refuse } from '../../src/lib/result.js';
import type { ReservationStore } from '../../src/ports/idempotency.js';
import { maxConnectionsOf } from '../../src/proxy/inbound/client-connections.js';
import { maxPendingPerCaller } from '../../src/proxy/idempotency/pending-limit.js';
import { recentLimits } from '../../src/proxy/idempotency/recent-settlements.js';
import { maxBufferedBytes } from '../../src/proxy/idempotency/coordinator.js';
import { maxWaiting } from '../../src/adapters/jwks/waiting-room.js';
import { entryBytes, permissionBytes, subjectBytes } from '../../src/proxy/auth/verified-token-cache.js';
import { openStore, redisSettings } from '../adapters/redis/redis-store.js';
import { acquire, freshAttempt, freshScope, reserveOf } from '../adapters/store-commands.js';
import { loadNames, measureRedis } from '../bench/capacity.js';
import { projectDir } from '../support/project-dir.js';
import { startRedis } from '../support/redis-server.js';

t.setTimeout(120_000);

const read = (path: string): string => readFileSync(join(projectDir, path), 'utf8');
const page = read('docs/performance.md');
const units: Readonly<Record<string, number>> = {
  '': 1,
  µs: 1e-6,
  ms: 1e-3,
  s: 1,
  h: 3600,
  B: 1,
  KB: 1e3,
  GB: 1e9,
  KiB: 1024,
  MiB: 1024 ** 2,
  '/s': 1,
};

/** The worth of `512 × 48 KiB + 1 MiB`: points before dashes, from left to right. */
function worth(sum: string): number {
  return sum
    .split(' + ')
    .map((term) => {
      const [first = '', ...rest] = term.split(/ (?=[×÷] )/);
      return rest.reduce(
        (value, part) => (part.startsWith('×') ? value * quantity(part.slice(2)) : value / quantity(part.slice(2))),
        quantity(first),
      );
    })
    .reduce((total, value) => total + value, 0);
}

function quantity(text: string): number {
  const [, number = '', unit = ''] = /^([\d.]+) ?(\D*)$/.exec(text.trim()) ?? [];
  const factor = units[unit];
  if (number === '' || factor === undefined) throw new Error(`not a quantity: ${text}`);
  return Number(number) * factor;
}

const sums = [...page.matchAll(/`(\d[^`\n]*) = ([^`\n]+)`/g)].map(([, sum = '', result = '']) => ({ sum, result }));

t.test('every sum comes to what the page says', async (t) => {
  t.ok(sums.length > 15, `${String(sums.length)} sums`);
  for (const { sum, result } of sums) {
    const [is, says] = [worth(sum), quantity(result)];
    t.ok(Math.abs(is - says) <= Math.abs(says) * 0.02, `${sum} = ${String(is)}, the page says ${result}`);
  }
  t.equal(worth('2 + 3 × 4 ÷ 2'), 8);
  t.throws(() => quantity('3 horses'));
});

const { config } = validateConfig(
  `
listen: { host: 127.0.0.1, port: 8080 }
upstream: { url: "http://127.0.0.1:3000" }
store: { memory: {} }
issuers: { core: { issuer: "https://api.example.com", audience: orders, source: microservice, token_type: service } }
routes: [{ name: create, methods: [POST], path: /, subjects: [a], permissions: [b], idempotency: required }]
`,
  { file: 'sallyport.yaml', folder: '/', env: {}, readFile: () => refuse('none') },
);

interface Chart {
  readonly resources: Readonly<Record<'limits' | 'requests', { readonly memory: string }>>;
}

t.test('they begin with the defaults of the code', async (t) => {
  if (config === null) throw new Error('the config has an error');
  const {
    listen,
    upstream,
    tokenCacheBytes,
    routes: [route],
  } = config;
  const mib = (bytes: number): string => `${String(bytes / 1024 ** 2)} MiB`;
  const all =
    `128 MiB + ${mib(tokenCacheBytes ?? 0)} + ${String(listen.maxInFlight)} × 48 KiB ` +
    `+ ${String(maxWaiting)} × 48 KiB + ${mib(maxBufferedBytes)} ` +
    `+ ${String(listen.maxInFlight)} × ${String((route?.reservation?.maxStoredResponseBytes ?? 0) / 1024)} KiB + ${mib(recentLimits.maxBytes)}`;
  const found = sums.find(({ sum }) => sum === all);
  t.ok(found !== undefined, all);
  t.match(page, `\`listen.max_in_flight\`, ${String(listen.maxInFlight)}.`);
  t.match(
    page,
    `${String(entryBytes)} bytes and the token's length, and ${String(permissionBytes)} bytes for each of its permissions; each subject takes ${String(subjectBytes)} bytes`,
  );
  t.match(page, `\`upstream.max_connections\`, ${String(upstream.maxConnections)},`);
  t.ok(
    sums.some(({ sum }) => sum === `${String(maxPendingPerCaller)} ÷ 200 ms`),
    'writes of a caller that are under way',
  );
  t.equal(maxConnectionsOf(listen), worth('4 × 512 + 1024'), 'connections of callers');
  const webSockets = String(listen.maxWebSockets);
  t.ok(
    sums.some(
      ({ sum }) =>
        sum ===
        `4 × ${String(listen.maxInFlight)} + ${webSockets} + ${webSockets} + ${String(upstream.maxConnections)}`,
    ),
    'open files',
  );
  const { resources } = parse(read('helm/sallyport/values.yaml')) as Chart;
  t.ok(
    quantity(resources.limits.memory.replace('Mi', ' MiB')) > quantity(found?.result ?? ''),
    'the chart’s limit holds all of it',
  );
  for (const value of [resources.limits.memory, resources.requests.memory]) t.ok(page.includes(`\`${value}\``), value);
  t.match(read('docs/examples/compose/compose.yaml'), `mem_limit: ${resources.limits.memory.replace('Mi', 'm')}`);
  t.match(read('docs/operations.md'), `give it ${resources.limits.memory.replace('Mi', ' MiB')}`);
});

t.test('the table of memory has a row for each load that is measured', async (t) => {
  const [, table = ''] = /^## Memory\n([^]*?)^`npm run bench -- --capacity`/m.exec(page) ?? [];
  t.same(
    [...table.matchAll(/^\| (.*) \| \d+ MiB \|$/gm)].map(([, name]) => name),
    loadNames,
  );
});

t.test('they take the CPU of a request from the pages that measured it', async (t) => {
  const cell = (path: string, row: RegExp, column: number): number =>
    Number(row.exec(read(path))?.[0].split('|')[column]?.trim());
  const near = (figure: number, documented: string): void => {
    t.ok(sums.filter(({ sum }) => sum.includes(documented)).length > 1, documented);
    t.ok(
      Math.abs((figure * 1e-6) / quantity(documented) - 1) < 0.25,
      `${documented}; measured ${String(figure)} µs: work the page out again`,
    );
  };
  // Planned on the safe side: a request took this much where other programs were busy on the same cores.
  const measured = cell('docs/performance.md', /^\| Sallyport \|.*$/m, 3) * 1e-6;
  const planned = quantity('110 µs');
  t.ok(sums.filter(({ sum }) => sum.includes('110 µs')).length > 1);
  t.ok(
    measured < planned * 1.25 && measured > planned / 4,
    `110 µs; measured ${String(measured)} s: work the page out again`,
  );
  near(cell('docs/idempotency.md', /^\| reserved, Redis \|.*$/m, 2), '405 µs');
});

t.test('a write takes two scripts of Redis, and the memory of the page', async (t) => {
  const { scripts, bytes } = await measureRedis(t, 1_000, 50);
  // In as many digits as the page has: the look at the store every two seconds is a script, too.
  t.equal(scripts.toFixed(2), '2.00');
  t.ok(Math.abs(bytes / worth('2.5 KB') - 1) < 0.25, `${bytes.toFixed(0)} bytes for a record with an answer of 1 KiB`);
});

interface Kept {
  readonly row: string;
  readonly place: number;
  readonly make: (store: ReservationStore) => Promise<unknown>;
  /**
   * How many are made, at most a hundred at once. Redis grows and shrinks the buffers of connections by tens of KiB
   * meanwhile.
   */
  readonly count: number;
}

/** Bytes for each of what `docs/storage.md` lists, as its first column begins. */
const records: readonly Kept[] = [
  {
    row: '`pending`, `unknown`',
    place: 0,
    count: 3_000,
    make: async (store) => acquire(store, { ...freshScope(), token: null }, reserveOf(freshAttempt(), day)),
  },
  {
    row: 'marker of a single-use token',
    place: 0,
    make: async (store) => store.reserve({ ...freshScope(), operation: null }, marker()),
    count: 3_000,
  },
  { row: '`completed`, headers', place: 0, make: async (store) => complete(store, 0), count: 1_000 },
  { row: 'the same with a body', place: 0, make: async (store) => complete(store, 1024), count: 500 },
  { row: 'the same with a body', place: 1, make: async (store) => complete(store, 16 * 1024), count: 300 },
  { row: 'the same with a body', place: 2, make: async (store) => complete(store, 256 * 1024), count: 40 },
];
const day = { leaseMs: 86_400_000, retentionMs: 86_400_000, fingerprint: 'f'.repeat(43) };

function marker(): ReturnType<typeof reserveOf> {
  return { attempt: freshAttempt(), key: null, markerTtlMs: 86_400_000 };
}

async function complete(store: ReservationStore, bytes: number): Promise<unknown> {
  const [scope, attempt] = [{ ...freshScope(), token: null }, freshAttempt()];
  const fence = await acquire(store, scope, reserveOf(attempt, day));
  const headers = ['Content-Type', 'application/json', 'ETag', 'e'.repeat(80), 'Location', 'l'.repeat(80)];
  const response = { status: 200, headers, body: randomBytes(bytes) };
  return store.complete(scope, {
    attempt,
    fence,
    fingerprint: day.fingerprint,
    state: 'completed',
    retentionMs: day.retentionMs,
    response,
  });
}

t.test('docs/storage.md: bytes for each record', async (t) => {
  const table = read('docs/storage.md').split('## Memory')[1] ?? '';
  for (const { row, place, make, count } of records) {
    const server = await startRedis(t, ['--appendfsync', 'everysec']);
    const { store, up } = openStore(t, redisSettings(server.port));
    await up();
    const used = async (): Promise<number> => Number(/used_memory:(\d+)/.exec(await server.client.info('memory'))?.[1]);
    await make(store);
    const before = await used();
    for (let made = 0; made < count; made += 100) {
      await Promise.all(Array.from({ length: Math.min(100, count - made) }, async () => make(store)));
    }
    const bytes = ((await used()) - before) / count;
    const documented = table
      .split('\n')
      .find((line) => line.startsWith(`| ${row}`))
      ?.split('|')[2]
      ?.split('·')
      [place]?.replaceAll(',', '');
    t.ok(
      Math.abs(bytes / Number(documented) - 1) < 0.3,
      `${row}, ${String(place)}: ${bytes.toFixed(0)} bytes, the page says ${documented ?? 'nothing'}`,
    );
  }
});
