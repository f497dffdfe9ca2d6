/** docs/specification.md: every statement has a row, and every file and test that a row names is there. */
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { citedTests, isRun, titlesOf } from './cited-tests.js';
import { tableOf } from './pages.js';

const page = 'docs/specification.md';
const rows = tableOf(page, 'specification');

/** Its numbered statements and tables. */
const sections: readonly string[] = [
  ...numbered('1', 6),
  ...numbered('2', 5),
  '3',
  '4',
  ...numbered('4', 9),
  ...numbered('5.1', 3),
  ...numbered('5.2', 9),
  ...numbered('5.3', 4),
  '5.4',
  '6',
  '7',
  '8',
  '9',
  ...numbered('9', 3),
];

function numbered(section: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${section}.${String(index + 1)}`);
}

t.test('each statement of the specification has a row', (t) => {
  const named = new Set(rows.flatMap(([section = '']) => section.split(/, | to /)));
  t.same(
    sections.filter((section) => !named.has(section)),
    [],
  );
  t.same(
    [...named].filter((section) => !sections.includes(section)),
    [],
    'and no row is about a section that there is not',
  );
  t.end();
});

t.test('each row says where the statement is kept, and names a test or a page that shows it', (t) => {
  for (const [section = '', statement = '', kept = '', shown = ''] of rows) {
    const name = `${section}: ${statement}`;
    t.not(statement, '', name);
    t.match(kept, /\]\(/, name);
    t.ok(citedTests(shown).length > 0 || /\]\([\w-]+\.md(?:#[\w-]+)?\)/.test(shown), name);
  }
  t.end();
});

t.test('the files that are named are there, and the tests have the titles that are named', (t) => {
  let seen = 0;
  for (const [section = '', , kept = '', shown = '', otherwise = ''] of rows) {
    for (const [, link = ''] of `${kept}${shown}${otherwise}`.matchAll(/\]\(([^)#]+)[^)]*\)/g)) {
      t.ok(existsSync(resolve(join(projectDir, dirname(page)), link)), `${section}: ${link}`);
    }
    const citations = [...citedTests(shown), ...citedTests(otherwise)];
    t.equal(
      citations.length,
      `${shown}${otherwise}`.split('](../test/').length - 1,
      `${section}: every test is named with its title: ${shown}`,
    );
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
  const [wrong] = citedTests('[claims](../test/decision/token/claims.test.ts): no such test');
  t.same(wrong, { path: 'test/decision/token/claims.test.ts', title: 'no such test' });
  t.notOk(titlesOf('test/decision/token/claims.test.ts').has('no such test'));
  t.ok(titlesOf('test/decision/token/claims.test.ts').has('expiry, to the millisecond'));
  t.end();
});
