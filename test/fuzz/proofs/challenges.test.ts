import t from 'tap';
import { runSeed } from '../draw.js';
import { plantFaults } from '../plant-faults.js';
import { runChallenges } from './challenges.js';
import { challengeFaults } from './small-faults.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('every 401 asks for what the model says, and nothing else does', async (t) => {
  const report = await runChallenges(runSeed, 1_500);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 50, `${String(report.accepted)} of ${String(report.cases)}`);
});

plantFaults(challengeFaults);

for (const [index, { name }] of challengeFaults.entries()) {
  t.test(`it is found that ${name}`, async (t) => {
    const copy = (await import(`./challenges.js?planted=${String(index)}`)) as {
      readonly runChallenges: typeof runChallenges;
    };
    // A fault may throw where nothing should.
    const found = await Promise.resolve()
      .then(async () => copy.runChallenges(1, 3_000, 1))
      .catch(() => ({ cases: 0, faults: ['thrown'] }));
    t.ok(found.faults.length > 0, `after ${String(found.cases)} cases`);
  });
}
