/** Real `redis-server` processes on loopback. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { freePort } from './listening.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';
import { until } from './until.js';

export interface RedisServer {
  readonly port: number;
  readonly dir: string;
  /** Of the process that runs now. */
  readonly pid: () => number;
  /** A client of the test's own, for looking and for breaking things. */
  readonly client: Redis;
  /** Ends the process at once, as a crash does. */
  readonly kill: (signal?: NodeJS.Signals) => Promise<void>;
  /** Starts it again on the same port and data. */
  readonly restart: () => Promise<void>;
  /** Stops the process: it takes connections and bytes, and says nothing. */
  readonly freeze: () => void;
  readonly thaw: () => void;
}

export interface RedisServerOptions {
  readonly port?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** How the test's own client connects, where that takes more than the port. */
  readonly client?: Pick<RedisOptions, 'tls' | 'password' | 'username'>;
  /** Arguments of `redis-server` that stand in the place of the fit ones, such as a Sentinel's. */
  readonly instead?: (dir: string, port: number) => readonly string[];
  /**
   * Whether it has its settings in a file, as servers under a Sentinel do: what that makes of them, such as whose
   * replica it is, counts when it is started again.
   */
  readonly keepsConfig?: boolean;
}

type Connection = Omit<RedisOptions, 'replyMapping'>;

/** Settings that a fit server has. Append-only with every write synced: a killed server forgets nothing. */
const fit = [
  '--appendonly',
  'yes',
  '--appendfsync',
  'always',
  '--save',
  '',
  '--maxmemory-policy',
  'noeviction',
  '--repl-diskless-sync-delay',
  '0',
];

/** Starts a server that ends with the test. `settings` are arguments of `redis-server` and win over the fit ones. */
export async function startRedis(
  t: Scope,
  settings: readonly string[] = [],
  options: RedisServerOptions = {},
): Promise<RedisServer> {
  const dir = tempDir(t);
  const port = options.port ?? (await freePort());
  const whole = options.instead?.(dir, port) ?? [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    dir,
    ...fit,
    ...settings,
  ];
  const args = options.keepsConfig === true ? [configFile(dir, whole)] : whole;
  const connection: Connection = {
    host: '127.0.0.1',
    port,
    lazyConnect: true,
    disconnectTimeout: 50,
    ...options.client,
  };
  let child = run();
  const client = new Redis({ ...connection, retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  t.teardown(async () => {
    client.disconnect();
    await end('SIGKILL');
  });
  await ready();
  return {
    port,
    dir,
    pid: () => child.pid ?? 0,
    client,
    kill: (signal = 'SIGKILL') => end(signal),
    restart: async () => {
      child = run();
      await ready();
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
  };

  function run(): ChildProcess {
    return spawn('redis-server', args, { stdio: 'ignore', env: { ...process.env, ...options.env } });
  }

  async function ready(): Promise<void> {
    await until(`redis-server on ${String(port)}`, async () => {
      if (child.exitCode !== null) throw new Error(`redis-server ended with ${String(child.exitCode)}`);
      return answers(connection);
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

/** Writes arguments as the lines that they stand for. */
function configFile(dir: string, args: readonly string[]): string {
  const file = join(dir, 'redis.conf');
  const words = args.map((arg) => (arg.startsWith('--') ? `\n${arg.slice(2)}` : `"${arg}"`));
  writeFileSync(file, `${words.join(' ').trimStart()}\n`);
  return file;
}

/** Starts a server that copies another, and waits until it has. */
export async function startReplica(
  t: Scope,
  primaryPort: number,
  settings: readonly string[] = [],
): Promise<RedisServer> {
  const replica = await startRedis(t, ['--replicaof', '127.0.0.1', String(primaryPort), ...settings]);
  await until('the replica has copied its primary', async () =>
    (await replica.client.info('replication')).includes('master_link_status:up'),
  );
  return replica;
}

/** Whether it answers, be it that we are not known to it. */
async function answers(connection: Connection): Promise<boolean> {
  const probe = new Redis({
    ...connection,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
  });
  probe.on('error', () => undefined);
  try {
    await probe.connect();
    await probe.ping();
    return true;
  } catch (error) {
    return error instanceof Error && /NOAUTH|NOPERM/.test(error.message);
  } finally {
    probe.disconnect();
  }
}
