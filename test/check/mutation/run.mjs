/**
 * Changes the program in many small ways, one at a time, and sees whether a test notices: `npm run test:mutation --
 * FILE…`.
 *
 *   npm run test:mutation                                    src/decision and what reserves
 *   npm run test:mutation -- src/decision/token/service-token.ts          these files
 *   npm run test:mutation -- --fresh                         forgets earlier results
 *   npm run test:mutation -- --nearest FILE…                 asks the nearest test file only, which is quick
 *   npm run test:mutation -- --folder .mutation-2 FILE…      beside another run
 *   npm run test:mutation -- --list FILE…                    what is known from earlier runs, without another
 *
 * Results are kept in `results.json` of the folder, so that a run that was ended goes on where it was; what survived is
 * tried again when its tests have changed. Mutants that nothing can notice are listed in `accepted.json` beside this
 * file, each with its reason; those that the compiler refuses need none. Exit code 1 when another one survived.
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { filesBelow } from '../test-files.mjs';
import { createCompiler } from './compiler.mjs';
import { compile, mutantsOf } from './mutants.mjs';
import { digestOfTests, importsOf, testsOf } from './test-choice.mjs';
import { runForCoverage, runTest } from './trial.mjs';

process.chdir(join(import.meta.dirname, '../../..'));
const { values: options, positionals } = parseArgs({
  options: {
    fresh: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    nearest: { type: 'boolean', default: false },
    folder: { type: 'string', default: '.mutation' },
  },
  allowPositionals: true,
});

/** Beside `.build`, and as deep: tests find the project's files from where they lie. */
const { folder } = options;
const resultsFile = join(folder, 'results.json');
const acceptedFile = 'test/check/mutation/accepted.json';
/** A mutant that runs for ever has been noticed too. */
const limitMs = 30_000;
/**
 * Time for the test files asked of one mutant, the nearest and then the fastest first: one that survives has run them
 * all.
 */
const budgetMs = 20_000;

const everything = ['src/decision', 'src/lib', 'src/proxy/idempotency', 'src/adapters/memory', 'src/adapters/redis'];
const files = (positionals.length > 0 ? positionals : everything)
  .flatMap((path) => (path.endsWith('.ts') ? [path] : filesBelow(path)))
  .filter((file) => file.endsWith('.ts'));
const accepted = JSON.parse(readFileSync(acceptedFile, 'utf8'));
const results = !options.fresh && existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : {};
const imports = importsOf(filesBelow('.build').filter((file) => file.endsWith('.js')));
/** Each test file is run once without a mutant, for whatever it is asked about. */
const unchangedRuns = new Map();
let isRefused;

if (!options.list) prepareFolder();
const counts = new Map();
const open = [];
for (const file of files) {
  const count = { total: 0, killed: 0, refused: 0, accepted: 0, open: 0, unknown: 0 };
  for (const { mutant, result } of options.list ? knownResults(file) : await tryFile(file)) {
    const outcome =
      result === 'survived' && reasonOf(mutant) !== undefined ? 'accepted' : result === 'survived' ? 'open' : result;
    if (outcome === 'open') open.push(mutant);
    count.total += 1;
    count[outcome] += 1;
  }
  counts.set(file, count);
  if (count.total > 0) console.log(`${file}: ${inWords(count)}`);
}
for (const { path, line, kind, code, replacement } of open) {
  console.log(`${path}:${line}: ${kind}: ${code}  ->  ${replacement}`);
}
const folders = new Set(files.map((file) => dirname(file)));
for (const one of folders) {
  console.log(`${one}: ${inWords(sum([...counts].filter(([file]) => dirname(file) === one)))}`);
}
if (folders.size > 1) console.log(`together: ${inWords(sum([...counts]))}`);
process.exitCode = open.length > 0 ? 1 : 0;

function prepareFolder() {
  mkdirSync(folder, { recursive: true });
  for (const part of ['src', 'test']) {
    rmSync(join(folder, part), { recursive: true, force: true });
    cpSync(join('.build', part), join(folder, part), { recursive: true });
  }
  // As mutants are compiled: what a test runs through is asked once, for all of them.
  for (const file of files) writeFileSync(targetOf(file), compile(readFileSync(file, 'utf8')));
  // Found before the real one: a test file is run many times.
  mkdirSync(join(folder, 'node_modules/tap'), { recursive: true });
  cpSync('test/check/mutation/quick-tap.mjs', join(folder, 'node_modules/tap/index.mjs'));
  writeFileSync(
    join(folder, 'node_modules/tap/package.json'),
    '{"name":"tap","type":"module","exports":"./index.mjs"}',
  );
}

