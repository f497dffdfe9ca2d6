/**
 * Holds the table of this folder's README to the tests, and docs/conformance.md to the table.
 *
 *   node test/conformance/table.mjs            writes the table into docs/conformance.md
 *   node test/conformance/table.mjs --check    only compares; exit code 1 where anything differs
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const folder = import.meta.dirname;
const page = join(folder, '../../docs/conformance.md');
/** What the sections of docs/contract.md are about, in the words of the page. */
const parts = new Map([
  ['1', 'commands'],
  ['2', 'config'],
  ['3', 'order of the checks'],
  ['3.1', 'target and framing'],
  ['3.2', 'route'],
  ['3.3', 'headers'],
  ['3.4', 'credential'],
  ['3.5', 'token'],
  ['3.6', 'revocation and policy'],
  ['3.7', 'reservation'],
  ['3.8', 'forwarding'],
  ['3.9', 'settlement'],
  ['4', 'answers'],
  ['4.2', 'plugin'],
  ['4.3', 'decisions'],
  ['5', 'keys'],
  ['6', 'admin and probes'],
  ['7', 'emulator and import'],
]);
const markers = ['<!-- conformance -->', '<!-- /conformance -->'];
const check = process.argv.includes('--check');

const rows = readRows(readFileSync(join(folder, 'README.md'), 'utf8'));
const problems = [...missingTests(rows), ...unnamedTests(rows), ...unnamedParts(rows), ...putIntoPage(tableOf(rows))];
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

function readRows(text) {
  return text
    .split('\n')
    .filter((line) => /^\| \d/.test(line))
    .map((line) => {
      const [section, says, file, test] = line.slice(2, -2).split(' | ');
      return { section, says, file, test };
    });
}

/** Titles of the tests of a file, as they are written. */
function titlesOf(file) {
  const path = join(folder, file);
  if (!existsSync(path)) return [];
  const found = readFileSync(path, 'utf8').matchAll(
    /\btest\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g,
  );
  return [...found].map(([, single, double, template]) => (single ?? double ?? template).replace(/\\(.)/g, '$1'));
}

function missingTests(rows) {
  return rows
    .filter(({ file, test }) => !titlesOf(file).includes(test))
    .map(({ file, test }) => `test/conformance/README.md: ${file} has no test '${test}'`);
}

function unnamedTests(rows) {
  const files = ['', 'issuers/'].flatMap((part) =>
    readdirSync(join(folder, part))
      .filter((file) => file.endsWith('.test.ts'))
      .map((file) => part + file),
  );
  return files.flatMap((file) =>
    titlesOf(file)
      .filter((title) => !title.includes('${') && !rows.some((row) => row.file === file && row.test === title))
      .map((title) => `test/conformance/README.md: no row for '${title}' of ${file}`),
  );
}

function unnamedParts(rows) {
  return rows
    .filter(({ section }) => !parts.has(section))
    .map(({ section }) => `test/conformance/table.mjs: section ${section} has no name`);
}

function tableOf(rows) {
  const order = [...parts.keys()];
  const sorted = rows.toSorted((a, b) => order.indexOf(a.section) - order.indexOf(b.section));
  const lines = sorted.map(({ section, says, file, test }) => {
    const path = relative(dirname(page), join(folder, file));
    return `| ${parts.get(section)} | ${says} | [${file.replace(/^.*\//, '').replace('.test.ts', '')}](${path}): ${escapeCell(test)} |`;
  });
  return ['| part | what is promised | shown by |', '| --- | --- | --- |', ...lines].join('\n');
}

/** Characters that Markdown would read as emphasis. */
function escapeCell(text) {
  return text.replace(/[*_]/g, '\\$&');
}

function putIntoPage(table) {
  const text = readFileSync(page, 'utf8');
  const [start, end] = [text.indexOf(markers[0]), text.indexOf(markers[1])];
  if (start < 0 || end < start) return [`docs/conformance.md: ${markers.join(' … ')} is missing`];
  const next = `${text.slice(0, start + markers[0].length)}\n${table}\n${text.slice(end)}`;
  if (next === text) return [];
  if (check) return ['docs/conformance.md: the table is out of date; run `npm run generate`'];
  writeFileSync(page, next);
  return [];
}
