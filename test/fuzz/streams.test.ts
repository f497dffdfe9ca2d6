import t from 'tap';
import { runSeed } from './draw.js';
import { createStages } from './in-process.js';
import { runStreams } from './stream-campaign.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test(
  'of any bytes on a connection, only requests that the model reads in them and lets through reach the upstream',
  async (t) => {
    const report = await runStreams(t, createStages(t), runSeed, 700);
    t.same(report.faults, []);
    t.ok(
      report.reached > report.cases / 20,
      `${String(report.reached)} requests of ${String(report.cases)} streams got through`,
    );
  },
);
