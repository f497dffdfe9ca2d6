import type { RedisAddress } from '../client/settings.js';
import { replyCode } from '../scripts/errors.js';

/** Where a node of a Cluster says that keys are served. */
export interface Redirection {
  /** `moved`: from now on. `ask`: this once, while they are handed over. */
  readonly kind: 'moved' | 'ask';
  readonly address: RedisAddress;
}

/** Reads `MOVED 3999 10.0.0.7:6381` and `ASK …`. An empty host is the one that was asked. */
export function readRedirection(error: unknown, asked: RedisAddress): Redirection | null {
  const code = replyCode(error);
  if (!(error instanceof Error) || (code !== 'MOVED' && code !== 'ASK')) return null;
  const [, host, port] = /^\S+ \d+ (\S*):(\d+)$/.exec(error.message) ?? [];
  if (host === undefined || port === undefined) return null;
  return {
    kind: code === 'ASK' ? 'ask' : 'moved',
    address: { host: host === '' || host === '?' ? asked.host : host, port: Number(port) },
  };
}
