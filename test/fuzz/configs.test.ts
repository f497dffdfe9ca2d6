import t from 'tap';
import { runDamaged, runTables } from './config-campaign.js';
import { runSeed } from './draw.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('a table of routes that is accepted decides as the model reads it', async (t) => {
  const report = await runTables(t, runSeed, 700);
  t.same(report.faults, []);
  t.ok(
    report.accepted > 10 && report.refused > 0,
    `${String(report.accepted)} accepted, ${String(report.refused)} refused`,
  );
});

t.test('of a damaged config nothing is taken that is not written in it, and none breaks the reader', async (t) => {
  const report = runDamaged(runSeed, 150);
  t.same(report.faults, []);
  t.ok(
    report.accepted > 0 && report.refused > 20,
    `${String(report.accepted)} accepted, ${String(report.refused)} refused`,
  );
});