function targetOf(file) {
  return join(folder, file.replace(/\.ts$/, '.js'));
}

function knownResults(file) {
  return mutantsOf(file, readFileSync(file, 'utf8')).map((mutant) => ({
    mutant,
    result: results[idOf(mutant)]?.split(' ')[0] ?? 'unknown',
  }));
}

async function tryFile(file) {
  const text = readFileSync(file, 'utf8');
  const [mutants, unchanged] = [mutantsOf(file, text), compile(text)];
  const near = testsOf(file, imports).slice(0, options.nearest ? 1 : undefined);
  const digest = digestOfTests(near, imports);
  const target = targetOf(file);
  let tests;
  let [done, survived] = [0, 0];
  for (const mutant of mutants) {
    const id = idOf(mutant);
    if (results[id] === undefined || (results[id].startsWith('survived') && results[id] !== `survived ${digest}`)) {
      tests ??= await trialsOf(near);
      writeFileSync(target, mutant.compiled);
      if (await isNoticed(tests, target, mutant)) results[id] = 'killed';
      else results[id] = reasonOf(mutant) === undefined && isMistyped(mutant) ? 'refused' : `survived ${digest}`;
      writeFileSync(target, unchanged);
      writeFileSync(resultsFile, JSON.stringify(results));
    }
    done += 1;
    if (results[id].startsWith('survived')) survived += 1;
    process.stderr.write(`\r${file} ${done}/${mutants.length}, ${survived} survived   `);
  }
  process.stderr.write('\r');
  return knownResults(file);
}

/**
 * The test files that pass without a mutant, with the time that each takes and the places that it runs through: the
 * nearest, then the fastest.
 */
async function trialsOf(tests) {
  const trials = [];
  for (const test of tests) {
    if (!unchangedRuns.has(test)) {
      unchangedRuns.set(test, await runForCoverage(join(folder, test), join(folder, 'src'), limitMs));
    }
    const run = unchangedRuns.get(test);
    if (run === null) process.stderr.write(`${test} fails without a mutant: it is left out\n`);
    else trials.push({ test, ...run });
  }
  const [nearest] = trials;
  return trials.sort((a, b) => (b === nearest) - (a === nearest) || a.tookMs - b.tookMs);
}

async function isNoticed(trials, target, mutant) {
  let spentMs = 0;
  for (const { test, tookMs, runs } of trials) {
    if (!runs(target, mutant.offset)) continue;
    if (spentMs > 0 && spentMs + tookMs > budgetMs) continue;
    spentMs += tookMs;
    if (!(await runTest(join(folder, test), Math.min(limitMs, 5_000 + 8 * tookMs))).passed) return true;
  }
  return false;
}

function isMistyped({ path, text }) {
  isRefused ??= createCompiler();
  return isRefused(path, text);
}

function idOf({ path, text }) {
  return createHash('sha256').update(`${path}\n${text}`).digest('hex').slice(0, 20);
}

/** The line is compared by what stands in it: its number changes with every edit above. */
function reasonOf({ path, at, kind, replacement }) {
  return accepted.find(
    (one) => one.path === path && one.at === at && one.kind === kind && one.replacement === replacement,
  )?.reason;
}

function sum(entries) {
  const total = { total: 0, killed: 0, refused: 0, accepted: 0, open: 0, unknown: 0 };
  for (const [, count] of entries) for (const key of Object.keys(total)) total[key] += count[key];
  return total;
}

function inWords({ total, killed, refused, accepted: known, open: left, unknown }) {
  const percent = total === 0 ? '100' : ((100 * killed) / total).toFixed(1);
  const parts = [
    `${killed} of ${total} mutants noticed (${percent} %)`,
    `${refused} refused by the compiler`,
    `${known} accepted`,
    `${left} open`,
  ];
  return [...parts, ...(unknown > 0 ? [`${unknown} not tried`] : [])].join(', ');
}
