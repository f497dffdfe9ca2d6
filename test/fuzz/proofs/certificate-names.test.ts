import t from 'tap';
import { runSeed } from '../draw.js';
import { testPlantedFaults } from '../plant-faults.js';
import { runCertificateNames } from './certificate-names.js';
import { certificateNameFaults } from './small-faults.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('owners of certificates are known by the names that the model says', async (t) => {
  const report = await runCertificateNames(runSeed, 1_500);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 50, `${String(report.accepted)} of ${String(report.cases)}`);
});

testPlantedFaults(t, certificateNameFaults, async (planted) => {
  const copy = (await import(`./certificate-names.js${planted}`)) as {
    readonly runCertificateNames: typeof runCertificateNames;
  };
  return copy.runCertificateNames(1, 3_000, 1);
});
