import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';

/** Licences that ask for no more than their text and a name. */
const allowed = ['MIT', 'MIT-0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '(MIT AND Zlib)'];

const read = (path: string): string => readFileSync(join(projectDir, path), 'utf8');

/** Rows of the table without its head. */
const rows = read('docs/licences.md')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(2)
  .map((line) => line.split('|').map((cell) => cell.trim()));

t.test('docs/licences.md is what the lock file says', (t) => {
  const { status, stderr } = spawnSync(process.execPath, ['test/check/licences.mjs', '--check'], {
    cwd: projectDir,
    encoding: 'utf8',
  });
  t.equal(status, 0, stderr);
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Readonly<Record<string, string>> };
  for (const [name, version] of Object.entries(dependencies)) {
    t.ok(
      rows.some((row) => row[1] === name && row[2] === version),
      `${name} ${version}`,
    );
  }
  t.end();
});

t.test('every package that is deployed has a licence of the list, and runs nothing when it is installed', (t) => {
  t.ok(rows.length > 50);
  t.same(
    rows.filter((row) => !allowed.includes(row[3] ?? '')),
    [],
  );
  t.same(
    rows.filter((row) => row[4] !== 'no'),
    [],
  );
  t.end();
});

t.test('versions that SECURITY.md calls the least are kept to', (t) => {
  const least = [...read('SECURITY.md').matchAll(/([@a-z/-]+) (\d+)\.(\d+)\.(\d+)/g)];
  t.ok(least.length > 3);
  for (const [, name = '', ...numbers] of least) {
    const versions = rows.filter((row) => row[1] === name).map((row) => row[2] ?? '');
    t.not(versions.length, 0, name);
    for (const version of versions) {
      t.ok(compare(version.split('.').map(Number), numbers.map(Number)) >= 0, `${name} ${version}`);
    }
  }
  t.end();
});

function compare(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((number, index) => number !== other[index]);
  return at < 0 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
}
