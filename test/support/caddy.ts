import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProgram, type Program } from './program.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

/** Runs Caddy with these sites until the test ends, without its admin endpoint and without a listener on port 80. */
export function runCaddy(t: Scope, sites: string): Program {
  const dir = tempDir(t);
  const file = join(dir, 'Caddyfile');
  writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${sites}`);
  const env = { HOME: dir, XDG_CONFIG_HOME: dir, XDG_DATA_HOME: dir };
  return startProgram(t, 'caddy', ['run', '--config', file, '--adapter', 'caddyfile'], { env });
}
