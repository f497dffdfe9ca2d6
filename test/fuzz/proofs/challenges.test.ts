import t from 'tap';
import { runSeed } from '../draw.js';
import { testPlantedFaults } from '../plant-faults.js';
import { runChallenges } from './challenges.js';
import { challengeFaults } from './small-faults.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('every 401 asks for what the model says, and nothing else does', async (t) => {
  const report = await runChallenges(runSeed, 1_500);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 50, `${String(report.accepted)} of ${String(report.cases)}`);
});

testPlantedFaults(t, challengeFaults, async (planted) => {
  const copy = (await import(`./challenges.js${planted}`)) as { readonly runChallenges: typeof runChallenges };
  return copy.runChallenges(1, 3_000, 1);
});
