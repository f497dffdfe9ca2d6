/**
 * Changes the program in many small ways, one at a time, and sees whether a test notices: `npm run test:mutation -- FILE…`.
 *
 *   npm run test:mutation                                    src/decision and what reserves
 *   npm run test:mutation -- src/decision/claims.ts          these files
 *   npm run test:mutation -- --fresh                         forgets earlier results
 *   npm run test:mutation -- --folder .mutation-2 FILE…      beside another run
 *
 * Results are kept in `results.json` of the folder, so that a run that was ended goes on where it was. Mutants that nothing can notice
 * are listed in `accepted.json` beside this file, each with its reason. Exit code 1 when another one survived.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { parseArgs } from 'node:util';
import { filesBelow } from '../test-files.mjs';
import { compile, mutantsOf } from './mutants.mjs';

process.chdir(new URL('../../..', import.meta.url).pathname);
const { values: options, positionals } = parseArgs({
  options: { fresh: { type: 'boolean', default: false }, folder: { type: 'string', default: '.mutation' } },
  allowPositionals: true,
});

/** Beside `.build`, and as deep: tests find the project's files from where they lie. */
const { folder } = options;
const resultsFile = join(folder, 'results.json');
const acceptedFile = 'test/check/mutation/accepted.json';
/** A mutant that runs for ever has been noticed too. */
const limitMs = 30_000;
/** Test files asked of each mutant, the nearest first: one that survives has run them all. */
const maxTests = 6;

const everything = ['src/decision', 'src/proxy/reserving', 'src/adapters/memory', 'src/adapters/redis'];
const files = (positionals.length > 0 ? positionals : everything)
  .flatMap((path) => (path.endsWith('.ts') ? [path] : filesBelow(path))).filter((file) => file.endsWith('.ts'));
const accepted = existsSync(acceptedFile) ? JSON.parse(readFileSync(acceptedFile, 'utf8')) : [];

mkdirSync(folder, { recursive: true });
const results = !options.fresh && existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : {};
for (const part of ['src', 'test']) {
  rmSync(join(folder, part), { recursive: true, force: true });
  cpSync(join('.build', part), join(folder, part), { recursive: true });
}

// Found before the real one: a mutant is run many times.
mkdirSync(join(folder, 'node_modules/tap'), { recursive: true });
cpSync('test/check/mutation/quick-tap.mjs', join(folder, 'node_modules/tap/index.mjs'));
writeFileSync(join(folder, 'node_modules/tap/package.json'), '{"name":"tap","type":"module","exports":"./index.mjs"}');

const imports = importsOf(filesBelow('.build').filter((file) => file.endsWith('.js')));
const survivors = [];
let total = 0;
let killed = 0;
for (const file of files) {
  const text = readFileSync(file, 'utf8');
  const mutants = mutantsOf(file, text);
  if (mutants.length === 0) continue;
  const tests = [];
  for (const test of testsOf(file)) if (await passes(join(folder, test))) tests.push(test);
  const target = join(folder, file.replace(/\.ts$/, '.js'));
  const original = readFileSync(target, 'utf8');
  const before = { total, killed };
  for (const mutant of mutants) {
    total += 1;
    const id = createHash('sha256').update(`${file}\n${mutant.text}`).digest('hex').slice(0, 20);
    if (results[id] === undefined) {
      writeFileSync(target, compile(mutant.text));
      results[id] = await isNoticed(tests) ? 'killed' : 'survived';
      writeFileSync(target, original);
      writeFileSync(resultsFile, JSON.stringify(results));
    }
    if (results[id] === 'killed') killed += 1;
    else survivors.push(mutant);
    process.stderr.write(`\r${file} ${total - before.total}/${mutants.length}, ${total - before.total - (killed - before.killed)} survived   `);
  }
  process.stderr.write('\r');
  console.log(`${file}: ${killed - before.killed} of ${total - before.total} noticed, by ${tests.length} test files`);
}

const open = survivors.filter((mutant) => reasonOf(mutant) === undefined);
for (const { path, line, kind, code, replacement } of open) console.log(`${path}:${line}: ${kind}: ${code}  ->  ${replacement}`);
const percent = total === 0 ? '100' : ((100 * killed) / total).toFixed(1);
console.log(`${killed} of ${total} mutants noticed (${percent} %); ${survivors.length - open.length} accepted, ${open.length} open`);
process.exitCode = open.length > 0 ? 1 : 0;

/** The line is compared by what stands in it: its number changes with every edit above. */
function reasonOf({ path, at, kind, replacement }) {
  return accepted.find((one) => one.path === path && one.at === at && one.kind === kind && one.replacement === replacement)?.reason;
}

async function isNoticed(tests) {
  for (const test of tests) {
    if (!await passes(join(folder, test))) return true;
  }
  return false;
}

async function passes(test) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [test], { stdio: 'ignore', env: { ...process.env, TAP_BAIL: '1' } });
    const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve(code === 0);
    });
  });
}

/** What each compiled file imports of ours, by its path below `.build`. */
function importsOf(compiled) {
  return new Map(compiled.map((file) => {
    const path = normalize(file).replace(/^\.build\//, '');
    const named = [...readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?['"](\.[^'"]+)['"]/g)].map(([, name]) => normalize(join(dirname(path), name)));
    return [path, named];
  }));
}

/** The test files that load it, the nearest first: that of its name, then those of its folder, then others. No long ones, and none with processes. */
function testsOf(file) {
  const path = file.replace(/\.ts$/, '.js');
  const own = path.replace(/^src/, 'test').replace(/\.js$/, '.test.js');
  const distances = new Map([[path, 0]]);
  for (const at of distances.keys()) {
    for (const [importer, named] of imports) {
      if (named.includes(at) && !distances.has(importer)) distances.set(importer, (distances.get(at) ?? 0) + 1);
    }
  }
  const isNear = (test) => dirname(test) === dirname(own) || (dirname(own) === 'test/adapters/memory' && dirname(test) === 'test/adapters');
  const rank = (test) => (test === own ? 0 : (dirname(test) === dirname(own) ? 1 : 100) + distances.get(test));
  const all = [...distances.keys()]
    .filter((test) => test.endsWith('.test.js') && !test.includes('.long.') && /^test\/(decision|proxy|adapters|config|policy-test)\//.test(test));
  const near = all.filter(isNear);
  return (near.length > 0 ? near : all)
    .sort((a, b) => rank(a) - rank(b) || basename(a).localeCompare(basename(b)))
    .slice(0, maxTests);
}
