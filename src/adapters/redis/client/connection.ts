import { isIP } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { readPassword } from './password-file.js';
import type { RedisAddress, RedisSettings } from './settings.js';

/** Milliseconds to connect, TLS included. */
export const connectTimeoutMs = 2_000;
/** Milliseconds that a connection we are done with has to end by itself. */
const disconnectTimeoutMs = 100;

/**
 * Creates a connection that never queues and never resends: a command that got no answer may have run, and what is sent
 * later than its deadline answers nobody. It connects when told to, and again after each loss.
 *
 * @param pauseMs how long to wait before the next attempt.
 */
export function createConnection(settings: RedisSettings, address: RedisAddress, pauseMs: () => number): Redis {
  const { topology, username } = settings;
  const connection: Redis = new Redis({
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
export function createQuestioner(settings: RedisSettings, address: RedisAddress): Redis {
  return new Redis({ ...transportOf(settings, address), retryStrategy: () => null });
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
  return password === null ? {} : { password };
}
