/** The pool by itself, with a program that answers as a worker does and ends as soon as it has. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { createPool } from '../../../src/app/workers/pool.js';
import { childrenOf } from '../../support/linux.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';

const endsAtOnce = `process.on('message', ({ id }) => {
  process.send({ kind: 'answer', id, answer: null }, () => process.exit(3));
});`;

t.test('a worker that ends while another config is on its way does not serve', async (t) => {
  const program = join(tempDir(t), 'worker.cjs');
  writeFileSync(program, endsAtOnce);
  let isOver = (): void => undefined;
  const reloading = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  const told: string[] = [];
  const log = (message: string): void => {
    told.push(message);
  };
  const config = { config: '', files: new Map<string, string>() };
  const pool = createPool({
    count: 1,
    program,
    log: { debug: log, info: log, warn: log, error: log },
    order: (number) => ({ number, count: 1, configName: '', folder: '', first: config, current: null, tls: null }),
    reloading: () => reloading,
    onLines: () => undefined,
    onGaveWay: () => undefined,
    isCounted: () => true,
    onFailed: () => undefined,
  });
  t.teardown(pool.close);
  const started = pool.start();
  await until('its end', () => childrenOf(process.pid).length === 0);
  // Its end was read with that of its channel, which is told some turns later.
  for (let turns = 0; turns < 5; turns += 1) await setImmediate();
  isOver();
  t.same((await started)?.messages, ['worker 1 ended before it served: exit code 3']);
  t.same(pool.serving(), [], 'nothing waits for it');
  t.same(told, []);
});

const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const config = { config: '', files: new Map<string, string>() };
const order = { number: 1, count: 1, configName: '', folder: '', first: config, current: null, tls: null };

function poolDeps(program: string): Omit<Parameters<typeof createPool>[0], 'order'> {
  return {
    count: 1,
    program,
    log,
    reloading: () => null,
    onLines: () => undefined,
    onGaveWay: () => undefined,
    isCounted: () => true,
    onFailed: () => undefined,
  };
}

/** A program that answers every call, but for what is said before. */
const answers = (how: string): string => `process.on('message', ({ id, name, given }) => {
  if (name === undefined) return;
  ${how}
  process.send({ kind: 'answer', id, answer: null });
});`;

t.test('a worker that fails at its start and goes on is told of and ended', async (t) => {
  const program = join(tempDir(t), 'worker.cjs');
  writeFileSync(
    program,
    answers("if (name === 'start') return process.send({ kind: 'failed', id, reason: 'a bug' });"),
  );
  const pool = createPool({ ...poolDeps(program), order: (number) => ({ ...order, number }) });
  t.teardown(pool.close);
  t.same((await pool.start())?.messages, ['worker 1 failed before it served: a bug']);
  t.same(childrenOf(process.pid), []);
});

t.test('a worker serves in the turn in which nothing is left to tell it: no reload is between', async (t) => {
  const program = join(tempDir(t), 'worker.cjs');
  writeFileSync(program, answers(''));
  let looks = 0;
  const seen: boolean[] = [];
  const pool = createPool({
    ...poolDeps(program),
    order: (number) => {
      looks += 1;
      // The second look is the one that finds nothing new; a reload begins as soon as its turn is over.
      if (looks === 2) queueMicrotask(() => seen.push(pool.serving().length === 1));
      return { ...order, number };
    },
  });
  t.teardown(pool.close);
  t.equal(await pool.start(), null);
  t.same(seen, [true]);
});

/** Has the clock of all that runs here go ahead. */
function shiftClock(t: Scope): (ms: number) => void {
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  performance.now = () => now() + aheadMs;
  t.teardown(() => (performance.now = now));
  return (ms) => (aheadMs += ms);
}

/** Says in a file that it has come so far. */
const tells = "require('node:fs').writeFileSync(__dirname + '/told', '');";
const speaks = `process.send({ kind: 'failed', id: 0, reason: '' }, () => { ${tells} });`;
const hangsAtStart = answers("if (name === 'start' || name === 'numbers') return;");
const hangsLater = answers(`if (name === 'prepare') ${tells} if (name === 'prepare' || name === 'numbers') return;`);

for (const [name, program, lateMs] of [
  // Such a one may have loaded nothing yet.
  ['its start, and has said nothing', `${tells}${hangsAtStart}`, 120_000],
  ['its start', `${speaks}${hangsAtStart}`, 30_000],
  ['another config', hangsLater, 30_000],
] as const) {
  t.test(`a worker that hangs at ${name} is ended`, async (t) => {
    const folder = tempDir(t);
    const file = join(folder, 'worker.cjs');
    writeFileSync(file, program);
    const goOn = shiftClock(t);
    const errors: string[] = [];
    let looks = 0;
    const pool = createPool({
      ...poolDeps(file),
      log: { ...log, error: (message) => errors.push(message) },
      order: (number) => ({ ...order, number, current: ++looks > 1 ? config : null }),
    });
    t.teardown(pool.close);
    const started = pool.start();
    await until('it to hang', () => existsSync(join(folder, 'told')));
    await inChannel();
    goOn(lateMs - 20_000);
    await delay(2_500);
    t.same(errors, []);
    goOn(20_000);
    t.same((await started)?.messages, ['worker 1 ended before it served: SIGKILL']);
    t.ok(errors.length > 0 && errors.every((each) => each === 'a worker does not answer and is ended'), errors.join());
  });
}

