/** Tests that a page names: `[claims](../test/decision/token/claims.test.ts): its title`. */
import { basename, dirname } from 'node:path';
import { projectFiles, readProjectFile } from '../support/source-files.js';

export interface CitedTest {
  readonly path: string;
  readonly title: string;
}

/** The tests that a cell names, or a line of a list. */
export function citedTests(cell: string): readonly CitedTest[] {
  const found = cell.split('<br>').flatMap((part) => {
    const whole = /^\[[^\]]+\]\(\.\.\/(test\/[^)]+)\): (.*)$/.exec(part);
    return whole === null ? [...part.matchAll(/\(\[[^\]]+\]\(\.\.\/(test\/[^)]+)\): ([^()]*)\)/g)] : [whole];
  });
  return found.map(([, path = '', title = '']) => ({ path, title: title.replace(/\\([*_|])/g, '$1') }));
}

/** The tests that tables name by a path from `test/`: `proxy/a.test.ts`: its title; another title of it. */
export function testsNamedIn(text: string): readonly CitedTest[] {
  return [...text.matchAll(/^\|.*/gm)].flatMap(([row]) =>
    [...row.matchAll(/`([\w./-]+\.ts)`: ([^|`]+)/g)].flatMap(([, path = '', titles = '']) =>
      titles
        .split('; ')
        .map((title) => title.replace(/;? *$/, ''))
        .filter((title) => title !== '')
        .map((title) => ({ path, title })),
    ),
  );
}

/** Titles of the tests of a file, as they are written, and names of the rows of its tables. */
export function titlesOf(path: string): ReadonlySet<string> {
  const found = readProjectFile(path).matchAll(
    /(?:\btest\(\s*|\b(?:name|title): )(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g,
  );
  return new Set(
    [...found].map(([, single, double, template]) =>
      plainTitle((single ?? double ?? template ?? '').replace(/\\(.)/g, '$1')),
    ),
  );
}

/**
 * Whether the tests of a file run: those of a file that is no `.test.ts` are run by one beside it, which imports it.
 */
export function isRun(path: string): boolean {
  if (path.endsWith('.test.ts')) return true;
  const imported = `'./${basename(path, '.ts')}.js'`;
  return projectFiles(dirname(path)).some(
    (other) => other.endsWith('.test.ts') && readProjectFile(other).includes(imported),
  );
}

/** Names of guards in front of a title are for those who take them out. */
function plainTitle(title: string): string {
  return title.replace(/^guard [^:]*: /, '');
}
