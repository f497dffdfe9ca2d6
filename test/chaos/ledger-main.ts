/**
 * The program as it is, and one thing more: at SIGUSR2 it collects what is garbage and writes a line with what is left.
 */
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { projectDir } from '../support/project-dir.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

process.on('SIGUSR2', () => {
  collect();
  // What the first round finalised is freed by the second.
  setImmediate(() => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    process.stdout.write(`${JSON.stringify({ ledger: heapUsed + external })}\n`);
  });
});

await import(join(projectDir, 'dist/main.js'));
