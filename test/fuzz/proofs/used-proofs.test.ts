import t from 'tap';
import { runSeed } from '../draw.js';
import { testPlantedFaults } from '../plant-faults.js';
import { runUsedProofs } from './used-proofs.js';
import { usedProofFaults } from './small-faults.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('a proof counts once, and while nobody knows not at all, as the model says', async (t) => {
  const report = await runUsedProofs(runSeed, 1_500);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 50, `${String(report.accepted)} of ${String(report.cases)}`);
});

testPlantedFaults(t, usedProofFaults, async (planted) => {
  const copy = (await import(`./used-proofs.js${planted}`)) as { readonly runUsedProofs: typeof runUsedProofs };
  return copy.runUsedProofs(1, 3_000, 1);
});
