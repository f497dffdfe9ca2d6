import t from 'tap';
import { runSeed } from '../draw.js';
import { runProfiles } from './profile-campaign.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test(
  'of tokens of every profile, those pass that the model of docs/issuers.md lets pass, as whom it says',
  async (t) => {
    const report = await runProfiles(t, { seed: runSeed, cases: 2000 });
    t.same(report.faults, []);
    t.ok(
      report.forwarded > report.cases / 25,
      `${String(report.forwarded)} of ${String(report.cases)} got through, in ${String(report.ways)} ways`,
    );
  },
);
