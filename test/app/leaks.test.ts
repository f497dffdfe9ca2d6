import t from 'tap';
import { startJwksServer } from '../support/jwks-server.js';
import { openDescriptors } from '../support/linux.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { until } from '../support/until.js';
import { startInProcessProxy } from './in-process-proxy.js';

t.test('reloads leave no file, socket or connection behind', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { log: { level: 'error' } } });
  const jwks = await startJwksServer(t);
  const receiver = await startUpstreamServer(t);
  const turn = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index += 1) {
      // Every other reload takes new keys and a new receiver.
      proxy.rewrite(
        index % 2 === 0
          ? {
              log: { level: 'error' },
              upstream: { url: receiver.url },
              issuers: { core: { jwks_url: jwks.url, jwks: { timeout: '2s' } } },
            }
          : { log: { level: 'error' }, issuers: { core: { jwks: { timeout: '2s' } } } },
      );
      await proxy.app.reload();
      t.equal((await proxy.request({ path: '/orders' })).status, 200);
    }
  };
  await turn(4);
  await until('quiet', () => proxy.receiver.open() + receiver.open() <= 1);
  const before = openDescriptors(process.pid);
  await turn(40);
  await until('as few open connections to receivers as before', () => proxy.receiver.open() + receiver.open() <= 1);
  await until('as few open files as before', () => openDescriptors(process.pid) <= before + 2);
  t.pass('quiet');
});
