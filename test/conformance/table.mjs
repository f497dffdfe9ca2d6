/**
 * Holds the table of this folder's README to the tests, and the project's README to the table.
 *
 *   node test/conformance/table.mjs            writes the table into the project's README
 *   node test/conformance/table.mjs --check    only compares; exit code 1 where anything differs
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const folder = import.meta.dirname;
const project = join(folder, '../..');
const markers = ['<!-- conformance -->', '<!-- /conformance -->'];
const check = process.argv.includes('--check');

const rows = readRows(readFileSync(join(folder, 'README.md'), 'utf8'));
const problems = [...missingTests(rows), ...unnamedTests(rows), ...putIntoReadme(tableOf(rows))];
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

function readRows(text) {
  return text.split('\n').filter((line) => /^\| \d/.test(line)).map((line) => {
    const [section, says, file, test] = line.slice(2, -2).split(' | ');
    return { section, says, file, test };
  });
}

/** Titles of the tests of a file, as they are written. */
function titlesOf(file) {
  const path = join(folder, file);
  if (!existsSync(path)) return [];
  const found = readFileSync(path, 'utf8').matchAll(/\btest\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g);
  return [...found].map(([, single, double, template]) => (single ?? double ?? template).replace(/\\(.)/g, '$1'));
}

function missingTests(rows) {
  return rows.filter(({ file, test }) => !titlesOf(file).includes(test)).map(({ file, test }) => `test/conformance/README.md: ${file} has no test '${test}'`);
}

function unnamedTests(rows) {
  const files = readdirSync(folder).filter((file) => file.endsWith('.test.ts'));
  return files.flatMap((file) => titlesOf(file)
    .filter((title) => /^(contract|specification) /.test(title) && !rows.some((row) => row.file === file && row.test === title))
    .map((title) => `test/conformance/README.md: no row for '${title}' of ${file}`));
}

function tableOf(rows) {
  const lines = rows.map(({ section, says, file, test }) => {
    const path = relative(project, join(folder, file));
    const title = test.replace(/^(?:(?:contract|specification) [\d.]+|R-\d+): /, '');
    return `| ${section} | ${says} | [${file.replace(/^.*\//, '').replace('.test.ts', '')}](${path}): ${escapeCell(title)} |`;
  });
  return ['| section | the contract says | shown by |', '| --- | --- | --- |', ...lines].join('\n');
}

/** Characters that Markdown would read as emphasis. */
function escapeCell(text) {
  return text.replace(/[*_]/g, '\\$&');
}

function putIntoReadme(table) {
  const path = join(project, 'README.md');
  const text = readFileSync(path, 'utf8');
  const [start, end] = [text.indexOf(markers[0]), text.indexOf(markers[1])];
  if (start < 0 || end < start) return [`README.md: ${markers.join(' … ')} is missing`];
  const next = `${text.slice(0, start + markers[0].length)}\n${table}\n${text.slice(end)}`;
  if (next === text) return [];
  if (check) return ['README.md: the table of the contract is out of date; run `npm run generate`'];
  writeFileSync(path, next);
  return [];
}
