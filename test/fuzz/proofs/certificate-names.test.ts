import t from 'tap';
import { runSeed } from '../draw.js';
import { plantFaults } from '../plant-faults.js';
import { runCertificateNames } from './certificate-names.js';
import { certificateNameFaults } from './small-faults.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

t.test('owners of certificates are known by the names that the model says', async (t) => {
  const report = await runCertificateNames(runSeed, 1_500);
  t.same(report.faults, []);
  t.ok(report.accepted > report.cases / 50, `${String(report.accepted)} of ${String(report.cases)}`);
});

plantFaults(certificateNameFaults);

for (const [index, { name }] of certificateNameFaults.entries()) {
  t.test(`it is found that ${name}`, async (t) => {
    const copy = (await import(`./certificate-names.js?planted=${String(index)}`)) as {
      readonly runCertificateNames: typeof runCertificateNames;
    };
    // A fault may throw where nothing should.
    const found = await Promise.resolve()
      .then(async () => copy.runCertificateNames(1, 3_000, 1))
      .catch(() => ({ cases: 0, faults: ['thrown'] }));
    t.ok(found.faults.length > 0, `after ${String(found.cases)} cases`);
  });
}
