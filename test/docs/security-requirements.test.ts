/**
 * docs/security-requirements.md: each requirement has a threat, a rule, files that keep it and tests that show it, and
 * all of them are there.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { readProjectFile } from '../support/source-files.js';
import { citedTests, isRun, titlesOf } from './cited-tests.js';
import { tableOf } from './pages.js';

const page = 'docs/security-requirements.md';
const text = readProjectFile(page);

interface Requirement {
  readonly id: string;
  readonly threat: string;
  readonly rule: string;
  readonly kept: string;
  /** Lines of a list. */
  readonly shown: readonly string[];
}

/** What each `### R-nn` of a page says. */
function requirementsOf(text: string): readonly Requirement[] {
  return text
    .split(/^### /m)
    .slice(1)
    .map((section) => {
      const [id = ''] = section.split('\n');
      const line = (name: string): string => new RegExp(`^- ${name}: (.+)$`, 'm').exec(section)?.[1] ?? '';
      return {
        id,
        threat: line('Threat'),
        rule: line('Rule'),
        kept: line('Kept in'),
        shown: [...section.matchAll(/^ {2}- (.+)$/gm)].map(([, shown = '']) => shown),
      };
    });
}

/** What a requirement lacks, and what it names that is not there. */
function problemsOf({ id, threat, rule, kept, shown }: Requirement): readonly string[] {
  const problems = [
    ...(threat === '' ? [`${id} has no threat`] : []),
    ...(rule === '' ? [`${id} has no rule`] : []),
    ...(kept.includes('](../src/') ? [] : [`${id} names no file that keeps it`]),
    ...(shown.length === 0 ? [`${id} names no test`] : []),
  ];
  for (const [, link = ''] of kept.matchAll(/\]\(([^)]+)\)/g)) {
    if (!existsSync(join(projectDir, 'docs', link))) problems.push(`${id}: ${link} is not there`);
  }
  return [...problems, ...shown.flatMap((line) => brokenTests(id, line))];
}

function brokenTests(id: string, line: string): readonly string[] {
  const cited = citedTests(line);
  if (cited.length === 0) return [`${id}: ${line} names no test with its title`];
  return cited.flatMap(({ path, title }) => {
    if (!existsSync(join(projectDir, path))) return [`${id}: ${path} is not there`];
    if (!isRun(path)) return [`${id}: ${path} is not run`];
    return titlesOf(path).has(title) ? [] : [`${id}: ${path} has no test ‘${title}’`];
  });
}

t.test('each requirement says what it is against, and what shows it', (t) => {
  const requirements = requirementsOf(text);
  t.same(requirements.flatMap(problemsOf), []);
  const ids = requirements.map(({ id }) => id);
  t.same(ids, ids.toSorted(), 'in order');
  t.equal(new Set(ids).size, ids.length, 'each number once');
  t.ok(ids.length >= 48 && ids.every((id) => /^R-\d\d$/.test(id)), ids.join(' '));
  t.ok(requirements.flatMap(({ shown }) => shown).length > 150);
  t.end();
});

t.test('each finding about the default stack is held by a requirement, and has a test', (t) => {
  const known = new Set(requirementsOf(text).map(({ id }) => id));
  const rows = tableOf(page, 'findings');
  t.same(
    rows.map(([id]) => id),
    Array.from({ length: 20 }, (_, index) => `F${index + 1}`),
  );
  for (const [id = '', , by = '', shown = ''] of rows) {
    for (const [requirement] of by.matchAll(/R-\d\d/g)) t.ok(known.has(requirement), `${id}: ${requirement}`);
    t.same(brokenTests(id, shown), []);
  }
  t.end();
});

t.test('the list at its head has each of them once', (t) => {
  const [head = ''] = text.split(/^## /m);
  t.same(
    [...head.matchAll(/\[(R-\d\d)\]\(#r-(\d\d)\)/g)].map(([, id]) => id),
    requirementsOf(text).map(({ id }) => id),
  );
  t.end();
});

t.test('what is not there would be found', (t) => {
  const [made] = requirementsOf(
    [
      '### R-99',
      '',
      '- Threat: one',
      '- Kept in: [none](../src/decision/none.ts)',
      '- Shown by:',
      '  - [none](../test/none.test.ts): no such file',
      '  - [contract](../test/docs/contract.test.ts): no such test',
      '  - some test',
    ].join('\n'),
  );
  t.same(made === undefined ? [] : problemsOf(made), [
    'R-99 has no rule',
    'R-99: ../src/decision/none.ts is not there',
    'R-99: test/none.test.ts is not there',
    'R-99: test/docs/contract.test.ts has no test ‘no such test’',
    'R-99: some test names no test with its title',
  ]);
  t.same(requirementsOf('### R-98').flatMap(problemsOf), [
    'R-98 has no threat',
    'R-98 has no rule',
    'R-98 names no file that keeps it',
    'R-98 names no test',
  ]);
  t.end();
});
