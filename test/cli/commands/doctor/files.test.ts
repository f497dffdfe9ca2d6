import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { fileSource } from '../../../../src/app/config/config-source.js';
import { loadConfig } from '../../../../src/app/config/read-config.js';
import { checkFiles } from '../../../../src/cli/commands/doctor/files.js';
import { certificates } from '../../../support/certificates.js';
import { baseConfig } from '../../../support/proxy-process.js';

const dayMs = 24 * 60 * 60 * 1000;

t.test('the dates of a certificate, seen from another day', async (t) => {
  const c = certificates(t);
  const file = join(c.dir, 'sallyport.yaml');
  writeFileSync(file, baseConfig({ listen: { tls: { cert_file: c.server.certFile, key_file: c.server.keyFile } } }));
  chmodSync(file, 0o600);
  const loaded = await loadConfig(fileSource(file), { env: {} });
  if (!loaded.ok) throw new Error(loaded.error.messages.join());
  // It is good for two days.
  const rows: readonly { name: string; days: number; level: string; what: RegExp }[] = [
    { name: 'before its time', days: -1, level: 'problem', what: /^is valid from .* only$/ },
    { name: 'in its time', days: 0, level: 'warning', what: /^expires on .*, in 1 days$/ },
    { name: 'after its time', days: 3, level: 'problem', what: /^expired on / },
  ];
  for (const { name, days, level, what } of rows) {
    const findings = await checkFiles(file, loaded.value, Date.now() + days * dayMs);
    t.match(
      findings.find(({ subject }) => subject === 'certificate'),
      { level, what },
      name,
    );
  }
});
