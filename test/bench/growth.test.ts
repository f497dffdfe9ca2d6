/** The measurement of growth still works: few tokens, few routes, a fraction of a second. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { writePart } from './docs-part.js';
import { growthTable, measureGrowth } from './growth.js';

t.test(
  'rows are compared with the first of their kind, and say which share of the tokens was remembered',
  async (t) => {
    const printed: string[] = [];
    const measured = await measureGrowth(t, {
      dir: tempDir(t),
      tokens: [1, 30],
      heldTokens: [],
      routes: [5],
      seconds: 0.2,
      rounds: 1,
      connections: 2,
      wrk: false,
      onRun: (text) => printed.push(text),
    });
    t.match(
      measured.map(({ entrants }) => entrants.map(({ name, hitShare }) => [name, hitShare])),
      [
        [
          ['1', 1],
          ['30', 1],
        ],
        [['5', 1]],
      ],
      printed.join('\n'),
    );
    t.same(
      measured.map(({ entrants }) => entrants[0]?.ratio),
      [1, 1],
    );
    t.match(
      growthTable(measured),
      /^\| growing \|.*\n.*\n\| distinct tokens, `token_cache: 32MiB` \| 1 \| 100 % \| \d+\.\d \| 1\.00 \|.*\n\| {2}\| 30 \|/,
    );
  },
);

t.test('a part is put in its place on a page, and the rest stays', (t) => {
  const dir = join(tempDir(t), 'docs');
  mkdirSync(dir);
  const [begin, end] = ['before\n<!-- bench: a -->\n', '<!-- end of bench: a -->\nafter\n'];
  writeFileSync(join(dir, 'page.md'), `${begin}old\n${end}`);
  writePart(dir, 'page.md', 'a', '| new |\n');
  t.equal(readFileSync(join(dir, 'page.md'), 'utf8'), `${begin}\n| new |\n\n${end}`);
  writePart(dir, 'page.md', 'a', '| newer |');
  t.equal(readFileSync(join(dir, 'page.md'), 'utf8'), `${begin}\n| newer |\n\n${end}`);
  t.throws(() => writePart(dir, 'page.md', 'b', ''), /page\.md has no place for b/);
  t.end();
});

t.test('docs/performance.md has what is measured for it', (t) => {
  const page = readFileSync(join(projectDir, 'docs/performance.md'), 'utf8');
  for (const name of ['all', 'growth', 'primaries', 'soak']) {
    const [, part = ''] =
      new RegExp(`<!-- bench: ${name} -->\\n\\n([^]*)\\n<!-- end of bench: ${name} -->`).exec(page) ?? [];
    t.match(part, /^\|(?: -{3}:? \|){2,}$/m, name);
  }
  t.end();
});
