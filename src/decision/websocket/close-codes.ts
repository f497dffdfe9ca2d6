import { isOurs, responseOf, type Denial, type Reason } from '../denial.js';

/** How a WebSocket connection may end: the closed set that `sallyport_websocket_closes_total` counts. */
export const closeCauseLabels = [
  'caller',
  'receiver',
  'caller_lost',
  'receiver_lost',
  'malformed',
  'idle',
  'expired',
  'revoked',
  'forbidden',
  'shutdown',
] as const;

export type CloseCauseLabel = (typeof closeCauseLabels)[number];

/** Why one ended, and what its ends are told. */
export interface CloseCause {
  readonly as: CloseCauseLabel;
  /** For the log; `null` where one of the ends wanted it so. */
  readonly reason: Reason | null;
  /** Of our Close frame (RFC 6455 §7.4). Those from 4000 on are ours, after the statuses of HTTP. */
  readonly code: number;
  /** At most 123 bytes of ASCII. */
  readonly text: string;
}

/** Endings that take no judgement. */
export const closeCauses = {
  /** One of the ends said so, in a Close frame that was passed on as it came. */
  caller: { as: 'caller', reason: null, code: 1000, text: '' },
  upstream: { as: 'receiver', reason: null, code: 1000, text: '' },
  callerLost: { as: 'caller_lost', reason: 'caller_gone', code: 1001, text: '' },
  upstreamLost: { as: 'receiver_lost', reason: 'upstream_failed', code: 1011, text: 'upstream failed' },
  malformedByCaller: { as: 'malformed', reason: 'framing', code: 1002, text: 'malformed frame' },
  malformedByUpstream: { as: 'malformed', reason: 'upstream_failed', code: 1002, text: 'malformed frame' },
  idle: { as: 'idle', reason: 'upstream_timeout', code: 4408, text: 'idle timeout' },
  expired: { as: 'expired', reason: 'token_expired', code: 4401, text: 'unauthorized' },
  sessionExpired: { as: 'expired', reason: 'session_expired', code: 4401, text: 'unauthorized' },
  shutdown: { as: 'shutdown', reason: 'shutting_down', code: 1001, text: 'going away' },
} as const satisfies Record<string, CloseCause>;

/** What a later judgement of the opening handshake means for its connection; `null` where it goes on. */
export function closeCauseOf(denial: Denial): CloseCause | null {
  const { reason } = denial;
  if (isOurs(denial)) return null;
  if (reason === 'token_expired') return closeCauses.expired;
  if (reason === 'session_expired') return closeCauses.sessionExpired;
  return responseOf(reason).status === 401
    ? { as: 'revoked', reason, code: 4401, text: 'unauthorized' }
    : { as: 'forbidden', reason, code: 4403, text: 'forbidden' };
}
