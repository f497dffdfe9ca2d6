import t from 'tap';
import { readProjectFile } from '../support/source-files.js';
import { rowOf } from './guarantees-page.js';
import { startLockstep } from './lockstep.js';
import { largePresets } from './presets.js';
import { explore, lineOf } from './search.js';

t.setTimeout(7_200_000);

const page = readProjectFile('docs/guarantees.md');
const hold = await startLockstep(t);

for (const preset of largePresets) {
  t.test(`${preset.name}: every state keeps every promise, and the scripts do as the decision functions say`, { timeout: 3_600_000 }, async (t) => {
    const explored = explore(preset);
    const { runs, differences } = await hold(explored);
    t.comment(lineOf(explored, runs));
    t.same(explored.violations, []);
    t.ok(explored.isExhausted, 'everything that can be reached was seen');
    t.same(differences, []);
    t.ok(page.includes(`\n${rowOf(preset, explored)}\n`), `docs/guarantees.md says so: ${rowOf(preset, explored)}`);
  });
}
