/**
 * What a store hands back may be damaged, or somebody else's work: a caller is shown a result as it was kept, or 503.
 */
import t from 'tap';
import { runSeed } from './draw.js';
import { runRecords } from './record-campaign.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test(
  'whatever a stored record holds, its fields are shown as they are or not at all, and nothing is run again',
  async (t) => {
    const report = await runRecords(t, runSeed, 400);
    t.same(report.faults, []);
    t.ok(report.shown > report.cases / 30, `${String(report.shown)} of ${String(report.cases)} were shown`);
  },
);
