import t from 'tap';
import { runSeed } from '../draw.js';
import { plantFaults } from '../plant-faults.js';
import { runUsedProofs } from './used-proofs.js';
import { usedProofFaults } from './small-faults.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('a proof counts once, and while nobody knows not at all, as the model says', async (t) => {
  const report = await runUsedProofs(runSeed, 1_500);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 50, `${String(report.accepted)} of ${String(report.cases)}`);
});

plantFaults(usedProofFaults);

for (const [index, { name }] of usedProofFaults.entries()) {
  t.test(`it is found that ${name}`, async (t) => {
    const copy = (await import(`./used-proofs.js?planted=${String(index)}`)) as {
      readonly runUsedProofs: typeof runUsedProofs;
    };
    // A fault may throw where nothing should.
    const found = await Promise.resolve()
      .then(async () => copy.runUsedProofs(1, 3_000, 1))
      .catch(() => ({ cases: 0, faults: ['thrown'] }));
    t.ok(found.faults.length > 0, `after ${String(found.cases)} cases`);
  });
}
