/** A project of a few files in a folder of its own, with our runner and our packages. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectDir } from '../support/project-dir.js';
import { tempDir } from '../support/temp-dir.js';
import type { Scope } from '../support/scope.js';

export interface SmallProject {
  readonly dir: string;
  /** Runs Node.js from elsewhere, with the project's files named by whole paths. */
  readonly run: (
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ) => { readonly code: number | null; readonly output: string };
  readonly runner: string;
}

const ours = [
  'package.json',
  '.taprc',
  'tsconfig.json',
  'test/tsconfig.json',
  'test/run.mjs',
  'test/check',
  '.release',
  'src/version.ts',
];

/**
 * `folder` is where below a temporary folder it lies; `files` are those of `src` and `test`, by their path and text.
 */
export function smallProject(t: Scope, folder: string, files: Readonly<Record<string, string>>): SmallProject {
  const base = tempDir(t);
  const dir = join(base, folder);
  mkdirSync(dir, { recursive: true });
  for (const path of ours) {
    cpSync(join(projectDir, path), join(dir, path), {
      recursive: true,
      filter: (one) => !/\/test\/check\/.*\.ts$/.test(one),
    });
  }
  symlinkSync(join(projectDir, 'node_modules'), join(dir, 'node_modules'));
  for (const [path, text] of Object.entries({ 'src/main.ts': 'export {};\n', ...files })) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
  return {
    dir,
    run: (args, env = {}) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, args, {
        cwd: base,
        encoding: 'utf8',
        env: { ...process.env, ...env },
      });
      return { code: status, output: `${stdout}${stderr}` };
    },
    runner: join(dir, 'test/run.mjs'),
  };
}
