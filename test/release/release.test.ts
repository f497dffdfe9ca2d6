import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { blockThatBegins } from '../docs/fenced-blocks.js';
import { projectDir } from '../support/project-dir.js';
import { tempDir } from '../support/temp-dir.js';
import type { Scope } from '../support/scope.js';

const files = ['package.json', 'package-lock.json', 'helm/sallyport/Chart.yaml', 'Dockerfile', 'CHANGELOG.md', '.release/release.mjs'];

interface Tree {
  readonly dir: string;
  readonly run: (command: string, ...args: readonly string[]) => { readonly code: number | null; readonly said: string };
  readonly release: (...args: readonly string[]) => { readonly code: number | null; readonly said: string };
}

function tree(t: Scope): Tree {
  const dir = tempDir(t);
  for (const file of files) cpSync(join(projectDir, file), join(dir, file));
  writeFileSync(join(dir, 'CHANGELOG.md'), '# Changelog\n\n## Unreleased\n\n- **Something** new.\n\n## 0.0.1\n\nThe first.\n');
  const run: Tree['run'] = (command, ...args) => {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: dir, encoding: 'utf8' });
    return { code: status, said: `${stdout}${stderr}` };
  };
  run('git', 'init', '--quiet');
  run('git', 'config', 'user.name', 'Test');
  run('git', 'config', 'user.email', 'test@example.com');
  run('git', 'add', '.');
  run('git', 'commit', '--quiet', '--message', 'before');
  return { dir, run, release: (...args) => run(process.execPath, '.release/release.mjs', ...args) };
}

/** The words that docs/releasing.md calls the script with, in the version that is next here. */
const shown = blockThatBegins('docs/releasing.md', 'node .release/release.mjs').text.trimEnd().split('\n')
  .map((line) => line.replace(/\s+#.*$/, '').replace(/\d+\.\d+\.\d+/, 'NEXT').split(' ').slice(2));

const { version } = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8')) as { version: string };
const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
const next = `${String(major)}.${String(minor + 1)}.0`;

t.test('a release ties package, image and chart to one version, and tags it', async (t) => {
  const { dir, run, release } = tree(t);
  t.same(shown, [['NEXT', '--check'], ['NEXT']], 'as the page has it');
  t.match(release(next, '--check'), { code: 0, said: /→ .*package\.json/ });
  t.equal(run('git', 'status', '--porcelain').said, '', '--check changes nothing');
  t.match(release(next, '--date', '2026-01-31'), { code: 0 });
  const read = (file: string): string => readFileSync(join(dir, file), 'utf8');
  const lock = JSON.parse(read('package-lock.json')) as { version: string; packages: { '': { version: string } } };
  t.same([lock.version, lock.packages[''].version], [next, next]);
  t.match(JSON.parse(read('package.json')), { version: next });
  t.match(read('helm/sallyport/Chart.yaml'), `version: ${next}\nappVersion: ${next}`);
  t.match(read('Dockerfile'), `ARG VERSION=${next}\n`);
  t.match(read('CHANGELOG.md'), `## Unreleased\n\n## ${next}\n\n2026-01-31\n\n- **Something** new.`);
  t.equal(run('git', 'tag', '--list').said.trim(), `v${next}`);
  t.equal(run('git', 'status', '--porcelain').said, '', 'everything is committed');
  t.match(release(`${String(major)}.${String(minor + 1)}.1`), { code: 1, said: /nothing under Unreleased/ });
});

t.test('what stands in the way is named, and nothing is changed', async (t) => {
  const { dir, run, release } = tree(t);
  t.match(release(), { code: 1, said: /say which version/ });
  t.match(release('1.2'), { code: 1, said: /say which version/ });
  t.match(release(`${String(major)}.${String(minor)}.${String(patch + 2)}`), { code: 1, said: /does not follow/ });
  run('git', 'tag', `v${next}`);
  t.match(release(next), { code: 1, said: new RegExp(`the tag v${next} exists`) });
  writeFileSync(join(dir, 'Dockerfile'), 'FROM scratch\n');
  t.match(release(next), { code: 1, said: /not committed/ });
});
