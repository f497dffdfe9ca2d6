/**
 * The program as it is, and one thing more: at SIGUSR2 it collects what is garbage and writes a line with what is left.
 */
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { collectGarbage } from '../support/garbage.js';
import { projectDir } from '../support/project-dir.js';

/** What one round finalises is freed by the next, and what that held by the third: of HTTP/2, say. */
const rounds = 4;

process.on('SIGUSR2', () => {
  void collectAll().then(() => {
    const { heapUsed, external } = process.memoryUsage();
    process.stdout.write(`${JSON.stringify({ ledger: heapUsed + external })}\n`);
  });
});

async function collectAll(): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    collectGarbage();
    await setImmediate();
  }
}

await import(join(projectDir, 'dist/main.js'));
