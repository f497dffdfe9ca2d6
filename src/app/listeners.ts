import type { AddressInfo } from 'node:net';
import type { HostPort } from '../config/types.js';
import { accept, refuse, type Result } from '../lib/result.js';
import type { Log } from '../ports/system.js';
import { listenFailure, type StartFailure } from './start-failure.js';

export type ListenerName = 'proxy' | 'admin' | 'probes' | 'egress' | 'decide';

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
