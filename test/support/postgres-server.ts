/** A real PostgreSQL server on loopback, with a cluster of its own. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort } from './listening.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';
import { until } from './until.js';

const run = promisify(execFile);
const installed = '/usr/lib/postgresql';
/** Belongs to the user that the package made. */
const home = '/var/lib/postgresql';

export interface PostgresServer {
  readonly url: string;
  /** A pool of the test's own. */
  readonly pool: pg.Pool;
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Starts one that ends with the test. It refuses to run as root, and is then run as the user that its package made. */
export async function startPostgres(t: Scope): Promise<PostgresServer> {
  const bin = join(installed, readdirSync(installed).sort((a, b) => Number(b) - Number(a))[0] ?? '', 'bin');
  const user = process.getuid?.() === 0 ? packageUser() : null;
  const data = join(tempDir(t), 'data');
  mkdirSync(data, { mode: 0o700 });
  if (user !== null) {
    chownSync(join(data, '..'), user.uid, user.gid);
    chownSync(data, user.uid, user.gid);
  }
  const as = { cwd: data, ...(user ?? {}) };
  await run(join(bin, 'initdb'), ['-D', data, '-U', 'orders', '--auth=trust', '--no-sync'], as);
  const port = await freePort();
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=120'];
  const child = spawn(join(bin, 'postgres'), ['-D', data, ...settings.flatMap((setting) => ['-c', setting])], {
    stdio: 'ignore',
    ...as,
  });
  const url = `postgres://orders@127.0.0.1:${port}/postgres`;
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on('error', () => undefined);
  t.teardown(async () => {
    await pool.end();
    const exited = once(child, 'exit');
    child.kill('SIGQUIT');
    await exited;
  });
  await until('postgres', async () => {
    if (child.exitCode !== null) throw new Error(`postgres ended with ${child.exitCode}`);
    return pool.query('select 1').then(
      () => true,
      () => false,
    );
  });
  return { url, pool };
}

function packageUser(): User {
  const { uid, gid } = statSync(home);
  return { uid, gid };
}
