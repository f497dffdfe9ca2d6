import t from 'tap';
import { runSeed } from '../draw.js';
import { plantFaults } from '../plant-faults.js';
import { plantedFaults } from './faults.js';
import { runProofs } from './proof-campaign.js';

t.setTimeout(120_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('those proofs hold that the model of docs/bound-tokens.md says do', async (t) => {
  const report = await runProofs(runSeed, 3_000);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 10, `${String(report.accepted)} of ${String(report.cases)} hold`);
});

plantFaults(plantedFaults);

for (const [index, { name }] of plantedFaults.entries()) {
  t.test(`it is found that ${name}`, async (t) => {
    const copy = (await import(`./proof-campaign.js?planted=${String(index)}`)) as {
      readonly runProofs: typeof runProofs;
    };
    // Fixed: a fault that takes all these cases is one that the model hardly sees.
    const report = await copy.runProofs(1, 4_000, 1);
    t.equal(report.faults.length, 1, `after ${String(report.cases)} cases`);
  });
}
