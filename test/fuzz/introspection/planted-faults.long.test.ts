/** The model finds what it is for: checks of answers that are taken out of the program, one at a time. */
import t from 'tap';
import { plantFaults } from '../plant-faults.js';
import type { runAnswers } from './answers-campaign.js';
import { answerFaults } from './faults.js';

t.setTimeout(3_600_000);

const planted = plantFaults(answerFaults);

for (const { name } of answerFaults) {
  t.test(`it is found that ${name}`, async (t) => {
    const copy = (await import(`./answers-campaign.js${planted(name)}`)) as {
      readonly runAnswers: typeof runAnswers;
    };
    const report = await copy.runAnswers(t, { seed: 1, cases: 20_000, maxFaults: 1 });
    t.ok(report.faults.length > 0, `after ${String(report.cases)} cases`);
  });
}
