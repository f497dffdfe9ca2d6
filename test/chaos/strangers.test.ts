import t from 'tap';
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { startAttackedService } from './load-process.js';
import { attacks, beHonest, containerHeap, percentile, routes, withstand } from './strangers.js';

t.setTimeout(600_000);

async function start(t: Scope): Promise<ProxyProcess> {
  const { url } = await startAttackedService(t, 20, 1);
  return startProxyProcess(t, {
    env: containerHeap,
    config: { upstream: { url }, routes, store: { memory: {} }, probes: { host: '127.0.0.1', port: 0 } },
  });
}

for (const attack of attacks) {
  t.test(`${attack.name}: the process lives, and an honest caller is served`, async (t) => {
    const proxy = await start(t);
    const restUntil = performance.now() + 500;
    const rest = await beHonest(proxy, () => performance.now() >= restUntil);
    const { took, failed, peakMiB } = await withstand(proxy, [attack], 4_000);
    t.ok(proxy.process.isRunning(), proxy.process.output().slice(-500));
    t.comment(
      `${attack.name}: honest p99 ${percentile(took, 0.99).toFixed(0)} ms of ${String(took.length)} requests, ` +
        `${percentile(rest.took, 0.99).toFixed(0)} ms at rest; at most ${String(peakMiB)} MiB`,
    );
    t.same(failed, [], 'no request of the honest caller failed');
    t.not(took.length, 0);
    if (attack.name.includes('WebSockets')) {
      t.not(await proxy.metric('sallyport_websocket_closes_total'), 0, 'they were opened');
    }
  });
}
