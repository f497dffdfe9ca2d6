/** docs/adr: each page has the one form of ADR 1, what was replaced says by what, and the index has them all. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { readProjectFile } from '../support/source-files.js';

const folder = 'docs/adr';
const parts = ['Context', 'Choice', 'Rejected', 'Consequences'];

interface Page {
  readonly file: string;
  readonly number: number;
  readonly title: string;
  readonly text: string;
  /** By which page it was replaced; `null` where it is in force. */
  readonly replacedBy: number | null;
  /** Whether a part of it is still in force. */
  readonly isPartly: boolean;
}

const names = readdirSync(join(projectDir, folder))
  .filter((name) => name !== 'README.md')
  .sort();
const adrs = names.map(readAdr);

t.test('pages are numbered from 1 without a gap, in their names and titles', (t) => {
  t.ok(adrs.length >= 18);
  for (const [index, { file, number }] of adrs.entries()) {
    t.match(file, /^\d{4}-[a-z0-9-]+\.md$/);
    t.equal(Number(file.slice(0, 4)), index + 1, file);
    t.equal(number, index + 1, file);
  }
  t.end();
});

t.test('each has the four parts in their order, none empty, and no other', (t) => {
  for (const { file, text } of adrs) {
    t.same(
      [...text.matchAll(/^## (.*)$/gm)].map(([, name]) => name),
      parts,
      file,
    );
    for (const part of text.split(/^## .*$/m).slice(1)) t.ok(part.trim().length > 40, file);
    t.match(text.split('## Rejected')[1]?.split('## Consequences')[0], /^- \*.+\*/m, `${file} says what was rejected`);
  }
  t.end();
});

t.test('what is replaced and what replaces it name each other', (t) => {
  for (const { file, number, replacedBy } of adrs) {
    if (replacedBy === null) continue;
    const successor = adrs.find((page) => page.number === replacedBy);
    t.ok(replacedBy > number, file);
    t.match(
      successor?.text,
      new RegExp(`\n\nReplaces \\[${String(number)}\\]\\(${file.replace('.', '\\.')}\\)[^\n]*\\.\n`),
      `${file} and its successor`,
    );
  }
  for (const { file, number, text } of adrs) {
    for (const [, replaced] of text.matchAll(/^Replaces \[(\d+)\]/gm)) {
      t.equal(
        adrs.find((page) => page.number === Number(replaced))?.replacedBy,
        number,
        `${file} replaces ${String(replaced)}`,
      );
    }
  }
  t.end();
});

t.test('docs/adr/README.md has a row for each, with its title and whether it is in force', (t) => {
  const rows = [...readProjectFile(`${folder}/README.md`).matchAll(/^\| (\d+) \| \[(.+)\]\((\S+)\) \| (.*) \|$/gm)].map(
    ([, number, title, file, state]) => ({ number: Number(number), title, file, state }),
  );
  const stateOf = ({ replacedBy, isPartly }: Page): string => {
    if (replacedBy === null) return 'in force';
    return isPartly ? `in part replaced by ${String(replacedBy)}` : `replaced by ${String(replacedBy)}`;
  };
  t.same(
    rows,
    adrs.map((page) => ({ number: page.number, title: page.title, file: page.file, state: stateOf(page) })),
  );
  t.end();
});

t.test('what they cite is there: links, and tests and files by their path', (t) => {
  for (const { file, text } of [...adrs, { file: 'README.md', text: readProjectFile(`${folder}/README.md`) }]) {
    for (const [, link = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (!link.startsWith('https:')) {
        t.ok(existsSync(join(projectDir, folder, link.split('#')[0] ?? '')), `${file}: ${link}`);
      }
    }
    for (const [, path = ''] of text.matchAll(/`((?:src|test|docs)\/[\w./-]+)`/g)) {
      t.ok(existsSync(join(projectDir, path)), `${file}: ${path}`);
    }
  }
  t.end();
});

function readAdr(file: string): Page {
  const text = readProjectFile(`${folder}/${file}`);
  const [, number, title = ''] = /^# (\d+)\. (.+)\n/.exec(text) ?? [];
  const [, by, rest = ''] = /^# .+\n\nReplaced by \[(\d+)\]\(\d{4}-[a-z0-9-]+\.md\)([^\n]*)\.\n\n/.exec(text) ?? [];
  return {
    file,
    number: Number(number),
    title,
    text,
    replacedBy: by === undefined ? null : Number(by),
    isPartly: rest !== '',
  };
}
