/**
 * The whole check: `npm test`, `npm run check`. `npm test -- --help` says what it takes.
 *
 * One line for each step with its seconds; what failed follows its line in full, so that a log is enough to find the
 * cause. The last line counts the assertions, `N passed, N failed`; a step that fails without assertions counts as one
 * failure. Exit code 1 when anything failed. In a run of everything, up to three files that failed run once more, each
 * by itself; those that pass then are named as unsteady. Test files that need a program which is not here are not run,
 * and named.
 */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildPages } from '../.release/pages.mjs';
import { audit } from './check/audit.mjs';
import { selectChanged } from './check/changed.mjs';
import { gatherCoverage } from './check/coverage.mjs';
import { copyToDist, forgetLostOutput } from './check/dist.mjs';
import { sharingOf, unitTestsOf } from './check/groups.mjs';
import { printHelp } from './check/help.mjs';
import { findPrograms, summaryOf } from './check/needs.mjs';
import { node, runStep, timeStep } from './check/step.mjs';
import { runTests } from './check/suite.mjs';
import { compiledPath, findTests } from './check/test-files.mjs';
import { changedSources, transpile, transpiledSources } from './check/transpile.mjs';
import { howMany } from './check/words.mjs';

const { values: options, positionals: named } = parseArgs({
  // Without a base it is that of the branch.
  args: process.argv.slice(2).map((word) => (word === '--changed' ? '--changed=' : word)),
  options: {
    changed: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
    install: { type: 'boolean', default: false },
    long: { type: 'boolean', default: false },
    lint: { type: 'boolean', default: true },
    types: { type: 'boolean', default: false },
    unit: { type: 'boolean', default: false },
  },
  allowPositionals: true,
  allowNegative: true,
});

process.chdir(join(import.meta.dirname, '..'));
/** Many tests wait more than they compute; more than a few at a time get in each other's way. */
const jobs = Math.max(2, Math.min(4, availableParallelism()));
const started = performance.now();
const found = findTests(named, options.long);
const asked = options.unit ? unitTestsOf(found) : found;
const everything = named.length === 0 && !options.unit && options.changed === undefined;
/** Files of one's choice are tried again and again: their types are looked at on demand. */
const inALoop = named.length > 0 && !options.unit && options.changed === undefined && !options.types;
let failedSteps = 0;

if (options.help) await printHelp(findTests([], true));
else await check();

async function check() {
  const selection = options.changed === undefined ? null : await selectChanged(options.changed, asked);
  const { files, leftOut } = selection ?? { files: asked, leftOut: [] };
  failedSteps += selection?.failures ?? 0;
  console.log(
    `${howMany(files)}, ${jobs} at a time, Node ${process.version}${everything ? '; all of it takes an hour on two cores' : ''}`,
  );
  for (const name of named.filter((path) => !existsSync(path))) {
    console.log(`FAILED there is no ${name}`);
    failedSteps += 1;
  }
  const { missing, failures } = await findPrograms(files, { install: options.install });
  failedSteps += failures;
  const notRun = new Set(missing.flatMap((need) => need.files));
  await build(files);
  if (everything) {
    const compiler = 'node_modules/typescript/bin/tsc';
    await hold(
      runStep('types of the pages', node, [compiler, '-p', 'src/playground/tsconfig.json', '--pretty', 'false']),
    );
    await holdGenerated();
  }
  const linted = everything && options.lint ? lint() : Promise.resolve();
  // Where tests are left out, so is what they cover.
  const coverage = everything && notRun.size === 0 ? gatherCoverage() : null;
  const run = files.filter((file) => !notRun.has(file));
  const sharing = sharingOf(unitTestsOf(run)).map(compiledPath);
  const tests = await runTests(run.map(compiledPath), { jobs, sharing, coverage, again: everything });
  await linted;
  if (coverage !== null) await hold(timeStep('coverage', coverage.check));

  for (const line of [...summaryOf(missing, files.length), ...leftOut]) console.log(line);
  for (const file of tests.unsteady) {
    console.log(`UNSTEADY ${file}: failed beside other tests and passed by itself; its first output, above, says why`);
  }
  console.log(`${((performance.now() - started) / 1000).toFixed(1)} s in all, Node ${process.version}`);
  const failed = tests.failed + failedSteps;
  console.log(`${tests.passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

async function build(files) {
  if (!tapIsBuilt()) {
    await hold(
      runStep('tap without the loaders that are not needed', node, ['node_modules/tap/dist/esm/run.mjs', 'build']),
    );
  }
  await hold(timeStep('pages', buildPages));
  const changed = inALoop ? changedSources(files) : null;
  if (changed === null) {
    forgetLostOutput();
    const transpiled = transpiledSources();
    await hold(
      runStep('types', node, ['node_modules/typescript/bin/tsc', '-b', 'test/tsconfig.json', '--pretty', 'false']),
    );
    await transpile(transpiled);
  } else {
    await hold(timeStep('compiled without a look at types (--types)', () => transpile(changed)));
  }
  await hold(timeStep('dist', copyToDist));
}

async function holdGenerated() {
  await hold(runStep('generated files are up to date', node, ['dist/config/docs/generate.js', '--check']));
  await hold(runStep('config.example.yaml', node, ['dist/main.js', 'check', 'config.example.yaml']));
  await hold(runStep('docs/licences.md', node, ['test/check/licences.mjs', '--check']));
  await hold(timeStep('npm audit', audit));
  await hold(runStep('contract table', node, ['test/conformance/table.mjs', '--check']));
}

async function lint() {
  await hold(
    runStep('format', node, ['node_modules/prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.']),
  );
  await hold(runStep('lint', node, ['node_modules/eslint/bin/eslint.js', '.']));
}

/** Counts a step that did not hold. */
async function hold(step) {
  const held = await step;
  if (!held) failedSteps += 1;
  return held;
}

/** tap comes from the registry with all its loaders; .taprc takes some out, which is done once per install. */
function tapIsBuilt() {
  const built = 'node_modules/@tapjs/test/test-built/dist/esm/index.js';
  if (!existsSync(built)) return false;
  const loaded = readFileSync(built, 'utf8');
  const unwanted = [...readFileSync('.taprc', 'utf8').matchAll(/'!(@tapjs\/[a-z]+)'/g)].map(([, name]) => name);
  return unwanted.every((name) => !loaded.includes(name));
}
