/**
 * Makes a release: one version for package, image and chart, the changelog's section, a commit and a tag. Pushes nothing and needs no secret.
 *
 *   node .release/release.mjs VERSION [--check] [--date YYYY-MM-DD]
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { values: options, positionals } = parseArgs({
  options: { check: { type: 'boolean', default: false }, date: { type: 'string', default: new Date().toISOString().slice(0, 10) } }, allowPositionals: true,
});
const [next = ''] = positionals;
const current = JSON.parse(readFileSync('package.json', 'utf8')).version;

/** What stands in the way, in words. */
function obstacles() {
  const found = [];
  if (!/^\d+\.\d+\.\d+$/.test(next)) return ['say which version: node .release/release.mjs 1.2.3'];
  if (!followers(current).includes(next)) found.push(`${next} does not follow ${current}: ${followers(current).join(', ')} would`);
  if (git('status', '--porcelain', '--untracked-files=no') !== '') found.push('there are changes that are not committed');
  if (git('tag', '--list', `v${next}`) !== '') found.push(`the tag v${next} exists`);
  if (!/^## Unreleased\n+[^#\s]/m.test(readFileSync('CHANGELOG.md', 'utf8'))) found.push('CHANGELOG.md says nothing under Unreleased');
  return found;
}

function followers(version) {
  const [major, minor, patch] = version.split('.').map(Number);
  return [`${major}.${minor}.${patch + 1}`, `${major}.${minor + 1}.0`, `${major + 1}.0.0`];
}

/** Every place that has the version, and how it is written there. */
const places = [
  { file: 'package.json', from: `"version": "${current}"`, to: `"version": "${next}"` },
  { file: 'package-lock.json', from: `"version": "${current}"`, to: `"version": "${next}"`, times: 2 },
  { file: 'helm/sallyport/Chart.yaml', from: `version: ${current}\nappVersion: ${current}`, to: `version: ${next}\nappVersion: ${next}` },
  { file: 'Dockerfile', from: `ARG VERSION=${current}`, to: `ARG VERSION=${next}` },
  { file: 'CHANGELOG.md', from: '## Unreleased\n', to: `## Unreleased\n\n## ${next}\n\n${options.date}\n` },
];

function rewrite({ file, from, to, times = 1 }) {
  let text = readFileSync(file, 'utf8');
  for (let i = 0; i < times; i++) {
    if (!text.includes(from)) throw new Error(`${file} has no ${JSON.stringify(from)}`);
    text = text.replace(from, () => to);
  }
  writeFileSync(file, text);
}

function git(...args) {
  const { status, stdout, stderr } = spawnSync('git', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args[0]}: ${stderr}`);
  return stdout.trim();
}

const found = obstacles();
if (found.length > 0) {
  process.stderr.write(found.map((one) => `${one}\n`).join(''));
  process.exitCode = 1;
} else if (options.check) {
  process.stdout.write(`${current} → ${next}: ${places.map(({ file }) => file).join(', ')}; tag v${next}\n`);
} else {
  for (const place of places) rewrite(place);
  git('add', ...places.map(({ file }) => file));
  git('commit', '--quiet', '--message', `Release ${next}`);
  git('tag', '--annotate', `v${next}`, '--message', `Sallyport ${next}`);
  process.stdout.write(`committed and tagged v${next}; docs/releasing.md says what comes next\n`);
}
