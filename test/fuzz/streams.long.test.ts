import t from 'tap';
import { runSeed } from './draw.js';
import { createStages } from './in-process.js';
import { runStreams } from './stream-campaign.js';

t.setTimeout(3_600_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

const cases = 60_000;

t.test(
  `of ${String(cases)} streams of bytes, nothing reaches the upstream that the model does not read in them and let through`,
  async (t) => {
    const report = await runStreams(t, createStages(t), runSeed, cases);
    t.same(report.faults, []);
    t.comment(`${String(report.reached)} requests got through`);
  },
);
