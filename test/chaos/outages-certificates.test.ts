import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { certificates } from '../support/certificates.js';
import { expiredServer } from '../support/expired-certificate.js';
import { until } from '../support/until.js';
import { startWorld } from '../support/world.js';
import { certificateOutages, handshake, startSecureScene } from './outages-certificates.js';
import { outage } from './outages.js';

const setup = await startSecureScene(t);

for (const row of certificateOutages) {
  t.test(`an expired certificate: ${row.name}`, async (t) => {
    await outage(t, setup, row);
  });
}

t.test('an expired certificate of our own: callers refuse us, and the next one in its files is taken up', async (t) => {
  const files = certificates(t);
  const expired = expiredServer(files);
  const [certFile, keyFile] = [join(files.dir, 'own.crt'), join(files.dir, 'own.key')];
  copyFileSync(expired.certFile, certFile);
  copyFileSync(expired.keyFile, keyFile);
  const world = await startWorld(t, { config: { listen: { tls: { cert_file: certFile, key_file: keyFile } } } });
  t.equal(await handshake(world.port, files.ca.cert), 'CERT_HAS_EXPIRED');
  copyFileSync(files.server.certFile, certFile);
  await until('the new certificate', async () => (await handshake(world.port, files.ca.cert)) === 'verified');
  await until('the line that says so', () => world.logs().some(({ msg }) => msg === 'the certificates were reloaded'));
  t.ok(world.process.isRunning());
});
