/** Some of the faults of planted-faults.long.test.ts: what would let anybody in, or for too long. */
import t from 'tap';
import { testPlantedFaults } from '../plant-faults.js';
import type { runAnswers } from './answers-campaign.js';
import { answerFaults, memoryFaults } from './faults.js';
import type { runMemories } from './memory-campaign.js';

t.setTimeout(120_000);

const names = ['active may be a text', 'aud is not looked at', 'exp is not looked at'];
const ofMemory = memoryFaults.slice(0, 2);
const faults = [...answerFaults.filter(({ name }) => names.includes(name)), ...ofMemory];

testPlantedFaults(t, faults, async (planted) => {
  const isOfMemory = ofMemory.some((fault) => `?planted=${String(faults.indexOf(fault))}` === planted);
  if (isOfMemory) {
    const copy = (await import(`./memory-campaign.js${planted}`)) as { readonly runMemories: typeof runMemories };
    return copy.runMemories(t, { seed: 1, cases: 5_000, maxFaults: 1 });
  }
  const copy = (await import(`./answers-campaign.js${planted}`)) as { readonly runAnswers: typeof runAnswers };
  return copy.runAnswers(t, { seed: 1, cases: 5_000, maxFaults: 1 });
});
