import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProgram, type Program } from './program.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

/** Folders that nginx makes at its start, of the system unless it is told otherwise. */
const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** Runs nginx with this in its `http` block, and modules before it, in one process, until the test ends. */
export function runNginx(t: Scope, http: string, modules: readonly string[] = []): Program {
  const dir = tempDir(t);
  const file = join(dir, 'nginx.conf');
  const own = ['access_log off;', ...folders.map((name) => `${name}_temp_path ${join(dir, name)};`)];
  const head = [
    ...modules.map((module) => `load_module ${module};`),
    'daemon off;',
    'master_process off;',
    `pid ${join(dir, 'pid')};`,
    'error_log stderr error;',
    'events {}',
    'http {',
    ...own,
  ];
  writeFileSync(file, [...head, http, '}', ''].join('\n'));
  return startProgram(t, 'nginx', ['-e', 'stderr', '-c', file]);
}
