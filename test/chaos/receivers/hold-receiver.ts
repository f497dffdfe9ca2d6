/** One of the receivers behind a real `serve`, with a real Redis. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { runSeed } from '../../fuzz/draw.js';
import { startRedis } from '../../support/redis-server.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { merge, startProxyProcess, type ConfigTree, type ProxyProcess } from '../../support/proxy-process.js';
import type { RealReceiver } from './real-receiver.js';
import { sendTraffic, trafficConfig, type TrafficResult } from './traffic.js';

export interface TrafficOptions {
  readonly requests: number;
  readonly mayFail?: boolean;
  readonly config?: ConfigTree;
}

interface PassedTraffic extends TrafficResult {
  readonly proxy: ProxyProcess;
  readonly bearer: (subject: string) => string;
}

/** Sends the traffic through a proxy of its own. */
export async function passTraffic(
  t: Test,
  { name, start }: RealReceiver,
  { requests, mayFail = false, config = {} }: TrafficOptions,
): Promise<PassedTraffic> {
  const ledger = join(tempDir(t), 'ledger');
  writeFileSync(ledger, '');
  const port = await start(t, { LEDGER: ledger });
  const redis = await startRedis(t);
  const proxy = await startProxyProcess(t, {
    config: merge(merge(trafficConfig, config), {
      upstream: { url: `http://127.0.0.1:${String(port)}` },
      store: { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } },
    }),
  });
  const bearers = new Map<string, string>();
  const bearer = (subject: string): string => {
    const known =
      bearers.get(subject) ?? `Bearer ${proxy.token({ sub: subject, exp: Math.floor(Date.now() / 1000) + 7_000 })}`;
    bearers.set(subject, known);
    return known;
  };
  const began = performance.now();
  const result = await sendTraffic({
    port: proxy.port,
    bearer,
    ledger,
    seed: runSeed,
    requests,
    mayFail,
    onProgress: (count) => {
      if (count % 10_000 === 0) t.comment(`${name}: ${String(count)} of ${String(requests)}`);
    },
  });
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  t.comment(
    `${name}: ${String(result.sent)} requests in ${seconds} s, ${String(result.writes)} writes; ${JSON.stringify(result.answers)}`,
  );
  return { ...result, proxy, bearer };
}

/** Asserts that nobody got what is another one's, that no write ran twice, and that every place was given back. */
export async function holdReceiver(t: Test, receiver: RealReceiver, options: TrafficOptions): Promise<void> {
  const { wrong, writes, proxy, bearer } = await passTraffic(t, receiver, options);
  const { name } = receiver;
  t.same(wrong, [], `${name}: SALLYPORT_SEED=${String(runSeed)}`);
  t.ok(writes > options.requests / 50, 'writes ran');
  await until('every place is given back', async () => (await proxy.metric('sallyport_requests_in_flight')) === 0);
  const served = async (): Promise<boolean> =>
    (await proxy.request({ path: '/any?id=', headers: { Authorization: bearer('ann') } })).status === 200;
  await until('a caller is served', served);
  t.equal(await proxy.metric('sallyport_duplicate_dispatches_total'), 0);
}
