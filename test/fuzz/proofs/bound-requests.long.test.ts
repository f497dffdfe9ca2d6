/** The model finds what it is for: checks of bound tokens that are taken out of the program, one at a time. */
import t from 'tap';
import { plantedFaults } from './bound-request-faults.js';
import { searchFault } from './bound-request-search.js';

t.setTimeout(3_600_000);

for (const { name } of plantedFaults) {
  t.test(`it is found that ${name}`, async (t) => {
    const report = await searchFault(t, name);
    t.equal(report.faults.length, 1, `after ${String(report.cases)} cases`);
  });
}
