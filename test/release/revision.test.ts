/** `--version` names the commit that was built, and none rather than a wrong one. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { git as runGit } from '../support/git.js';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

const { version } = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8')) as { version: string };

interface Tree {
  readonly git: (...args: readonly string[]) => string;
  readonly write: (file: string, text: string) => void;
  /** Stamps it, as `npm run build` does; what it says where that fails. */
  readonly stamp: (...args: readonly string[]) => string;
  /** The revision in the program, read by running it. */
  readonly revision: () => string;
}

/** A repository with what the build leaves in `dist`. */
function tree(t: Scope, { path = '', env = process.env } = {}): Tree {
  const top = tempDir(t);
  const dir = join(top, path);
  const write: Tree['write'] = (file, text) => {
    mkdirSync(join(dir, file, '..'), { recursive: true });
    writeFileSync(join(dir, file), text);
  };
  const git: Tree['git'] = (...args) => runGit(top, ...args).output.trim();
  for (const file of ['.release/revision.mjs', 'dist/version.js']) {
    cpSync(join(projectDir, file), join(dir, file), { recursive: true });
  }
  // As the compiler leaves it.
  write(
    'dist/version.js',
    readFileSync(join(dir, 'dist/version.js'), 'utf8').replace(/(export const revision = )'.*'/, "$1'unknown'"),
  );
  write('package.json', '{ "type": "module" }');
  write('src/main.ts', 'main();\n');
  write('.gitignore', 'dist/\n');
  git('init', '--quiet');
  git('add', '.');
  git('-c', 'user.name=Test', '-c', 'user.email=test@example.com', 'commit', '--quiet', '--message', 'first');
  return {
    git,
    write,
    stamp: (...args) =>
      spawnSync(process.execPath, ['.release/revision.mjs', ...args], { cwd: dir, encoding: 'utf8', env }).stderr,
    revision: () => {
      const script = 'import { revision } from "./dist/version.js"; process.stdout.write(revision)';
      return spawnSync(process.execPath, ['--input-type=module', '-e', script], { cwd: dir, encoding: 'utf8' }).stdout;
    },
  };
}

t.test('the commit of a clean tree, and of a later one when it is built again', async (t) => {
  const { git, stamp, revision } = tree(t);
  t.equal(revision(), 'unknown', 'before it is stamped');
  t.equal(stamp(), '');
  t.match(revision(), /^[0-9a-f]{40}$/);
  t.equal(revision(), git('rev-parse', 'HEAD'));
  git(
    '-c',
    'user.name=Test',
    '-c',
    'user.email=test@example.com',
    'commit',
    '--quiet',
    '--allow-empty',
    '--message',
    'second',
  );
  stamp();
  t.equal(revision(), git('rev-parse', 'HEAD'));
});

t.test('a tree with changes says so', async (t) => {
  for (const [file, isDirty] of [
    ['src/main.ts', true],
    ['package.json', true],
    ['src/new.ts', true],
    ['notes.txt', false],
    ['dist/x.js', false],
  ] as const) {
    const { git, write, stamp, revision } = tree(t);
    write(file, '{ "type": "module", "changed": true }');
    stamp();
    t.equal(revision(), `${git('rev-parse', 'HEAD')}${isDirty ? '-dirty' : ''}`, file);
  }
});

t.test('where git cannot tell, the commit is unknown', async (t) => {
  const inside = tree(t, { path: 'vendor/sallyport' });
  t.equal(inside.stamp(), '');
  t.equal(inside.revision(), 'unknown', 'in a folder of somebody else’s repository');
  const without = tree(t, { env: { ...process.env, PATH: tempDir(t) } });
  t.equal(without.stamp(), '');
  t.equal(without.revision(), 'unknown', 'without git');
  const copy = tree(t, { env: { ...process.env, GIT_DIR: join(tempDir(t), 'none') } });
  t.equal(copy.stamp(), '');
  t.equal(copy.revision(), 'unknown', 'without its history');
});

t.test('a commit that is given counts, and has to be one', async (t) => {
  const { stamp, revision } = tree(t);
  const given = '0123456789abcdef0123456789abcdef01234567';
  for (const one of [given, `${given}-dirty`, 'unknown', '0123abc']) {
    t.equal(stamp(one), '');
    t.equal(revision(), one);
  }
  for (const odd of ['main', '0.2.0', "'; process.exit(1); '", '012345']) t.match(stamp(odd), /is no commit/, odd);
  t.equal(revision(), '0123abc', 'what was there stays');
});

t.test('--version says version, commit and Node.js', async (t) => {
  const { stdout } = spawnSync(process.execPath, [join(projectDir, 'dist/main.js'), '--version'], { encoding: 'utf8' });
  const [, named = '', commit = '', node = ''] =
    /^sallyport (\S+) \(([0-9a-f]{40}(?:-dirty)?|commit unknown), Node (\S+)\)\n$/.exec(stdout) ?? [];
  t.equal(named, version, stdout);
  t.not(commit, '');
  t.equal(node, process.version);
});
