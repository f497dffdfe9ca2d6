/** docs/specification.md: every statement has a row, and every file and test that a row names is there. */
import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { projectFiles, readProjectFile } from '../support/source-files.js';
import { tableOf } from './pages.js';

const page = 'docs/specification.md';
const rows = tableOf(page, 'specification');

/** Its numbered statements and tables. */
const sections: readonly string[] = [
  ...numbered('1', 6), ...numbered('2', 5), '3', '4', ...numbered('4', 9), ...numbered('5.1', 3), ...numbered('5.2', 9), ...numbered('5.3', 4),
  '5.4', '6', '7', '8', '9', ...numbered('9', 3),
];

function numbered(section: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${section}.${String(index + 1)}`);
}

/** Numbers in front of a title, and behind it, are for those who write tests. */
function plainTitle(title: string): string {
  return title.replace(/^(?:contract|specification|spec|R-\d+|REPLAY|issue|property|guard)\b[^:]*: /, '').replace(/ \((?:R-|REPLAY)[^)]*\)/, '');
}

/** Titles of the tests of a file, as they are written. */
function titlesOf(path: string): ReadonlySet<string> {
  const found = readProjectFile(path).matchAll(/\btest\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g);
  return new Set([...found].map(([, single, double, template]) => plainTitle((single ?? double ?? template ?? '').replace(/\\(.)/g, '$1'))));
}

/** Whether the tests of a file run: those of a file that is no `.test.ts` are run by one beside it, which imports it. */
function isRun(path: string): boolean {
  if (path.endsWith('.test.ts')) return true;
  const imported = `'./${basename(path, '.ts')}.js'`;
  return projectFiles(dirname(path)).some((other) => other.endsWith('.test.ts') && readProjectFile(other).includes(imported));
}

interface Citation {
  readonly path: string;
  readonly title: string;
}

/** The tests that a cell names. */
function citationsIn(cell: string): readonly Citation[] {
  const found = cell.split('<br>').flatMap((part) => {
    const whole = /^\[[^\]]+\]\(\.\.\/(test\/[^)]+)\): (.*)$/.exec(part);
    return whole === null ? [...part.matchAll(/\(\[[^\]]+\]\(\.\.\/(test\/[^)]+)\): ([^()]*)\)/g)] : [whole];
  });
  return found.map(([, path = '', title = '']) => ({ path, title: title.replace(/\\([*_|])/g, '$1') }));
}

t.test('each statement of the specification has a row', (t) => {
  const named = new Set(rows.flatMap(([section = '']) => section.split(/, | to /)));
  t.same(sections.filter((section) => !named.has(section)), []);
  t.same([...named].filter((section) => !sections.includes(section)), [], 'and no row is about a section that there is not');
  t.end();
});

t.test('each row says where the statement is kept, and names a test or a page that shows it', (t) => {
  for (const [section = '', statement = '', kept = '', shown = ''] of rows) {
    const name = `${section}: ${statement}`;
    t.not(statement, '', name);
    t.match(kept, /\]\(/, name);
    t.ok(citationsIn(shown).length > 0 || /\]\([\w-]+\.md(?:#[\w-]+)?\)/.test(shown), name);
  }
  t.end();
});

t.test('the files that are named are there, and the tests have the titles that are named', (t) => {
  let seen = 0;
  for (const [section = '', , kept = '', shown = '', otherwise = ''] of rows) {
    for (const [, link = ''] of `${kept}${shown}${otherwise}`.matchAll(/\]\(([^)#]+)[^)]*\)/g)) {
      t.ok(existsSync(resolve(join(projectDir, dirname(page)), link)), `${section}: ${link}`);
    }
    const citations = [...citationsIn(shown), ...citationsIn(otherwise)];
    t.equal(citations.length, `${shown}${otherwise}`.split('](../test/').length - 1, `${section}: every test is named with its title: ${shown}`);
    for (const { path, title } of citations) {
      seen += 1;
      t.ok(isRun(path), `${section}: ${path} is run`);
      t.ok(titlesOf(path).has(title), `${section}: ${path}: ${title}`);
    }
  }
  t.ok(seen > 150, String(seen));
  t.end();
});

t.test('what is not there would be found', (t) => {
  const [wrong] = citationsIn('[claims](../test/decision/claims.test.ts): no such test');
  t.same(wrong, { path: 'test/decision/claims.test.ts', title: 'no such test' });
  t.notOk(titlesOf('test/decision/claims.test.ts').has('no such test'));
  t.ok(titlesOf('test/decision/claims.test.ts').has('expiry, to the millisecond'));
  t.end();
});