t.test('a worker that starts slowly is waited for as long as it answers', async (t) => {
  const folder = tempDir(t);
  const [program, said, go] = [join(folder, 'worker.cjs'), join(folder, 'said'), join(folder, 'go')];
  writeFileSync(said, '');
  writeFileSync(
    program,
    `const { appendFileSync, existsSync } = require('node:fs');
${answers(`
  if (name === 'start') {
    const looking = setInterval(() => {
      if (!existsSync('${go}')) return;
      clearInterval(looking);
      process.send({ kind: 'answer', id, answer: null });
    }, 20);
    return;
  }
  if (name === 'numbers') {
    const said = () => appendFileSync('${said}', '.');
    return process.send({ kind: 'failed', id, reason: 'it has not started' }, said);
  }`)}`,
  );
  const answered = async (): Promise<void> => {
    const { length } = readFileSync(said);
    await until('another answer', () => readFileSync(said).length > length);
    await inChannel();
  };
  const goOn = shiftClock(t);
  const errors: string[] = [];
  const pool = createPool({
    ...poolDeps(program),
    log: { ...log, error: (message) => errors.push(message) },
    order: (number) => ({ ...order, number }),
  });
  t.teardown(pool.close);
  const started = pool.start();
  // Together beyond 30 s, and each far enough from that for a machine that is slow itself.
  for (let steps = 0; steps < 3; steps += 1) {
    await answered();
    goOn(15_000);
  }
  await answered();
  writeFileSync(go, '');
  t.equal(await started, null);
  t.same(errors, []);
});

t.test('what Node.js tells of a process that cannot be started is told', async (t) => {
  const { execPath } = process;
  t.teardown(() => (process.execPath = execPath));
  process.execPath = join(tempDir(t), 'node');
  const pool = createPool({ ...poolDeps('worker.cjs'), order: (number) => ({ ...order, number }) });
  t.teardown(pool.close);
  const started = pool.start();
  t.same((await started)?.messages, [`worker 1 cannot be started: spawn ${process.execPath} ENOENT`]);
});

/** Lets no process start, and then lets it again. */
function startSwitch(t: Scope): { readonly fill: () => void; readonly empty: () => void } {
  // More than a process may be given.
  const fill = (): void => {
    process.env['TOO_LARGE'] = 'x'.repeat(1 << 18);
  };
  const empty = (): void => {
    delete process.env['TOO_LARGE'];
  };
  t.teardown(empty);
  return { fill, empty };
}

/** Has pauses be short. */
function shortenPauses(t: Scope): void {
  const { setTimeout: usual } = globalThis;
  t.teardown(() => (globalThis.setTimeout = usual));
  const short = (then: () => void, ms: number): NodeJS.Timeout => usual(then, Math.min(ms, 5));
  globalThis.setTimeout = Object.assign(short, { __promisify__: usual.__promisify__ }) as typeof usual;
}

interface Serving {
  readonly pool: ReturnType<typeof createPool>;
  /** How often one could not be replaced, by its number. */
  readonly failed: ReadonlyMap<unknown, number>;
  readonly ends: readonly (readonly string[])[];
}

/** A pool whose workers all serve. */
async function servingPool(t: Scope, count: number, program = answers('')): Promise<Serving> {
  const file = join(tempDir(t), 'worker.cjs');
  writeFileSync(file, program);
  const failed = new Map<unknown, number>();
  const ends: (readonly string[])[] = [];
  const pool = createPool({
    ...poolDeps(file),
    count,
    order: (number) => ({ ...order, number, count }),
    log: {
      ...log,
      error: (message, fields) => {
        const number = fields?.['number'];
        if (message === 'a worker cannot be replaced') failed.set(number, (failed.get(number) ?? 0) + 1);
      },
    },
    onFailed: ({ messages }) => ends.push(messages),
  });
  t.teardown(pool.close);
  const failure = await pool.start();
  if (failure !== null) throw new Error(failure.messages.join());
  return { pool, failed, ends };
}

