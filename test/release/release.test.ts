import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { blockThatBegins } from '../docs/fenced-blocks.js';
import '../support/git.js';
import { projectDir } from '../support/project-dir.js';
import { tempDir } from '../support/temp-dir.js';
import type { Scope } from '../support/scope.js';

const files = [
  'package.json',
  'package-lock.json',
  'src/version.ts',
  'helm/sallyport/Chart.yaml',
  'helm/manifests/orders.yaml',
  'test/helm/parent/Chart.yaml',
  'Dockerfile',
  'docs/deployment.md',
  '.release/release.mjs',
];

const { version } = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8')) as { version: string };

/** What the trees of these tests call themselves, whatever this one does. */
const dev = '0.2.0-dev';

interface Tree {
  readonly dir: string;
  readonly run: (
    command: string,
    ...args: readonly string[]
  ) => { readonly code: number | null; readonly output: string };
  readonly release: (...args: readonly string[]) => { readonly code: number | null; readonly output: string };
}

function tree(t: Scope): Tree {
  const dir = tempDir(t);
  for (const file of files) {
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    writeFileSync(join(dir, file), readFileSync(join(projectDir, file), 'utf8').replaceAll(version, dev));
  }
  writeFileSync(
    join(dir, 'CHANGELOG.md'),
    `# Changelog\n\n## ${dev} (unreleased)\n\n- **Something** new.\n\n## 0.1.0\n\nThe first.\n`,
  );
  const run: Tree['run'] = (command, ...args) => {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: dir, encoding: 'utf8' });
    return { code: status, output: `${stdout}${stderr}` };
  };
  run('npm', 'pkg', 'set', 'repository.url=https://git.example.com/sallyport');
  run('git', 'init', '--quiet');
  run('git', 'config', 'user.name', 'Test');
  run('git', 'config', 'user.email', 'test@example.com');
  run('git', 'add', '.');
  run('git', 'commit', '--quiet', '--message', 'before');
  return { dir, run, release: (...args) => run(process.execPath, '.release/release.mjs', ...args) };
}

/** The words that docs/releasing.md calls the script with, in the version that is next here. */
const shown = blockThatBegins('docs/releasing.md', 'node .release/release.mjs')
  .text.trimEnd()
  .split('\n')
  .map((line) =>
    line
      .replace(/\s+#.*$/, '')
      .replace(/\d+\.\d+\.\d+/, 'NEXT')
      .split(' ')
      .slice(2),
  );

t.test('a release ties package, image and chart to one version, tags it, and goes on as -dev', async (t) => {
  const { dir, run, release } = tree(t);
  t.same(shown, [['NEXT', '--check'], ['NEXT']], 'as the page has it');
  t.match(release('0.2.0', '--check'), { code: 0, output: /→ .*package\.json/ });
  t.equal(run('git', 'status', '--porcelain').output, '', '--check changes nothing');
  t.match(release('0.2.0', '--date', '2026-01-31'), { code: 0 });
  const read = (at: string, file: string): string => run('git', 'show', `${at}:${file}`).output;
  for (const [at, now] of [
    ['v0.2.0', '0.2.0'],
    ['HEAD', '0.3.0-dev'],
  ] as const) {
    const lock = JSON.parse(read(at, 'package-lock.json')) as {
      version: string;
      packages: { '': { version: string } };
    };
    t.same([lock.version, lock.packages[''].version], [now, now]);
    t.match(JSON.parse(read(at, 'package.json')), { version: now });
    t.match(read(at, 'src/version.ts'), `export const version = '${now}';`, '--version and the metric');
    t.match(read(at, 'helm/sallyport/Chart.yaml'), `version: ${now}\nappVersion: ${now}`);
    t.match(read(at, 'Dockerfile'), `ARG VERSION=${now}\n`);
    t.match(read(at, 'helm/manifests/orders.yaml'), `image: sallyport:${now}\n`);
    t.equal(run('git', 'grep', '--fixed-strings', '-e', dev, at).output, '', `nothing of ${at} calls itself ${dev}`);
  }
  const section = '## 0.2.0\n\n2026-01-31\n\n- **Something** new.\n\n## 0.1.0\n';
  t.match(read('v0.2.0', 'CHANGELOG.md'), `# Changelog\n\n${section}`);
  t.match(read('HEAD', 'CHANGELOG.md'), `# Changelog\n\n## 0.3.0-dev (unreleased)\n\n${section}`);
  t.equal(run('git', 'tag', '--list').output.trim(), 'v0.2.0');
  t.equal(run('git', 'status', '--porcelain').output, '', 'everything is committed');
  t.match(release('0.2.1'), { code: 1, output: 'CHANGELOG.md says nothing under "## 0.3.0-dev (unreleased)"' });
  writeFileSync(
    join(dir, 'CHANGELOG.md'),
    read('HEAD', 'CHANGELOG.md').replace('(unreleased)\n', '(unreleased)\n\n- A repair.\n'),
  );
  run('git', 'commit', '--all', '--quiet', '--message', 'a repair');
  t.match(release('0.2.1', '--check'), { code: 0, output: /^0\.3\.0-dev → 0\.2\.1: / });
});

t.test('what stands in the way is named, and nothing is changed', async (t) => {
  const { dir, run, release } = tree(t);
  t.match(release(), { code: 1, output: /say which version/ });
  t.match(release('1.2'), { code: 1, output: /say which version/ });
  t.match(release('0.1.2'), { code: 1, output: /0\.1\.2 does not follow 0\.1\.0: 0\.1\.1, 0\.2\.0, 1\.0\.0 would/ });
  run('git', 'tag', 'v0.2.0');
  t.match(release('0.2.0'), { code: 1, output: /the tag v0\.2\.0 exists/ });
  run('npm', 'pkg', 'delete', 'repository');
  run('git', 'commit', '--all', '--quiet', '--message', 'nowhere');
  t.match(release('0.2.0'), { code: 1, output: /package\.json has no repository\.url/ });
  const manifest = readFileSync(join(dir, 'package.json'), 'utf8');
  writeFileSync(join(dir, 'package.json'), manifest.replace(dev, '0.2.0'));
  t.match(release('0.2.0'), { code: 1, output: /the version 0\.2\.0, which does not end in -dev[^]*not committed/ });
});

t.test('the changelog tells what is released from what is not', async (t) => {
  const [, newest = ''] = /^## (.*\n\n.*)$/m.exec(readFileSync(join(projectDir, 'CHANGELOG.md'), 'utf8')) ?? [];
  if (version.endsWith('-dev')) t.ok(newest.startsWith(`${version} (unreleased)\n`), newest);
  else t.match(newest, new RegExp(`^${version.replaceAll('.', '\\.')}\n\n\\d{4}-\\d\\d-\\d\\d$`));
});
