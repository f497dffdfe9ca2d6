/** The search finds what it is for: guards that are taken out, one at a time. */
import t from 'tap';
import { decisionFaults, scriptFaults } from './faults.js';
import { startLockstep } from './lockstep.js';
import { machineWithout } from './machine.js';
import type { Preset } from './model.js';
import { smallPresets } from './presets.js';
import { explore } from './search.js';

for (const { name, foundBy, cuts = [], lapses = [] } of decisionFaults) {
  t.test(`it is found that ${name}`, async (t) => {
    const { violations } = explore(presetOf(foundBy), { machine: await machineWithout(t, cuts), lapses });
    t.equal(violations.length, 1);
    t.comment(`${violations[0]?.what ?? ''}: ${violations[0]?.way.join('; ') ?? ''}`);
  });
}

for (const { name, foundBy, lua = [] } of scriptFaults) {
  t.test(`it is found that a script lacks a guard: ${name}`, async (t) => {
    const hold = await startLockstep(t, lua);
    const { differences } = await hold(explore(presetOf(foundBy)));
    t.ok(differences.length > 0);
  });
}

function presetOf(name: string): Preset {
  const found = smallPresets.find((preset) => preset.name === name);
  if (found === undefined) throw new Error(`there is no preset ${name}`);
  return found;
}
