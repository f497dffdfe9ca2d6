/** Commands in a folder that was removed, as a deployment leaves the shell of whoever works in it. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { sh } from '../support/sh.js';
import { tempDir } from '../support/temp-dir.js';

const config = `listen: { host: 127.0.0.1, port: 8080 }
upstream: { url: "http://127.0.0.1:3000" }
routes:
  - { name: health, methods: [GET], path: /healthz, access: public }
`;

interface Ended {
  readonly code: number | null;
  readonly err: string;
  readonly folder: string;
}

/** Runs a command there; `DIR` in an argument is a folder that is left. */
function runRemoved(t: Parameters<typeof tempDir>[0], args: readonly string[]): Ended {
  const dir = tempDir(t);
  const folder = join(dir, 'gone');
  mkdirSync(folder);
  writeFileSync(join(dir, 'sallyport.yaml'), config);
  const command = [process.execPath, join(projectDir, 'dist/main.js'), ...args.map((arg) => arg.replace('DIR', dir))];
  const { status, stderr } = spawnSync(sh, ['-c', 'cd "$0" && rmdir "$0" && exec "$@"', folder, ...command], {
    encoding: 'utf8',
    env: { ...process.env, SALLYPORT_CONFIG: '' },
  });
  return { code: status, err: stderr, folder };
}

for (const args of [
  ['--version'],
  ['schema'],
  ['check', 'DIR/sallyport.yaml'],
  ['check', '--config', 'DIR/sallyport.yaml'],
  ['explain', '--method', 'GET', '--path', '/healthz', '--config', 'DIR/sallyport.yaml'],
]) {
  t.test(`${args.join(' ')} needs no working directory`, (t) => {
    const { code, err } = runRemoved(t, args);
    t.equal(code, 0, err);
    t.end();
  });
}

for (const args of [['check'], ['check', 'sallyport.yaml'], ['serve', 'sallyport.yaml']]) {
  t.test(`${args.join(' ')} says that the working directory is gone, and calls no config wrong`, (t) => {
    const { code, err, folder } = runRemoved(t, args);
    t.equal(code, 2);
    t.equal(
      err,
      `error: the working directory ${folder} does not exist: change to one that is there, or name every file by its ` +
        'whole path\n',
    );
    t.end();
  });
}
