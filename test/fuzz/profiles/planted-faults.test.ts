/** A few of the faults of planted-faults.long.test.ts, others in each run. */
import t from 'tap';
import { drawFrom, pick, runSeed, several } from '../draw.js';
import { searchFault } from './fault-search.js';
import { plantedFaults } from './faults.js';

// On a busy machine one of them took a quarter of a minute.
t.setTimeout(120_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

for (const { name } of several(drawFrom(runSeed, 0), 4, (draw) => pick(draw, plantedFaults))) {
  t.test(`it is found that ${name}`, async (t) => {
    const report = await searchFault(t, name);
    t.equal(report.faults.length, 1, `after ${String(report.cases)} cases`);
  });
}
