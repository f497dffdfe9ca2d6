/** test/README.md: the files that it names are there, and so are the tests that it names of them. */
import { basename } from 'node:path';
import t from 'tap';
import { projectFiles, readProjectFile } from '../support/source-files.js';
import { testsNamedIn, titlesOf } from './cited-tests.js';

const text = readProjectFile('test/README.md');
const files = new Set(projectFiles());
const names = new Set([...files].filter((path) => path.startsWith('test/')).map((path) => basename(path)));

/** From the project's folder; `null` where there is no such file. A name without a folder is that of any test file. */
function pathOf(named: string): string | null {
  if (!named.includes('/')) return names.has(named) ? named : null;
  return [named, `test/${named}`].find((path) => files.has(path)) ?? null;
}

t.test('every file that is named is there', (t) => {
  const named = [...text.matchAll(/(?<![\w./*-])\w[\w./-]*\.(?:ts|mjs|json)(?![\w-])/g)].map(([path]) => path);
  t.ok(named.length > 90, `${String(named.length)} names`);
  t.same(
    named.filter((path) => pathOf(path) === null),
    [],
  );
  t.end();
});

t.test('every test that is named for a guard of reservations is there', (t) => {
  const [, guards = ''] = /^## Guards of reservations$([^]*?)^## /m.exec(text) ?? [];
  const cited = testsNamedIn(guards);
  t.ok(cited.length >= 14, `${String(cited.length)} tests`);
  for (const { path, title } of cited) {
    // A title may be named by its beginning.
    const isThere = title.startsWith('guard ')
      ? readProjectFile(`test/${path}`).includes(`${title}: `)
      : [...titlesOf(`test/${path}`)].some((each) => each.startsWith(title));
    t.ok(isThere, `${path}: ${title}`);
  }
  t.end();
});

t.test('what is named falsely is found', (t) => {
  t.equal(pathOf('test/none.test.ts'), null);
  t.equal(pathOf('none.test.ts'), null);
  t.same(testsNamedIn('| a; b | `proxy/a.test.ts`, `proxy/b.test.ts`: one; two; `proxy/c.test.ts` |\n'), [
    { path: 'proxy/b.test.ts', title: 'one' },
    { path: 'proxy/b.test.ts', title: 'two' },
  ]);
  t.end();
});
