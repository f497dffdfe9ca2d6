import t from 'tap';
import { startLockstep } from './lockstep.js';
import { smallPresets } from './presets.js';
import { explore, lineOf } from './search.js';

const hold = await startLockstep(t);

for (const preset of smallPresets) {
  t.test(`${preset.name}: every state keeps every promise, and the scripts do as the decision functions say`, async (t) => {
    const explored = explore(preset);
    const { runs, differences } = await hold(explored);
    t.comment(lineOf(explored, runs));
    t.same(explored.violations, []);
    t.ok(explored.isExhausted, 'everything that can be reached was seen');
    t.same(differences, []);
  });
}
