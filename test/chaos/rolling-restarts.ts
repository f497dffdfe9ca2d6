/** Two proxies behind HAProxy, which are restarted in turn while callers go on: none of them may notice. */
import { freePort } from '../support/listening.js';
import { runHaproxy } from '../support/haproxy.js';
import { connectRaw, request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { until } from '../support/until.js';
import { reportOf, startCallers, startFleet, type Fleet, type RestartsReport } from './restarts.js';

export interface RollingOptions {
  readonly restarts: number;
  /** Between two restarts. */
  readonly requests: number;
  /** Long enough for HAProxy to see that one is no longer ready: two of its checks, 400 ms. */
  readonly delay: string;
  /** HAProxy's `http-reuse`. */
  readonly reuse: 'safe' | 'always';
  readonly callers: number;
}

export async function restartInTurn(
  t: Scope,
  { restarts, requests, delay, reuse, callers }: RollingOptions,
): Promise<RestartsReport> {
  const fleet = await startFleet(t, 2, delay);
  const [port, statsPort] = [await freePort(), await freePort()];
  runHaproxy(t, configOf(fleet, { port, statsPort, reuse }));
  await until('HAProxy listens', async () =>
    connectRaw(port).then(
      ({ end }) => {
        end();
        return true;
      },
      () => false,
    ),
  );
  const running = startCallers([port], fleet.bearer, callers);
  for (let i = 0; i < restarts; i += 1) {
    await until('enough was asked', () => running.count() >= requests * (i + 1), 120_000);
    // As whoever rolls them out in turn does: not the next one before the last is known to be ready.
    await until('HAProxy has both', async () => (await upCount(statsPort)) === 2, 30_000);
    await fleet.instances[i % 2]?.restart();
  }
  return reportOf(fleet, await running.end(), 0);
}

/** How many of the proxies HAProxy sends requests to. */
async function upCount(statsPort: number): Promise<number> {
  const { text } = await request(statsPort, { path: '/;csv' });
  return text.split('\n').filter((line) => /^proxies,s\d/.test(line) && line.split(',').includes('UP')).length;
}

function configOf(
  { instances }: Fleet,
  { port, statsPort, reuse }: { port: number; statsPort: number; reuse: string },
): string {
  const servers = instances.map(
    ({ port: own, adminPort }, i) =>
      `  server s${String(i)} 127.0.0.1:${String(own)} check port ${String(adminPort)} inter 200ms fall 2 rise 2`,
  );
  return [
    'defaults',
    '  mode http',
    '  timeout connect 2s',
    '  timeout client 30s',
    '  timeout server 30s',
    '  timeout tunnel 30s',
    '  retries 3',
    '  option redispatch',
    'frontend callers',
    `  bind 127.0.0.1:${String(port)}`,
    '  default_backend proxies',
    'backend proxies',
    '  balance roundrobin',
    `  http-reuse ${reuse}`,
    '  option httpchk',
    '  http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost',
    ...servers,
    'frontend stats',
    `  bind 127.0.0.1:${String(statsPort)}`,
    '  stats enable',
    '  stats uri /',
    '',
  ].join('\n');
}
