/** `workers: 2`: how long a stop may take. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { childrenOf, isRunning } from '../../support/linux.js';
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

/** Has a process end by an error that nobody takes, once it is sent the signal. */
const throwing = "process.on('SIGUSR2', () => { throw new RangeError('too far'); })";

interface Ending {
  readonly by: string;
  readonly signals: readonly NodeJS.Signals[];
  readonly code: number;
}

const endings: readonly Ending[] = [
  { by: 'a second signal', signals: ['SIGTERM', 'SIGTERM'], code: 143 },
  { by: 'an error that nobody takes', signals: ['SIGUSR2'], code: 1 },
];

for (const { by, signals, code } of endings) {
  t.test(`an end at once by ${by} leaves no worker behind, not even one that does not run`, async (t) => {
    const own = await startProxyProcess(t, {
      config: { workers: 2, shutdown: { delay: '1s', grace: '8s' } },
      env: { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(throwing)}"` },
    });
    const workers = childrenOf(own.process.pid);
    t.equal(workers.length, 2);
    const [stuck = 0] = workers;
    process.kill(stuck, 'SIGSTOP');
    for (const [at, signal] of signals.entries()) {
      // Two that come at once are one.
      if (at > 0) await until('the first signal is taken', () => own.logs().some(({ msg }) => msg === 'shutting down'));
      own.signal(signal);
    }
    await until('the primary to be gone', () => !isRunning(own.process.pid));
    await delay(1_000);
    const left = workers.filter(isRunning);
    t.same(left, []);
    for (const pid of left) process.kill(pid, 'SIGKILL');
    t.same(await own.process.exited, { code, signal: null });
  });
}
