/** What tests read of a page: its tables. */
import { readProjectFile } from '../support/source-files.js';

/** The cells of the rows between two marks `<!-- name -->`, without the head of the table. */
export function tableOf(page: string, name: string): readonly (readonly string[])[] {
  const [, text] = new RegExp(`<!-- ${name} -->\\n([^]*?)<!-- /${name} -->`).exec(readProjectFile(page)) ?? [];
  if (text === undefined) throw new Error(`${page} has no table ${name}`);
  return rowsOf(text).slice(2);
}

/** The cells of the rows of the first table after a heading, without its head. */
export function tableBelow(page: string, heading: string): readonly (readonly string[])[] {
  const text = readProjectFile(page);
  const at = text.indexOf(`\n${heading}\n`);
  if (at < 0) throw new Error(`${page} has no ${heading}`);
  const table = /(?:^\|.*\n)+/m.exec(text.slice(at));
  return rowsOf(table?.[0] ?? '').slice(2);
}

/** Texts in backticks. */
export function codeSpans(text: string): readonly string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, content = '']) => content);
}

function rowsOf(text: string): readonly (readonly string[])[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}
