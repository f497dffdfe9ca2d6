/**
 * Makes a release: one version for package, image and chart, the changelog's section, a commit and a tag; then a commit
 * that begins the next `-dev` version, so that no later tree calls itself a release. Pushes nothing and needs no
 * secret.
 *
 *   node .release/release.mjs VERSION [--check] [--date YYYY-MM-DD]
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { values: options, positionals } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    date: { type: 'string', default: new Date().toISOString().slice(0, 10) },
  },
  allowPositionals: true,
});
const [next = ''] = positionals;
const changelogFile = 'CHANGELOG.md';
const { version: current, repository } = JSON.parse(readFileSync('package.json', 'utf8'));
const changelog = readFileSync(changelogFile, 'utf8');
const [, last = '0.0.0'] = /^## (\d+\.\d+\.\d+)$/m.exec(changelog) ?? [];
const unreleased = unreleasedHeading(current);

/** What stands in the way, in words. */
function obstacles() {
  if (!/^\d+\.\d+\.\d+$/.test(next)) return ['say which version: node .release/release.mjs 1.2.3'];
  const found = [];
  if (!current.endsWith('-dev')) found.push(`package.json has the version ${current}, which does not end in -dev`);
  if (!followers(last).includes(next)) {
    found.push(`${next} does not follow ${last}: ${followers(last).join(', ')} would`);
  }
  if (!/^https:/.test(repository?.url ?? '')) {
    found.push('package.json has no repository.url: nobody could tell where the release comes from');
  }
  if (git('status', '--porcelain', '--untracked-files=no') !== '') {
    found.push('there are changes that are not committed');
  }
  if (git('tag', '--list', `v${next}`) !== '') found.push(`the tag v${next} exists`);
  const [, section = ''] = changelog.split(unreleased);
  if (/^\s*(?:## |$)/.test(section)) found.push(`${changelogFile} says nothing under "${unreleased.trim()}"`);
  return found;
}

function followers(version) {
  const [major, minor, patch] = version.split('.').map(Number);
  return [`${major}.${minor}.${patch + 1}`, `${major}.${minor + 1}.0`, `${major + 1}.0.0`];
}

function unreleasedHeading(version) {
  return `## ${version} (unreleased)\n`;
}

/** Writes a version to every place that has the current one, and commits that. */
function commit(message, version, heading) {
  for (const [file, text] of before) writeFileSync(file, text.replaceAll(current, version));
  writeFileSync(
    changelogFile,
    changelog.replace(unreleased, () => heading),
  );
  git('add', changelogFile, ...before.keys());
  git('commit', '--quiet', '--message', message);
}

function git(...args) {
  const { status, stdout, stderr } = spawnSync('git', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args[0]}: ${stderr}`);
  return stdout.trim();
}

const found = obstacles();
// Whatever has the version: package, lock file, chart, Dockerfile, docs. No other package's version ends in our `-dev`.
const before =
  found.length > 0
    ? new Map()
    : new Map(
        git('grep', '--files-with-matches', '--fixed-strings', '-e', current)
          .split('\n')
          .filter((file) => file !== changelogFile)
          .map((file) => [file, readFileSync(file, 'utf8')]),
      );
if (found.length > 0) {
  process.stderr.write(found.map((one) => `${one}\n`).join(''));
  process.exitCode = 1;
} else if (options.check) {
  process.stdout.write(`${current} → ${next}: ${[...before.keys(), changelogFile].join(', ')}; tag v${next}\n`);
} else {
  const [, minor] = followers(next);
  const released = `## ${next}\n\n${options.date}\n`;
  commit(`Release ${next}`, next, released);
  git('tag', '--annotate', `v${next}`, '--message', `Sallyport ${next}`);
  commit(`Begin ${minor}-dev`, `${minor}-dev`, `${unreleasedHeading(`${minor}-dev`)}\n${released}`);
  process.stdout.write(
    `committed and tagged v${next}, and began ${minor}-dev; docs/releasing.md says what comes next\n`,
  );
}
