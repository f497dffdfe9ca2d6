/**
 * Measures what a request costs here and elsewhere.
 *
 *   npm run bench -- --seconds 10 --rounds 3 [--connections 32] [--write]
 *
 * Prints a table; `--write` puts it into `docs/performance.md`.
 */
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { projectDir } from '../support/project-dir.js';
import { versionOf } from './child.js';
import { measure, median } from './measure.js';
import { pageOf, tableOf } from './report.js';
import { startToReady } from './startup.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '32' },
    write: { type: 'boolean', default: false },
  },
});
const [seconds, rounds, connections] = [Number(values.seconds), Number(values.rounds), Number(values.connections)];
const wrk = versionOf('wrk', '-v');
const [otherLoad = 0] = loadavg();
const closers: (() => unknown)[] = [];

try {
  const scope = { teardown: (close: () => unknown): unknown => closers.unshift(close) };
  const measured = await measure(scope, {
    seconds, rounds, connections, wrk: wrk !== null, onRun: (text) => {
      console.error(text);
    },
  });
  const starts: number[] = [];
  for (let i = 0; i < 5; i += 1) starts.push(await startToReady());
  console.log(`${tableOf(measured)}\n\nstart to ready: ${median(starts).toFixed(0)} ms`);
  const page = pageOf(measured, {
    startToReadyMs: median(starts),
    otherLoad,
    command: `npm run bench -- --seconds ${String(seconds)} --rounds ${String(rounds)}`,
    seconds, rounds, connections, load: wrk?.split(' Copyright')[0] ?? 'a loader of our own', haproxy: versionOf('haproxy', '-v')?.split(' - ')[0] ?? null,
  });
  if (values.write) writeFileSync(join(projectDir, 'docs/performance.md'), page);
} finally {
  for (const close of closers) await close();
}
