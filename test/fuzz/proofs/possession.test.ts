import t from 'tap';
import { runSeed } from '../draw.js';
import { plantFaults } from '../plant-faults.js';
import { runPossession } from './possession-campaign.js';
import { plantedFaults } from './possession-faults.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('senders are let through who prove what the model of docs/bound-tokens.md says', async (t) => {
  const report = await runPossession(runSeed, 3_000);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 10, `${String(report.accepted)} of ${String(report.cases)} are let through`);
});

plantFaults(plantedFaults);

for (const [index, { name }] of plantedFaults.entries()) {
  t.test(`it is found that ${name}`, async (t) => {
    const copy = (await import(`./possession-campaign.js?planted=${String(index)}`)) as {
      readonly runPossession: typeof runPossession;
    };
    const report = await copy.runPossession(1, 4_000, 1);
    t.equal(report.faults.length, 1, `after ${String(report.cases)} cases`);
  });
}
