import { spawn } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import { projectDir } from '../support/project-dir.js';
import { freePort } from '../support/listening.js';
import { request, type RequestInput } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { baseConfig, merge, seriesValue, type ConfigTree } from '../support/proxy-process.js';
import { stopAtEnd, type Child } from './child.js';

/** The proxy, and where its metrics are. */
export interface Proxy extends Child {
  readonly adminPort: number;
}

export interface SallyportOptions {
  /** Where it writes its log, as a container's would be; a file of its own unless given. */
  readonly logFile?: string;
  /** A built checkout; this one unless given. */
  readonly checkout?: string;
  /** Whether that knows the whole config; of one that may not, what it certainly knows is left. */
  readonly keepsConfig?: boolean;
  readonly program?: Program;
  /** How it is reached, where it speaks TLS. */
  readonly tls?: ConnectionOptions;
}

/** How a process is started, where it is not this Node.js and the checkout. */
export interface Program {
  readonly node: string;
  readonly flags: readonly string[];
  readonly main: string;
  readonly env: Readonly<Record<string, string>>;
}

/** By which the image starts Node.js with a small young generation. */
export const imageHeapOption = '--max-semi-space-size=4';

/** What every load asks for, in words that all versions know. */
const orders = {
  name: 'list-orders',
  methods: ['GET'],
  path: '/orders',
  subjects: ['checkout', 'reporting'],
  permissions: ['orders:read'],
};

/** `serve`, up when it answers this request with 200. */
export async function startSallyport(
  t: Scope,
  config: ConfigTree,
  ready: RequestInput,
  options: SallyportOptions = {},
): Promise<Proxy> {
  const { logFile, checkout = projectDir, keepsConfig = checkout === projectDir, tls } = options;
  const { program = { node: process.execPath, flags: [], main: join(checkout, 'dist/main.js'), env: {} } } = options;
  const dir = tempDir(t);
  const configFile = join(dir, 'sallyport.yaml');
  // At level warn nobody is told which port the system gave.
  const [port, adminPort] = [await freePort(), await freePort()];
  const settings = merge({ listen: { port }, admin: { port: adminPort }, log: { level: 'info' } }, config);
  // An earlier commit knows no settings that came since, and none of the routes that have some.
  const older = { ...settings, reload: undefined, routes: [orders] };
  writeFileSync(configFile, baseConfig(keepsConfig ? settings : older));
  const log = openSync(logFile ?? join(dir, 'log'), 'a');
  const child = spawn(program.node, [...program.flags, program.main, 'serve', '--config', configFile], {
    stdio: ['ignore', log, 'inherit'],
    env: { ...process.env, ...program.env },
  });
  closeSync(log);
  stopAtEnd(t, child);
  const over = tls === undefined ? {} : { tls };
  await until('the proxy is ready', async () => (await request(port, ready, over).catch(() => null))?.status === 200);
  return { pid: child.pid ?? 0, port, adminPort };
}

/** What its metrics say now, by series: `sallyport_denials_total{reason="framing"}`. */
export async function readMetrics({ adminPort }: Proxy): Promise<(series: string) => number> {
  const { text } = await request(adminPort, { path: '/metrics' });
  return (series) => seriesValue(text, series);
}
