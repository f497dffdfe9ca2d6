import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { certificates } from '../support/certificates.js';
import { expiredServer } from '../support/expired-certificate.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { certificateOutages, handshake, startSecureSetup } from './outages-certificates.js';
import { outage } from './outages.js';

const setup = await startSecureSetup(t);

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
  const proxy = await startProxyProcess(t, { config: { listen: { tls: { cert_file: certFile, key_file: keyFile } } } });
  t.equal(await handshake(proxy.port, files.ca.cert), 'CERT_HAS_EXPIRED');
  copyFileSync(files.server.certFile, certFile);
  await until('the new certificate', async () => (await handshake(proxy.port, files.ca.cert)) === 'verified');
  await until('the line that says so', () => proxy.logs().some(({ msg }) => msg === 'the certificates were reloaded'));
  t.ok(proxy.process.isRunning());
});
