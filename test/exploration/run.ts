/**
 * Explores the presets whose name has this in it, `small` and `large` being all of them: `npm run explore -- large`.
 * One line for each, or with `--table` behind it the rows of docs/guarantees.md. Exit code 1 where one breaks a
 * promise, differs from the scripts or was cut off.
 */
import { scoped } from '../bench/scoped.js';
import { startLockstep } from './lockstep.js';
import { rowOf } from './guarantees-page.js';
import { largePresets, smallPresets } from './presets.js';
import { explore, lineOf } from './search.js';

const [wanted = 'small', form = ''] = process.argv.slice(2);
const named = { small: smallPresets, large: largePresets }[wanted];
const presets = named ?? [...smallPresets, ...largePresets].filter(({ name }) => name.includes(wanted));

await scoped(async (scope) => {
  const hold = await startLockstep(scope);
  for (const preset of presets) {
    const startedMs = performance.now();
    const explored = explore(preset);
    const { runs, differences } = await hold(explored);
    const line = `${lineOf(explored, runs)}; ${((performance.now() - startedMs) / 1000).toFixed(1)} s`;
    process.stdout.write(`${form === '--table' ? rowOf(preset, explored) : line}\n`);
    for (const { what, way } of explored.violations) process.stdout.write(`  ${what}\n    ${way.join('\n    ')}\n`);
    for (const difference of differences.slice(0, 3)) process.stdout.write(`  ${difference}\n`);
    if (!explored.isExhausted || differences.length > 0) process.exitCode = 1;
  }
});
