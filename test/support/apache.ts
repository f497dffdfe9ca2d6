import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProgram, type Program } from './program.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

/** Where Debian puts its modules. */
export const apacheModules = '/usr/lib/apache2/modules';

/** Debian's program, which is on no ordinary user's PATH. */
export const apacheProgram = '/usr/sbin/apache2';

/** Runs Apache on this port with these modules and lines until the test ends. */
export function runApache(t: Scope, port: number, modules: readonly string[], config: string): Program {
  const dir = tempDir(t);
  const file = join(dir, 'apache.conf');
  const head = [
    `ServerRoot ${dir}`,
    'ServerName localhost',
    `Listen 127.0.0.1:${port}`,
    `PidFile ${join(dir, 'pid')}`,
    `ErrorLog ${join(dir, 'log')}`,
    'LogLevel error',
    `Mutex file:${dir}`,
    ...modules.map((name) => `LoadModule ${name}_module ${join(apacheModules, `mod_${name}.so`)}`),
  ];
  writeFileSync(file, `${head.join('\n')}\n${config}\n`);
  // Its workers outlive it where it cannot end them.
  return startProgram(t, apacheProgram, ['-DFOREGROUND', '-f', file], { signal: 'SIGTERM' });
}
