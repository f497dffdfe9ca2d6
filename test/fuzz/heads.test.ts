import fc from 'fast-check';
import t from 'tap';
import { runCampaign } from './campaign.js';
import { drawOf, pick, runSeed } from './draw.js';
import { someHead } from './heads.js';
import { createStages, tryHead } from './in-process.js';
import { makeTokens } from './keyring.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test(
  'nothing is let through, and nothing is sent on, that a simple model of the contract does not say',
  async (t) => {
    const report = await runCampaign(createStages(t), { seed: runSeed, cases: 6000, resignOdds: 200 });
    t.same(report.faults, []);
    t.ok(
      report.forwarded > report.cases / 25,
      `${String(report.forwarded)} of ${String(report.cases)} got through, in ${String(report.ways)} ways`,
    );
  },
);

t.test('the same by choices of fast-check, which makes what fails small', async (t) => {
  const stages = createStages(t);
  const tokens = makeTokens(runSeed, 50);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(), { maxLength: 60 }), async (numbers) => {
      const draw = drawOf(numbers);
      const stage = pick(draw, stages);
      const head = someHead(draw, tokens);
      const { fault } = await tryHead(head, stage);
      if (fault !== null) throw new Error(`${fault}\n${JSON.stringify(head)}`);
    }),
    { seed: runSeed | 0, numRuns: 1000 },
  );
});
