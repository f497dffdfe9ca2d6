import { codeOf } from '../lib/errors.js';
import type { AddressInfo } from 'node:net';
import type { HostPort } from '../config/types.js';
import { accept, refuse, type Result } from '../lib/result.js';
import type { Log } from '../ports/system.js';
import { startFailure, type StartFailure } from './start-failure.js';

export type ListenerName = 'proxy' | 'admin' | 'probes';

const words: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EADDRNOTAVAIL: 'the address is none of this machine',
  EACCES: 'this user may not listen on this port',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name could not be looked up',
};

/** Opens a listener and logs where; refuses with the reason where the address cannot be had. */
export async function openListener(
  name: ListenerName,
  { host, port }: HostPort,
  listen: () => Promise<AddressInfo>,
  log: Log,
): Promise<Result<HostPort, StartFailure>> {
  try {
    const address = await listen();
    log.info('listening', { listener: name, host: address.address, port: address.port });
    return accept({ host: address.address, port: address.port });
  } catch (error) {
    return refuse(listenFailure(`the ${name} listener`, { host, port }, error));
  }
}

/** Why a server cannot listen. */
export function listenFailure(who: string, { host, port }: HostPort, error: unknown): StartFailure {
  const code = codeOf(error);
  const place = `${host.includes(':') ? `[${host}]` : host}:${String(port)}`;
  return startFailure('unavailable', `${who} cannot listen on ${place}: ${words[code] ?? 'it failed'} (${code})`);
}
