/**
 * The program as it is, and one thing more: at SIGUSR2 it collects what is garbage and writes a line with what is left.
 */
import { join } from 'node:path';
import { collectGarbage } from '../support/garbage.js';
import { projectDir } from '../support/project-dir.js';

process.on('SIGUSR2', () => {
  collectGarbage();
  // What the first round finalised is freed by the second.
  setImmediate(() => {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    process.stdout.write(`${JSON.stringify({ ledger: heapUsed + external })}\n`);
  });
});

await import(join(projectDir, 'dist/main.js'));
