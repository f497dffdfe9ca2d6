import { isIP } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { Connector } from './connector.js';
import type { RedisAddress, RedisSettings } from './settings.js';
import { DatabaseRefused, DeadlinePassed, hidePassword, replyCode } from '../scripts/errors.js';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** Milliseconds to connect, TLS included. */
export const connectTimeoutMs = 2_000;
/** Milliseconds that a connection we are done with has to end by itself. */
const disconnectTimeoutMs = 100;

/**
 * Creates a connection that never queues and never resends: a command that got no reply may have run, and what is sent
 * later than its deadline answers nobody. It connects when told to, and again after each loss.
 *
 * @param pauseMs how long to wait before the next attempt.
 * @param limits for a connection on which nothing large is asked for.
 */
export function createConnection(
  settings: RedisSettings,
  address: RedisAddress,
  pauseMs: () => number,
  limits: { readonly maxReplyBytes?: number } = {},
): Redis {
  const { topology, username } = settings;
  const connection: Redis = new Redis({
    ...limits,
    ...transportOf(settings, address),
    db: topology.kind === 'single' ? topology.database : 0,
    ...(username === null ? {} : { username }),
    ...passwordOf(settings),
    retryStrategy: () => {
      Object.assign(connection.options, passwordOf(settings), encryptionOf(settings, address));
      return pauseMs();
    },
  });
  return connection;
}

/** Creates a connection for questions about who is primary: without credentials, and gone when it is lost. */
export function createDiscoveryClient(settings: RedisSettings, address: RedisAddress): Redis {
  return new Redis({ ...transportOf(settings, address), retryStrategy: () => null });
}

/** Connects, and rejects with the first thing that went wrong: ioredis says only that the connection is closed. */
export async function connectOnce(connection: Redis): Promise<void> {
  let reason: Error | null = null;
  connection.on('error', (error: Error) => (reason ??= error));
  await connection.connect().catch((error: unknown) => {
    throw reason ?? error;
  });
}

/**
 * Makes sure that a new connection leads to the database of the settings: it is in database 0 where the server refuses
 * another one, and ioredis says so to nobody who waits. To be awaited before anything else is asked.
 *
 * @throws `DatabaseRefused`, or what ioredis throws.
 */
export async function useDatabase(connection: Redis, { topology }: RedisSettings): Promise<void> {
  if (topology.kind !== 'single' || topology.database === 0) return;
  try {
    await connection.select(topology.database);
  } catch (error) {
    // Other refusals, such as NOAUTH, say by themselves what is wrong.
    const isOfDatabase = ['NOPERM', 'ERR'].includes(replyCode(error) ?? '');
    throw isOfDatabase ? new DatabaseRefused(topology.database, error) : error;
  }
}

/** Says who we are on a connection that was made without saying it. */
export async function authenticate(connection: Redis, settings: RedisSettings): Promise<void> {
  const { password } = passwordOf(settings);
  if (password === undefined) return;
  await (settings.username === null ? connection.auth(password) : connection.auth(settings.username, password));
}

function transportOf(settings: RedisSettings, { host, port }: RedisAddress) {
  return {
    host,
    port,
    Connector,
    ...encryptionOf(settings, { host }),
    connectTimeout: connectTimeoutMs,
    disconnectTimeout: disconnectTimeoutMs,
    lazyConnect: true,
    enableOfflineQueue: false,
    // What a server is gets looked at by ourselves, before anything is asked of it.
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
    protocol: 2,
    noDelay: true,
    keepAlive: 10_000,
  } satisfies RedisOptions;
}

function encryptionOf({ tls }: RedisSettings, { host }: Pick<RedisAddress, 'host'>): Pick<RedisOptions, 'tls'> {
  return tls === null ? {} : { tls: tlsOf(tls, host) };
}

function tlsOf(
  { ca: authorities, serverName }: NonNullable<RedisSettings['tls']>,
  host: string,
): NonNullable<RedisOptions['tls']> {
  const ca = authorities();
  // An address is no server name (RFC 6066 §3); the certificate is still checked against it.
  const name = serverName ?? (isIP(host) === 0 ? host : null);
  return {
    rejectUnauthorized: true,
    ...(ca === null ? {} : { ca }),
    ...(name === null ? {} : { servername: name }),
  };
}

function passwordOf({ passwordFile }: RedisSettings): { readonly password?: string } {
  const password = passwordFile === null ? null : readPassword(passwordFile);
  if (password === null) return {};
  hidePassword(password);
  return { password };
}

/**
 * Ends by the deadline, with what the work ended with or with `DeadlinePassed`. What comes later is dropped. Timers are
 * called before what arrived is read: after a turn of the event loop that took long, as in a process that has just
 * started, the reply may be there unread. So what has arrived by the deadline is read first, and counts.
 */
export function withDeadline<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    let reading: NodeJS.Immediate | null = null;
    const timer = setTimeout(() => {
      reading = setImmediate(() => reject(new DeadlinePassed()));
    }, deadlineMs);
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      if (reading !== null) clearImmediate(reading);
    });
  });
}

/** Longest password, bytes. */
const maxPasswordBytes = 4_096;

/**
 * Reads a password when a connection needs it: secrets rotate, and a connection is made at once. One line end at its
 * end is not part of it.
 *
 * @returns `null` where there is no such file, or it is no regular file or too long: the server will then refuse us,
 *   which is what the store's state says, and the file may be back at the next attempt.
 */
export function readPassword(path: string): string | null {
  let file: number;
  try {
    // Not blocking: a FIFO in its place would hold up everything.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    if (!fstatSync(file).isFile()) return null;
    const bytes = Buffer.alloc(maxPasswordBytes + 1);
    const length = readSync(file, bytes);
    return length > maxPasswordBytes ? null : bytes.toString('utf8', 0, length).replace(/\r?\n$/, '');
  } catch {
    return null;
  } finally {
    closeSync(file);
  }
}
