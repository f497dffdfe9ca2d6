import t from 'tap';
import { runCampaign } from './campaign.js';
import { runSeed } from './draw.js';
import { createStages } from './in-process.js';

t.setTimeout(3_600_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

/** With the streams, configs and records of the other long tests here: one million. */
const cases = 900_000;

t.test(
  `of ${String(cases)} requests, none is let through or changed in a way that the model of the contract does not say`,
  async (t) => {
    const report = await runCampaign(createStages(t), { seed: runSeed, cases, resignOdds: 200 });
    t.same(report.faults, []);
    t.comment(`${String(report.forwarded)} got through, in ${String(report.ways)} ways`);
  },
);
