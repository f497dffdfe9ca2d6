/** The model finds what it is for: checks of answers that are taken out of the program, one at a time. */
import t from 'tap';
import { testPlantedFaults } from '../plant-faults.js';
import type { runAnswers } from './answers-campaign.js';
import { answerFaults, memoryFaults } from './faults.js';
import type { runMemories } from './memory-campaign.js';

t.setTimeout(3_600_000);

testPlantedFaults(t, memoryFaults, async (planted) => {
  const copy = (await import(`./memory-campaign.js${planted}`)) as { readonly runMemories: typeof runMemories };
  return copy.runMemories(t, { seed: 1, cases: 20_000, maxFaults: 1 });
});

testPlantedFaults(t, answerFaults, async (planted) => {
  const copy = (await import(`./answers-campaign.js${planted}`)) as { readonly runAnswers: typeof runAnswers };
  return copy.runAnswers(t, { seed: 1, cases: 20_000, maxFaults: 1 });
});
