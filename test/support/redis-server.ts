/** Real `redis-server` processes on loopback. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';
import { until } from './until.js';

export interface RedisServer {
  readonly port: number;
  readonly dir: string;
  /** A client of the test's own, for looking and for breaking things. */
  readonly client: Redis;
  readonly process: () => ChildProcess;
  /** Ends the process at once, as a crash does. */
  readonly kill: (signal?: NodeJS.Signals) => Promise<void>;
  /** Starts it again on the same port and data. */
  readonly restart: () => Promise<void>;
}

/** Settings that a fit server has. Append-only with every write synced: a killed server forgets nothing. */
const fit = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--maxmemory-policy', 'noeviction'];

/** Starts a server that ends with the test. `settings` are arguments of `redis-server` and win over the fit ones. */
export async function startRedis(t: Scope, settings: readonly string[] = [], options: { readonly port?: number } = {}): Promise<RedisServer> {
  const dir = tempDir(t);
  const port = options.port ?? await freePort();
  let child = run();
  const client = new Redis({ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  t.teardown(async () => {
    client.disconnect();
    await end('SIGKILL');
  });
  await ready();
  return {
    port,
    dir,
    client,
    process: () => child,
    kill: (signal = 'SIGKILL') => end(signal),
    restart: async () => {
      child = run();
      await ready();
    },
  };

  function run(): ChildProcess {
    return spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, ...fit, ...settings], { stdio: 'ignore' });
  }

  async function ready(): Promise<void> {
    await until(`redis-server on ${String(port)}`, async () => {
      if (child.exitCode !== null) throw new Error(`redis-server ended with ${String(child.exitCode)}`);
      return accepts(port);
    });
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGCONT');
    child.kill(signal);
    await exited;
  }
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function accepts(port: number): Promise<boolean> {
  const probe = new Redis({ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  probe.on('error', () => undefined);
  try {
    await probe.connect();
    return (await probe.ping()) === 'PONG';
  } catch {
    return false;
  } finally {
    probe.disconnect();
  }
}
