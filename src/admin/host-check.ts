import { isIP } from 'node:net';
import { isLoopback } from '../lib/ip-ranges.js';

/**
 * Whether a `Host` header names the admin listener itself: a loopback name, the configured host or the address that the
 * connection came in on. Any other name may be a web page whose DNS entry was pointed here (DNS rebinding), which would
 * read `/status` with the operator's browser. The port is not compared: port forwarding changes it, and a rebound page
 * is betrayed by its name alone.
 */
export function isOwnHost(given: string, configuredHost: string, localAddress: string | undefined): boolean {
  const host = hostOf(given);
  if (host === null) return false;
  return isLoopback(host) || host === configuredHost.toLowerCase() || host === plainAddress(localAddress ?? '');
}

/** Host without its port, lower-case, an IPv6 address without its brackets; `null` where it is malformed. */
function hostOf(given: string): string | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?$/i.exec(given);
  return (match?.[1] ?? match?.[2])?.toLowerCase() ?? null;
}

/** Writes an IPv4 address that a dual-stack socket shows as `::ffff:10.0.0.1` as the caller does. */
function plainAddress(address: string): string {
  const mapped = address.toLowerCase().startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
  return isIP(mapped) === 0 ? address : mapped.toLowerCase();
}
