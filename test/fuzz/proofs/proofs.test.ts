import t from 'tap';
import { runSeed } from '../draw.js';
import { testPlantedFaults } from '../plant-faults.js';
import { plantedFaults } from './faults.js';
import { runProofs } from './proof-campaign.js';

t.setTimeout(300_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('those proofs hold that the model of docs/bound-tokens.md says do', async (t) => {
  const report = await runProofs(runSeed, 3_000);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 10, `${String(report.accepted)} of ${String(report.cases)} hold`);
});

testPlantedFaults(t, plantedFaults, async (planted) => {
  const copy = (await import(`./proof-campaign.js${planted}`)) as { readonly runProofs: typeof runProofs };
  // Fixed: a fault that takes all these cases is one that the model hardly sees.
  return copy.runProofs(1, 8_000, 1);
});
