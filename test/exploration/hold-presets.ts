import type { Test } from 'tap';
import { readProjectFile } from '../support/source-files.js';
import { rowOf } from './guarantees-page.js';
import { startLockstep } from './lockstep.js';
import type { Preset } from './model.js';
import { explore, lineOf } from './search.js';

/**
 * Explores each of them, one test each, beside the real scripts, and holds the page of guarantees to what was counted.
 */
export async function holdPresets(
  t: Test,
  presets: readonly Preset[],
  options: { readonly timeout?: number } = {},
): Promise<void> {
  const page = readProjectFile('docs/guarantees.md');
  const hold = await startLockstep(t);
  for (const preset of presets) {
    void t.test(
      `${preset.name}: every state keeps every promise, and the scripts do as the decision functions say`,
      options,
      async (t) => {
        const explored = explore(preset);
        const { runs, differences } = await hold(explored);
        t.comment(lineOf(explored, runs));
        t.same(explored.violations, []);
        t.ok(explored.isExhausted, 'everything that can be reached was seen');
        t.same(differences, []);
        t.ok(page.includes(`\n${rowOf(preset, explored)}\n`), `docs/guarantees.md says so: ${rowOf(preset, explored)}`);
      },
    );
  }
}
