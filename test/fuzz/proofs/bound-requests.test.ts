/** A few of the faults of bound-requests.long.test.ts, others in each run. */
import t from 'tap';
import { drawFrom, pick, runSeed, several } from '../draw.js';
import { plantedFaults } from './bound-request-faults.js';
import { searchFault } from './bound-request-search.js';
import { runBoundRequests } from './bound-requests.js';

t.setTimeout(300_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('requests with bound tokens are let through, and go on, as the model of the contract says', async (t) => {
  const report = await runBoundRequests(t, runSeed, 3_000);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 25, `${String(report.accepted)} of ${String(report.cases)} are let through`);
});

for (const { name } of several(drawFrom(runSeed, 0), 4, (draw) => pick(draw, plantedFaults))) {
  t.test(`it is found that ${name}`, async (t) => {
    const report = await searchFault(t, name);
    t.equal(report.faults.length, 1, `after ${String(report.cases)} cases`);
  });
}
