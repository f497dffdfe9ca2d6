/** The pool by itself, with a program that answers as a worker does and ends as soon as it has. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { createPool } from '../../../src/app/workers/pool.js';
import { childrenOf } from '../../support/linux.js';
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
