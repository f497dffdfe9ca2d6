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
