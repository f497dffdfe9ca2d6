import t from 'tap';
import { readProjectFile } from '../support/source-files.js';
import { rowOf } from './guarantees-page.js';
import { startLockstep } from './lockstep.js';
import { smallPresets } from './presets.js';
import { explore, lineOf } from './search.js';

const page = readProjectFile('docs/guarantees.md');
const hold = await startLockstep(t);

for (const preset of smallPresets) {
  t.test(`${preset.name}: every state keeps every promise, and the scripts do as the decision functions say`, async (t) => {
    const explored = explore(preset);
    const { runs, differences } = await hold(explored);
    t.comment(lineOf(explored, runs));
    t.same(explored.violations, []);
    t.ok(explored.isExhausted, 'everything that can be reached was seen');
    t.same(differences, []);
    t.ok(page.includes(`\n${rowOf(preset, explored)}\n`), `docs/guarantees.md says so: ${rowOf(preset, explored)}`);
  });
}
