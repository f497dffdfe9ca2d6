/** `workers: 2`: how long a stop may take. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { childrenOf } from '../../support/linux.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import { connectRaw, requestBytes } from '../../support/raw-client.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';

t.setTimeout(120_000);

t.test('a stop has one grace for all listeners, and does not wait for a worker that is stuck', async (t) => {
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, 'token.of.workload\n', { mode: 0o600 });
  for (const isStuck of [false, true]) {
    const receiver = await startUpstreamServer(t);
    receiver.behave(() => undefined);
    const target = {
      name: 'orders',
      prefix: '/orders',
      url: receiver.url,
      token: 'own',
      allow: [{ methods: ['GET'], path: '/**' }],
    };
    const own = await startProxyProcess(t, {
      receiver,
      config: {
        workers: 2,
        shutdown: { delay: '1s', grace: '8s' },
        egress: { listen: { port: 0 }, tokens: { own: { file: tokenFile } }, targets: [target] },
      },
    });
    const egressPort = await own.process.port('egress');
    for (let opened = 0; opened < 2; opened += 1) {
      const inbound = await connectRaw(own.port);
      inbound.write(requestBytes(own.port, { path: '/orders', headers: own.authorization() }));
    }
    const outbound = await connectRaw(egressPort);
    outbound.write(requestBytes(egressPort, { path: '/orders/slow' }));
    await until('all to be under way', () => receiver.requests.length === 3);
    const [stuck = 0] = childrenOf(own.process.pid);
    if (isStuck) process.kill(stuck, 'SIGSTOP');
    const startedMs = performance.now();
    own.signal('SIGTERM');
    t.same(await own.process.exited, { code: 0, signal: null });
    const tookMs = performance.now() - startedMs;
    t.ok(tookMs > 8_900, 'not before the end of the grace');
    t.ok(tookMs < 14_000, `within 5 s behind delay and grace: ${tookMs.toFixed(0)} ms, stuck: ${String(isStuck)}`);
  }
});
