/** Answers that cannot be written. */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';

for (const args of [
  ['schema'],
  ['--help'],
  ['completion', 'bash'],
  ['check', '--json', '--config', 'config.example.yaml'],
]) {
  t.test(`${args.join(' ')}: a full disk is told in one line, and is no answer`, (t) => {
    // A device that is always full (full(4)).
    const full = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [join(projectDir, 'dist/main.js'), ...args], {
      cwd: projectDir,
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    });
    closeSync(full);
    t.equal(status, 3);
    t.equal(
      stderr
        .split('\n')
        .filter((line) => line.startsWith('error:'))
        .join('\n'),
      'error: standard output cannot be written: ENOSPC',
    );
    t.notMatch(stderr, / at /);
    t.end();
  });
}
