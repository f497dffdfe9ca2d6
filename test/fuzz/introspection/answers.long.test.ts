import t from 'tap';
import { runSeed } from '../draw.js';
import { runAnswers } from './answers-campaign.js';

t.setTimeout(3_600_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

const cases = 100_000;

t.test(`of ${String(cases)} answers about opaque tokens, none is checked otherwise than by the model`, async (t) => {
  const report = await runAnswers(t, { seed: runSeed, cases });
  t.same(report.faults, []);
  t.comment(`${String(report.forwarded)} got through, in ${String(report.ways)} ways`);
});
