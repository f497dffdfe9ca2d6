/** Commands in a folder that was removed, as a deployment leaves the shell of whoever works in it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { runToEnd, type Ended } from '../support/program.js';
import { projectDir } from '../support/project-dir.js';
import { sh } from '../support/sh.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

const config = `listen: { host: 127.0.0.1, port: 8080 }
upstream: { url: "http://127.0.0.1:3000" }
routes:
  - { name: health, methods: [GET], path: /healthz, access: public }
`;

/** Runs a command there; `DIR` in an argument is a folder that is left. */
async function runRemoved(t: Scope, args: readonly string[]): Promise<Ended & { readonly folder: string }> {
  const dir = tempDir(t);
  const folder = join(dir, 'gone');
  mkdirSync(folder);
  writeFileSync(join(dir, 'sallyport.yaml'), config);
  const command = [process.execPath, join(projectDir, 'dist/main.js'), ...args.map((arg) => arg.replace('DIR', dir))];
  const script = 'unset SALLYPORT_CONFIG && cd "$0" && rmdir "$0" && exec "$@"';
  return { ...(await runToEnd(sh, ['-c', script, folder, ...command])), folder };
}

for (const args of [
  ['--version'],
  ['schema'],
  ['check', 'DIR/sallyport.yaml'],
  ['check', '--config', 'DIR/sallyport.yaml'],
  ['explain', '--method', 'GET', '--path', '/healthz', '--config', 'DIR/sallyport.yaml'],
]) {
  t.test(`${args.join(' ')} needs no working directory`, async (t) => {
    const { code, stderr } = await runRemoved(t, args);
    t.equal(code, 0, stderr);
  });
}

for (const args of [['check'], ['check', 'sallyport.yaml'], ['serve', 'sallyport.yaml']]) {
  t.test(`${args.join(' ')} says that the working directory is gone, and calls no config wrong`, async (t) => {
    const { code, stderr, folder } = await runRemoved(t, args);
    t.equal(code, 2);
    t.equal(
      stderr,
      `error: the working directory ${folder} does not exist: change to one that is there, or name every file by its ` +
        'whole path\n',
    );
  });
}
