/** What the machine under a proxy does to it. */
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { freePort } from '../support/listening.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { baseConfig } from '../support/proxy-process.js';
import type { Setup } from './outages-setup.js';
import { outages } from './outages.js';

const backToNormal = ({ machine }: Setup): void => {
  machine.set({});
};

const hourMs = 3_600_000;

export const clockOutages = outages<Setup>([
  {
    name: 'jumps forwards by an hour',
    asks: { read: ['401'], write: ['401'], public: ['200'] },
    reasons: ['token_expired'],
    remark:
      'Tokens are judged by this clock; ages of keys, time-outs and leases are not. `doctor` compares it with the issuer’s',
    begin: ({ machine }) => {
      machine.set({ offByMs: hourMs });
    },
    end: backToNormal,
  },
  {
    name: 'jumps backwards by an hour',
    asks: { read: ['401'], write: ['401'], public: ['200'] },
    reasons: ['token_not_yet_valid'],
    remark:
      'New tokens seem to be from the future, and one that expired within that hour passes: keep the clock synchronised',
    begin: ({ machine }) => {
      machine.set({ offByMs: -hourMs });
    },
    end: backToNormal,
  },
]);

/** Outage in which the pages cannot be asked, or the log not be read: each has a test of its own. */
export interface MachineOutage {
  readonly name: string;
  readonly caller: string;
  readonly seen: string;
  readonly recovery: string;
}

export const machineOutages = {
  fullDisk: {
    name: 'the disk of the log is full',
    caller: '200',
    seen: '`log lines were dropped`, with their number, once there is room',
    recovery: 'with the first line that can be written',
  },
  closedLog: {
    name: 'the reader of the log leaves',
    caller: '200',
    seen: 'metrics as ever, and no log any more',
    recovery: 'none for the log: a pipe that was closed stays closed until a restart',
  },
  hungLog: {
    name: 'the reader of the log hangs',
    caller: '200',
    seen: '`log lines were dropped`, with their number, beyond 8 MiB (refusals beyond 4 MiB)',
    recovery: 'when it reads on',
  },
  noDescriptors: {
    name: 'no file descriptors are left',
    caller: 'new connections are closed without an answer; on those that are open, 200 or 503 `upstream-unreachable`',
    seen: '`upstream_unreachable`; `process_open_fds` near `process_max_fds` before that',
    recovery: 'when some are given back',
  },
} as const satisfies Readonly<Record<string, MachineOutage>>;

export interface LoggingProxy {
  readonly child: ChildProcess;
  readonly ask: () => Promise<number | null>;
  /** Pages of the operators. */
  readonly metrics: () => Promise<string>;
  readonly isRunning: () => boolean;
}

/** A proxy whose standard output is what the test gives it: its ports are known beforehand. */
export async function startLogging(t: Scope, stdout: 'pipe' | number): Promise<LoggingProxy> {
  const key = rsaKey();
  const [receiver, jwks] = [await startUpstreamServer(t), await startJwksServer(t, { keys: [key] })];
  const [port, adminPort] = [await freePort(), await freePort()];
  const configFile = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(
    configFile,
    baseConfig({
      listen: { port },
      admin: { port: adminPort },
      upstream: { url: receiver.url },
      issuers: { core: { jwks_url: jwks.url } },
      log: { refusals_per_second: null },
    }),
  );
  const stdio: StdioOptions = ['ignore', stdout, 'ignore'];
  const child = spawn(process.execPath, [join(projectDir, 'dist/main.js'), 'serve', '--config', configFile], { stdio });
  const exited = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const page = async (path: string): Promise<{ status: number; text: string } | null> =>
    request(adminPort, { path }).catch(() => null);
  await until('ready', async () => (await page('/readyz'))?.status === 200);
  const bearer = mintToken({ key });
  return {
    child,
    ask: async () =>
      request(port, { path: '/orders', headers: { Authorization: `Bearer ${bearer}` } }).then(
        ({ status }) => status,
        () => null,
      ),
    metrics: async () => (await page('/metrics'))?.text ?? '',
    isRunning: () => child.exitCode === null && child.signalCode === null,
  };
}
