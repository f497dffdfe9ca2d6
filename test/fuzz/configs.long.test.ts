import t from 'tap';
import { runDamaged, runTables } from './config-campaign.js';
import { runSeed } from './draw.js';

t.setTimeout(3_600_000);
t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('15,000 tables of routes and requests to them', async (t) => {
  const report = await runTables(t, runSeed, 15_000);
  t.same(report.faults, []);
  t.comment(`${String(report.accepted)} accepted, ${String(report.refused)} refused`);
});

t.test('5,000 damaged configs', async (t) => {
  const report = runDamaged(runSeed, 5000);
  t.same(report.faults, []);
  t.comment(`${String(report.accepted)} accepted, ${String(report.refused)} refused`);
});
