/** Some of the faults of planted-faults.long.test.ts: what would let anybody in. */
import t from 'tap';
import { plantFaults } from '../plant-faults.js';
import type { runAnswers } from './answers-campaign.js';
import { answerFaults } from './faults.js';

const planted = plantFaults(answerFaults);

const chosen = ['active may be a text', 'aud is not looked at', 'exp is not looked at', 'no signature is looked at'];

for (const name of chosen) {
  t.test(`it is found that ${name}`, async (t) => {
    const copy = (await import(`./answers-campaign.js${planted(name)}`)) as {
      readonly runAnswers: typeof runAnswers;
    };
    const report = await copy.runAnswers(t, { seed: 1, cases: 20_000, maxFaults: 1 });
    t.ok(report.faults.length > 0, `after ${String(report.cases)} cases`);
  });
}
