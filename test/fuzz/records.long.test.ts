import t from 'tap';
import { runSeed } from './draw.js';
import { runRecords } from './record-campaign.js';

t.setTimeout(3_600_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

const cases = 20_000;

t.test(
  `of ${String(cases)} stored records, none is shown otherwise than it was kept, and none runs again`,
  async (t) => {
    const report = await runRecords(t, runSeed, cases);
    t.same(report.faults, []);
    t.comment(`${String(report.shown)} were shown`);
  },
);
