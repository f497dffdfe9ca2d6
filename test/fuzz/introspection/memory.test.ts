import t from 'tap';
import { runSeed } from '../draw.js';
import { runMemories } from './memory-campaign.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('a response about a token counts as long as the model says, and is asked for once', async (t) => {
  const report = await runMemories(t, { seed: runSeed, cases: 1500 });
  t.same(report.faults, []);
  t.ok(report.questions < report.cases, `${String(report.questions)} questions for ${String(report.cases)} steps`);
});
