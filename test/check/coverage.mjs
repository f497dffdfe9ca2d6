import { existsSync, mkdtempSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesBelow } from './test-files.mjs';

/**
 * What has to be covered: every line of the rules that decide and of what they are made of, and most of the rest, no
 * file left out.
 */
const required = [
  { folder: 'src/lib/', percent: 100 },
  { folder: 'src/decision/', percent: 100 },
  { folder: 'src/', percent: 95 },
];

/** Not loaded by tests: the check runs these as they are. */
const runByTheCheck = ['src/config/docs/generate.ts', 'src/cli/docs/generate.ts'];

/** Gathers what Node.js writes of each process that a test file starts (`NODE_V8_COVERAGE`), its own included. */
export function gatherCoverage() {
  const folder = resolve('.build/coverage');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  /** Of each compiled file, the characters that were run by any process. */
  const scripts = new Map();
  return {
    begin: () => mkdtempSync(join(folder, 'file-')),
    add(dir) {
      for (const name of readdirSync(dir)) for (const script of scriptsIn(join(dir, name))) noteScript(scripts, script);
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    },
    check: async () => checkCoverage(linesOf(scripts)),
  };
}

function scriptsIn(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).result;
  } catch {
    // Of a process that the test ended while it wrote.
    return [];
  }
}

/**
 * Functions come with those that hold them first, and so do the parts of each: the last one to speak of a character is
 * right.
 */
function noteScript(scripts, { url, functions }) {
  const file = url.startsWith('file:') ? relative(resolve('.'), fileURLToPath(url.replace(/[?#].*/, ''))) : '';
  if (!/^(\.build\/src|dist)\//.test(file)) return;
  const known = scripts.get(file) ?? newScript(file);
  scripts.set(file, known);
  const ran = new Uint8Array(known.ran.length);
  for (const { ranges } of functions) {
    for (const { startOffset, endOffset, count } of ranges) ran.fill(Math.min(count, 1), startOffset, endOffset);
  }
  for (let at = 0; at < ran.length; at++) known.ran[at] |= ran[at];
}

function newScript(file) {
  const text = readFileSync(file, 'utf8');
  return { text, ran: new Uint8Array(text.length) };
}

/** Of each source file, its lines with code and whether any of it was run. */
function linesOf(scripts) {
  const sources = new Map();
  for (const [file, { text, ran }] of scripts) {
    const source = file.replace(/^(\.build\/src|dist)\/(.*)\.js$/, 'src/$2.ts');
    const lines = sources.get(source) ?? new Map();
    sources.set(source, lines);
    const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
    for (const { line, column, sourceLine } of mappingsOf(JSON.parse(readFileSync(`${file}.map`, 'utf8')).mappings)) {
      lines.set(sourceLine, lines.get(sourceLine) === true || ran[starts[line] + column] === 1);
    }
  }
  return sources;
}

/**
 * Where each piece of a compiled file begins, and the line of the source it was made of: a source map's `mappings`
 * (ECMA-426).
 */
function* mappingsOf(mappings) {
  let sourceLine = 1;
  for (const [line, pieces] of mappings.split(';').entries()) {
    let column = 0;
    for (const piece of pieces.split(',').filter((one) => one !== '')) {
      const [columns, , lines] = numbersOf(piece);
      column += columns;
      if (lines === undefined) continue;
      sourceLine += lines;
      yield { line, column, sourceLine };
    }
  }
}

/**
 * Base64 VLQ: five bits a digit, the least first; the sixth says that more follow, and the lowest of the number is its
 * sign.
 */
function numbersOf(piece) {
  const numbers = [];
  let [value, shift] = [0, 0];
  for (const char of piece) {
    const digit = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'.indexOf(char);
    value |= (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) !== 0) continue;
    numbers.push((value & 1) === 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return numbers;
}

function checkCoverage(lines) {
  const sources = filesBelow('src').filter((file) => file.endsWith('.ts') && hasCode(file));
  const untouched = sources
    .filter((file) => !lines.has(file) && !runByTheCheck.includes(file))
    .map((file) => `${file}: no test loads it`);
  const rows = sources.filter((file) => lines.has(file)).map((file) => rowOf(file, lines.get(file)));
  const short = required.flatMap(({ folder, percent }) => {
    const inside = rows.filter(({ file }) => file.startsWith(folder));
    const total = sum(inside, 'total');
    const share = total === 0 ? 100 : (100 * sum(inside, 'covered')) / total;
    console.log(`       ${folder.padEnd(14)} ${share.toFixed(1)} % of ${total} lines, ${percent} % required`);
    if (share >= percent) return [];
    const worst = inside.filter((row) => row.percent < percent).sort((a, b) => a.percent - b.percent);
    const named = worst.map(
      (row) => `  ${row.file}: ${row.percent.toFixed(1)} % of ${row.total}, without ${spansOf(row.missed)}`,
    );
    return [`${folder} has less than ${percent} %:`, ...named];
  });
  return { held: untouched.length + short.length === 0, output: [...untouched, ...short].join('\n') };
}

function rowOf(file, lines) {
  const missed = [...lines]
    .filter(([, ran]) => !ran)
    .map(([line]) => line)
    .sort((a, b) => a - b);
  const covered = lines.size - missed.length;
  return { file, total: lines.size, covered, percent: (100 * covered) / lines.size, missed };
}

/** `3, 7-9`. */
function spansOf(lines) {
  return lines
    .filter((line, index) => lines[index - 1] !== line - 1)
    .map((first) => [first, lines.find((line) => line >= first && !lines.includes(line + 1))])
    .map(([first, last]) => (first === last ? String(first) : `${first}-${last}`))
    .join(', ');
}

/** Files of types only compile to nothing that could run. */
function hasCode(file) {
  const compiled = `.build/${file.replace(/\.ts$/, '.js')}`;
  return (
    existsSync(compiled) &&
    readFileSync(compiled, 'utf8')
      .replace(/\/\*[\s\S]*?\*\/|\/\/.*|export \{\};/g, '')
      .trim() !== ''
  );
}

function sum(rows, field) {
  return rows.reduce((total, row) => total + row[field], 0);
}
