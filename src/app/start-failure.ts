import { codeOf } from '../lib/errors.js';
import type { HostPort } from '../config/types.js';

/** Why the proxy does not start; the kind settles the exit code. */
export interface StartFailure {
  /** `invalid`: what was read is wrong. `unreadable`: a file may not be read as it is. `unavailable`: out of reach. */
  readonly kind: 'invalid' | 'unreadable' | 'unavailable';
  /** One line each, for people. */
  readonly messages: readonly string[];
  /**
   * The same for a terminal: with the lines of the config that they are about. Each says by itself that it is an error.
   */
  readonly shown?: readonly string[];
  /** What to do about it, one line each. */
  readonly hints?: readonly string[];
}

/** Names one reason. */
export function startFailure(kind: StartFailure['kind'], ...messages: readonly string[]): StartFailure {
  return { kind, messages };
}

const words: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EADDRNOTAVAIL: 'the address is none of this machine',
  EACCES: 'this user may not listen on this port',
  EPERM: 'this user may not give the socket to that owner',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name could not be looked up',
};

/** Why a server cannot listen. */
export function listenFailure(who: string, { host, port }: HostPort, error: unknown): StartFailure {
  const code = codeOf(error);
  const place = `${host.includes(':') ? `[${host}]` : host}:${String(port)}`;
  return startFailure('unavailable', `${who} cannot listen on ${place}: ${words[code] ?? 'it failed'} (${code})`);
}
