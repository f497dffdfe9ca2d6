import { createServer } from 'node:https';
import { join } from 'node:path';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { listen } from '../../support/listening.js';
import { replaceFile } from '../../support/replace-file.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { startCalling } from './calling.js';

t.test('the authorities of a target are taken up when their file changes, and the log names the key', async (t) => {
  const c = certificates(t);
  const server = createServer({ cert: c.server.cert, key: c.server.key }, (req, res) => {
    req.resume().on('end', () => res.end('done'));
  });
  const { port } = await listen(t, server);
  const caFile = join(tempDir(t), 'ca.pem');
  replaceFile(caFile, c.otherCa.cert);
  const { call, proxy } = await startCalling(t, `https://127.0.0.1:${String(port)}`, { ca_file: caFile });
  t.equal((await call('/orders/x')).status, 503, 'nobody vouches for it');
  replaceFile(caFile, c.ca.cert);
  await until('the file is taken up', async () => (await call('/orders/x')).status === 200);
  const line = await until('the line', () => proxy.logs().find(({ msg }) => String(msg).startsWith('the config was')));
  t.match(line, {
    msg: 'the config was reloaded',
    added: [],
    changed: ['egress.targets.orders.ca_file'],
    removed: [],
  });
});
