import t from 'tap';
import { runSeed } from '../draw.js';
import { testPlantedFaults } from '../plant-faults.js';
import { runPossession } from './possession-campaign.js';
import { plantedFaults } from './possession-faults.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('senders are let through who prove what the model of docs/bound-tokens.md says', async (t) => {
  const report = await runPossession(runSeed, 3_000);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 10, `${String(report.accepted)} of ${String(report.cases)} are let through`);
});

testPlantedFaults(t, plantedFaults, async (planted) => {
  const copy = (await import(`./possession-campaign.js${planted}`)) as { readonly runPossession: typeof runPossession };
  return copy.runPossession(1, 4_000, 1);
});
