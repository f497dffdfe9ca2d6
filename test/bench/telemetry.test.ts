/** The measurement of telemetry still works. */
import t from 'tap';
import { measureTelemetry, telemetryTable } from './telemetry.js';

t.setTimeout(120_000);

t.test('off, at 1 % and at 100 %, spans go where they should', { timeout: 120_000 }, async (t) => {
  const measured = await measureTelemetry(t, { seconds: 0.5, rounds: 1, connections: 4, wrk: false });
  const [off, none, few, all] = measured;
  for (const { name, cpuUs } of measured) t.ok(cpuUs > 0, name);
  t.equal(off?.exported, 0);
  t.equal(none?.exported, 0);
  t.ok((few?.exported ?? 1) < 0.2, 'about two for each of a hundred');
  t.ok((all?.exported ?? 0) > 0.2);
  t.match(telemetryTable(measured), /^\| telemetry \|.*\n.*\n\| off \| [\d.]+ \| 1\.000 \| 0\.00 \| 0\.00 \|/);
});
