/**
 * What code, tests and pages cite is something that a reader can open: a page and a section or heading of it, a
 * decision, an RFC.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { projectFiles, readProjectFile } from '../support/source-files.js';
import { tableOf } from './pages.js';

/** Pages with numbers, and the numbers that they have. */
const numbered: Readonly<Record<string, () => ReadonlySet<string>>> = {
  'docs/contract.md': () =>
    new Set(
      [...readProjectFile('docs/contract.md').matchAll(/^#{2,3} (\d(?:\.\d)?)\.? /gm)].map(([, number = '']) => number),
    ),
  // Parts of a section have rows of their own, the section has none then.
  'docs/specification.md': () =>
    new Set(
      tableOf('docs/specification.md', 'specification')
        .flatMap(([section = '']) => section.split(/, | to /))
        .flatMap((section) => section.split('.').map((_, index, parts) => parts.slice(0, index + 1).join('.'))),
    ),
  'docs/security-requirements.md': () =>
    new Set([
      ...[...readProjectFile('docs/security-requirements.md').matchAll(/^### (R-\d\d)$/gm)].map(([, id = '']) => id),
      ...tableOf('docs/security-requirements.md', 'findings').map(([id = '']) => id),
    ]),
};
const known = new Map(Object.entries(numbered).map(([page, numbers]) => [page, numbers()]));

/**
 * A page, and numbers or headings in a row behind it: `docs/contract.md 3.4 to 3.6 and 4`, `docs/storage.md
 * "Fail-over"`.
 */
const citation =
  /docs\/([\w/-]+\.md)((?:(?:,| and| to)? (?:\d+(?:\.\d+)*(?![\w%])|R-\d\d|F\d{1,2}(?!\w)|\\?"[^"\n\\]+\\?"))*)/g;
/** What else stands there as a path of `docs`. */
const otherPath = /(?<![\w./-])docs\/\w[\w./-]*(?<=\w)/g;
/** A requirement that is linked: `[R-40](../docs/security-requirements.md#r-40)`. */
const linked = /\[(R-\d\d)\]\([^)#]*(?:security-requirements\.md)?#(r-\d\d)\)/g;

/** Forms of citations that name nothing that stands here. Looked for in what is left without the citations above. */
const old: readonly (readonly [string, RegExp])[] = [
  ['a contract without its page', /\b[Cc]ontract,? (?:sections? )?\d/],
  ['a requirement without its page', /(?<![\w-])R-\d\d(?!\d)/],
  ['a finding without its page', /(?<=['"`(])F\d{1,2}[,:] /],
  ['a section without its document', /(?<!RFC \d{3,5},? )\b[Ss]ections? \d/],
  ['a specification without its page', /\b[Ss]pec(?:ification)?,? (?:sections? )?\d/],
  [
    'a note of design',
    /\b(?:REPLAY|ENGINE|PEERS|FAULTS|SECURITY (?:R-|\d)|(?:CONTRACT|DESIGN|HOUSE|FIELD|FIRST-HOUR)\.md)(?!\w)/,
  ],
  ['a property without its page', /\bpropert(?:y|ies) \d/],
  ['an issue by its number', /\b[Ii]ssue #?\d/],
];

/** Pages whose own numbers they are, and files with made-up citations. */
const own = new Set([
  'docs/contract.md',
  'docs/security-requirements.md',
  'test/docs/citations.test.ts',
  'test/docs/security-requirements.test.ts',
  'test/check/changed.test.ts',
]);

interface Found {
  readonly problems: readonly string[];
  /** How many citations were followed. */
  readonly followed: number;
}

/** What is wrong with the citations of a text. */
function follow(path: string, whole: string): Found {
  // A comment may be broken anywhere.
  const text = whole.replace(/\n\s*(?:\*(?!\/)|\/\/|#)? ?/g, ' ');
  const problems: string[] = [];
  let followed = 0;
  for (const [, page = '', items = ''] of text.matchAll(citation)) {
    followed += 1;
    problems.push(...wrongItems(`docs/${page}`, items));
  }
  for (const [, number = ''] of text.matchAll(/\bADR (\d{1,4})\b/g)) {
    followed += 1;
    if (!decisions.some((name) => name.startsWith(`${number.padStart(4, '0')}-`))) {
      problems.push(`ADR ${number} is not there`);
    }
  }
  for (const [, rfc = '', section = ''] of text.matchAll(/\bRFC (\d+),? (?:§|sections? )(\S*)/g)) {
    followed += 1;
    if (!/^(?:\d+|[A-Z])(?:\.\d+)*(?![\w§])/.test(section)) problems.push(`RFC ${rfc} §${section} is no section`);
  }
  for (const [, id = '', anchor = ''] of text.matchAll(linked)) {
    followed += 1;
    if (id.toLowerCase() !== anchor || !isKnown('docs/security-requirements.md', id)) {
      problems.push(`${id} leads to #${anchor}`);
    }
  }
  const left = text.replace(linked, '').replace(citation, '');
  for (const [other] of left.matchAll(otherPath)) {
    followed += 1;
    if (!existsSync(join(projectDir, other))) problems.push(`${other} is not there`);
  }
  for (const [what, form] of old) {
    const match = form.exec(left);
    if (match !== null) problems.push(`${what}: ${left.slice(Math.max(0, match.index - 20), match.index + 40)}`);
  }
  return { problems: problems.map((problem) => `${path}: ${problem}`), followed };
}

const decisions = projectFiles('docs/adr').map((path) => path.slice(path.lastIndexOf('/') + 1));

function wrongItems(page: string, items: string): readonly string[] {
  if (!existsSync(join(projectDir, page))) return [`${page} is not there`];
  const headings = new Set([...readProjectFile(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading));
  return [...items.matchAll(/\\?"([^"\\]+)\\?"|R-\d\d|F\d{1,2}|\d+(?:\.\d+)*/g)].flatMap(([item, heading]) => {
    if (heading !== undefined) return headings.has(heading) ? [] : [`${page} has no heading ‘${heading}’`];
    return isKnown(page, item) ? [] : [`${page} has no ${item}`];
  });
}

function isKnown(page: string, number: string): boolean {
  return known.get(page)?.has(number) === true;
}

t.test('every citation leads somewhere, and none has a form that leads nowhere', (t) => {
  const files = ['src', 'test', 'docs', 'helm']
    .flatMap((folder) => projectFiles(folder))
    .filter((path) => /\.(?:ts|mjs|md|json|ya?ml|tpl)$/.test(path) && !own.has(path));
  const found = [...files, 'README.md', 'CONTRIBUTING.md', 'config.example.yaml'].map((path) =>
    follow(path, readProjectFile(path)),
  );
  t.same(
    found.flatMap(({ problems }) => problems),
    [],
  );
  const followed = found.reduce((sum, one) => sum + one.followed, 0);
  t.ok(followed > 300, `${followed} citations`);
  t.end();
});

t.test('pages with numbers of their own cite what there is', (t) => {
  for (const page of ['docs/contract.md', 'docs/security-requirements.md']) {
    const text = readProjectFile(page);
    for (const [, id = '', anchor = ''] of text.matchAll(linked)) {
      t.equal(id.toLowerCase(), anchor, `${page}: ${id}`);
      t.ok(isKnown('docs/security-requirements.md', id), `${page}: ${id}`);
    }
    for (const [, cited = '', items = ''] of text.matchAll(citation)) {
      t.same(wrongItems(`docs/${cited}`, items), [], page);
    }
  }
  t.end();
});

t.test('citations that are good', (t) => {
  for (const text of [
    'docs/contract.md 3.5, docs/security-requirements.md R-20: a token has one spelling',
    '/**\n * See docs/contract.md 3.4 to\n * 3.6 and 4.\n */',
    'docs/specification.md 5.2 and 5.2.4',
    'docs/storage.md "Fail-over"',
    'docs/storage.md "Keys and values", "States of a write"',
    'docs/security-requirements.md R-10, R-11 and F4',
    '([R-40](../docs/security-requirements.md#r-40))',
    'ADR 6',
    'ADR 0010',
    'RFC 9110 §7.6.1',
    'RFC 6749 section 3.3',
    'RFC 7517',
    'RFC 9112 §2.2: one',
    'docs/operations.md says so',
    "'docs/status.schema.json', docs/examples/compose and docs/adr. docs/*.md",
  ]) {
    t.same(follow('made', text).problems, [], text);
  }
  t.end();
});

t.test('citations that are made up, or of an old form, are found', (t) => {
  for (const [text, problem] of [
    ['docs/contract.md 3.17', 'docs/contract.md has no 3.17'],
    ['docs/contract.md 3.5 and\n * 12', 'docs/contract.md has no 12'],
    ['docs/specification.md 5.2.99', 'docs/specification.md has no 5.2.99'],
    ['docs/security-requirements.md R-10, R-99', 'docs/security-requirements.md has no R-99'],
    ['docs/storage.md "No such heading"', 'docs/storage.md has no heading ‘No such heading’'],
    ['see docs/none.md', 'docs/none.md is not there'],
    ['docs/adr/0026 has it', 'docs/adr/0026 is not there'],
    ['`docs/none/`, docs/storage.md', 'docs/none is not there'],
    ['[R-99](../docs/security-requirements.md#r-99)', 'R-99 leads to #r-99'],
    ['[R-40](../docs/security-requirements.md#r-41)', 'R-40 leads to #r-41'],
    ['ADR 999', 'ADR 999 is not there'],
    ['RFC 9110 §', 'RFC 9110 § is no section'],
    ['RFC 9110 §x.1', 'RFC 9110 §x.1 is no section'],
    ['property 8: fences grow', 'a property without its page: property 8: fences grow'],
    ['contract 3.5: so it is', 'a contract without its page: contract 3.5: so it is'],
    ['the contract, sections 3 and 4', 'a contract without its page: the contract, sections 3 and 4'],
    ['(R-10)', 'a requirement without its page: (R-10)'],
    ["'F6, so it is'", "a finding without its page: 'F6, so it is'"],
    ['as section 2.4 says', 'a section without its document: as section 2.4 says'],
    ['spec 4.8: so', 'a specification without its page: spec 4.8: so'],
    ['REPLAY 4', 'a note of design: REPLAY 4'],
    ['ENGINE: so', 'a note of design: ENGINE: so'],
    ['issue 3', 'an issue by its number: issue 3'],
    ['Issue #4: so', 'an issue by its number: Issue #4: so'],
  ] as const) {
    t.same(
      follow('made', text).problems.filter((found) => found === `made: ${problem}`),
      [`made: ${problem}`],
      text,
    );
  }
  t.end();
});
