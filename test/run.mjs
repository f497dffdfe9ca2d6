/**
 * The whole check: `npm test`, `npm run check`.
 *
 *   npm test                                     everything
 *   npm test -- test/proxy/framing.test.ts …     these files or folders only, without the other steps
 *   npm run check -- --long                      the `*.long.test.ts` files too
 *   npm run check -- --no-lint                   without the linter
 *
 * One line for each step with its seconds; what failed follows its line in full, so that a log is enough to find the
 * cause. The last line counts the assertions, `N passed, N failed`; a step that fails without assertions counts as one
 * failure. Exit code 1 when anything failed.
 */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { audit } from './check/audit.mjs';
import { gatherCoverage } from './check/coverage.mjs';
import { copyToDist, forgetLostOutput } from './check/dist.mjs';
import { installPrograms } from './check/programs.mjs';
import { node, runStep, timeStep } from './check/step.mjs';
import { runTests } from './check/suite.mjs';
import { compiledPath, findTests } from './check/test-files.mjs';

const { values: options, positionals: named } = parseArgs({
  options: { long: { type: 'boolean', default: false }, lint: { type: 'boolean', default: true } },
  allowPositionals: true,
  allowNegative: true,
});

process.chdir(join(import.meta.dirname, '..'));
/** Many tests wait more than they compute; more than a few at a time get in each other's way. */
const jobs = Math.max(2, Math.min(4, availableParallelism()));
const started = performance.now();
const files = findTests(named, options.long);
const everything = named.length === 0;
let failedSteps = 0;

/** Counts a step that did not hold. */
async function hold(step) {
  const held = await step;
  if (!held) failedSteps += 1;
  return held;
}

for (const name of named.filter((path) => !existsSync(path))) {
  console.log(`FAILED there is no ${name}`);
  failedSteps += 1;
}
for (const [name, install] of installPrograms(files)) await hold(timeStep(name, install));
if (!tapIsBuilt()) await hold(runStep('tap without the loaders that are not needed', 'node_modules/.bin/tap', ['build']));
forgetLostOutput();
await hold(runStep('types', 'node_modules/.bin/tsc', ['-p', 'test/tsconfig.json', '--pretty', 'false']));
await hold(timeStep('dist', copyToDist));
if (everything) {
  await hold(runStep('generated files are up to date', node, ['dist/config/generate.js', '--check']));
  await hold(runStep('config.example.yaml', node, ['dist/main.js', 'check', 'config.example.yaml']));
  await hold(runStep('docs/licences.md', node, ['test/check/licences.mjs', '--check']));
  await hold(timeStep('npm audit', audit));
  await hold(runStep('contract table', node, ['test/conformance/table.mjs', '--check']));
}
const linted = everything && options.lint ? hold(runStep('lint', 'node_modules/.bin/eslint', ['.'])) : Promise.resolve(true);
const coverage = everything ? gatherCoverage() : null;
const tests = await runTests(files.map(compiledPath), { jobs, coverage });
await linted;
if (coverage !== null) await hold(timeStep('coverage', coverage.check));

console.log(`${seconds(started)} s in all, Node ${process.version}`);
const failed = tests.failed + failedSteps;
console.log(`${tests.passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

/** tap comes from the registry with all its loaders; .taprc takes some out, which is done once per install. */
function tapIsBuilt() {
  const built = 'node_modules/@tapjs/test/test-built/dist/esm/index.js';
  if (!existsSync(built)) return false;
  const loaded = readFileSync(built, 'utf8');
  const unwanted = [...readFileSync('.taprc', 'utf8').matchAll(/'!(@tapjs\/[a-z]+)'/g)].map(([, name]) => name);
  return unwanted.every((name) => !loaded.includes(name));
}

function seconds(since) {
  return ((performance.now() - since) / 1000).toFixed(1);
}