t.test('one that cannot be replaced ends no others', async (t) => {
  const { fill, empty } = startSwitch(t);
  const { pool, failed, ends } = await servingPool(t, 2);
  shortenPauses(t);
  const [first, second] = pool.serving();
  fill();
  first?.kill();
  await until('many attempts', () => (failed.get(first?.number) ?? 0) > 15);
  t.same(pool.serving(), [second]);
  empty();
  await until('the next', () => pool.serving().length === 2);
  t.same(ends, []);
});

t.test('many that end at once, and cannot be replaced for a while, end nothing', async (t) => {
  const { fill, empty } = startSwitch(t);
  const { pool, failed, ends } = await servingPool(t, 4);
  shortenPauses(t);
  fill();
  for (const worker of pool.serving()) worker.kill();
  await until('attempts', () => failed.size === 4 && [...failed.values()].every((times) => times >= 3));
  empty();
  await until('the next', () => pool.serving().length === 4);
  t.same(ends, []);
});

t.test('where none serves, and none can be replaced, the proxy ends, and says so once', async (t) => {
  const { fill } = startSwitch(t);
  const { pool, failed, ends } = await servingPool(t, 2);
  shortenPauses(t);
  fill();
  for (const worker of pool.serving()) worker.kill();
  await until('the end', () => ends.length > 0);
  const attempts = [...failed];
  await delay(200);
  t.same([...failed], attempts, 'none is tried again');
  // They were killed as soon as they had begun.
  t.ok(attempts.every(([, times]) => times >= 9));
  t.match(ends, [
    [/^no worker serves, and in the place of each 10 in a row ended as soon as they had begun, or could/],
  ]);
  t.equal(ends.length, 1);
});

t.test('a process that cannot be started is tried again', async (t) => {
  const program = join(tempDir(t), 'worker.cjs');
  writeFileSync(program, answers(''));
  const { fill, empty } = startSwitch(t);
  const problems: unknown[] = [];
  const pool = createPool({
    ...poolDeps(program),
    order: (number) => ({ ...order, number }),
    log: {
      ...log,
      error: (message, fields) => {
        if (message === 'a worker cannot be replaced') {
          problems.push(fields?.['problems']);
          empty();
        }
      },
    },
  });
  t.teardown(pool.close);
  fill();
  t.match((await pool.start())?.messages, ['worker 1 cannot be started: spawn E2BIG']);
  empty();
  t.equal(await pool.start(), null);
  const [first] = pool.serving();
  fill();
  first?.kill();
  const second = await until('the next', () => pool.serving().find(({ pid }) => pid !== first?.pid));
  t.ok(second.pid > 0);
  t.match(problems, [['worker 1 cannot be started: spawn E2BIG']]);
});

t.test(
  'what a worker counted is with those that are gone from the turn on in which it leaves the others',
  async (t) => {
    const program = join(tempDir(t), 'worker.cjs');
    writeFileSync(
      program,
      `${answers(`
  if (name === 'page') return process.disconnect();
  if (name === 'numbers') {
    const traffic = { duration_bounds: [], overhead_bounds: [], routes: [] };
    return process.send({ kind: 'answer', id, answer: { metrics: { families: [], histograms: [] }, counts: {}, traffic } });
  }`)}
process.on('disconnect', () => setTimeout(() => undefined, 500));`,
    );
    const pool = createPool({ ...poolDeps(program), order: (number) => ({ ...order, number }) });
    t.teardown(pool.close);
    t.equal(await pool.start(), null);
    const [worker] = pool.serving();
    await worker?.call('numbers', null);
    t.equal(pool.retired().traffic, null);
    worker?.call('page', { path: '', query: '' }).catch(() => undefined);
    await untilTurn(() => pool.serving().length === 0);
    t.not(pool.retired().traffic, null);
    t.equal(worker?.isGone(), true);
  },
);

/** What is in a channel by now is read in the next turn. */
async function inChannel(): Promise<void> {
  for (let turns = 0; turns < 3; turns += 1) await setImmediate();
}

async function untilTurn(holds: () => boolean): Promise<void> {
  while (!holds()) await setImmediate();
}

t.test('how long a worker serves is counted from when it does', async (t) => {
  const file = join(tempDir(t), 'worker.cjs');
  writeFileSync(file, answers(''));
  let isOver = (): void => undefined;
  const reloading = new Promise<void>((resolve) => (isOver = resolve));
  let isAsked = false;
  const pool = createPool({
    ...poolDeps(file),
    order: (number) => ({ ...order, number }),
    reloading: () => {
      isAsked = true;
      return reloading;
    },
  });
  t.teardown(pool.close);
  const goOn = shiftClock(t);
  const started = pool.start();
  await until('it to catch up', () => isAsked);
  goOn(20_000);
  isOver();
  t.equal(await started, null);
  goOn(5_000);
  const servingMs = pool.serving()[0]?.servingMs() ?? 0;
  t.ok(servingMs >= 5_000 && servingMs < 15_000, String(servingMs));
});
