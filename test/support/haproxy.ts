import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProgram, type Program } from './program.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

/** Runs HAProxy with this configuration until the test ends. */
export function runHaproxy(t: Scope, config: string): Program {
  const file = join(tempDir(t), 'haproxy.cfg');
  writeFileSync(file, config);
  return startProgram(t, 'haproxy', ['-db', '-f', file]);
}
