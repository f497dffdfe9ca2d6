/** What a route may ask for that only who forwards a request can see to. */
import type { ReservationRules } from '../route/policy.js';

/** What an operator may accept to do without. */
export const acceptable = ['unreserved', 'reused_tokens', 'connections', 'assertion'] as const;

export type Acceptance = (typeof acceptable)[number];

/** One thing that a decision alone cannot see to. */
interface DecideLimit {
  /** What the route does, in words behind its name. */
  readonly what: string;
  /** By which word an operator accepts that nobody sees to it. */
  readonly acceptance: Exclude<Acceptance, 'assertion'>;
}

interface AskedOfRoute {
  readonly reservation: Pick<ReservationRules, 'key' | 'singleUse'> | null;
  /** Whether what is let through may last, as WebSockets and gRPC calls do. */
  readonly opensConnections: boolean;
}

const reserves: DecideLimit = { what: 'reserves writes', acceptance: 'unreserved' };
const usesTokensOnce: DecideLimit = { what: 'takes a token once', acceptance: 'reused_tokens' };
const staysOpen: DecideLimit = {
  what: 'lets connections stay open, which are authorized again',
  acceptance: 'connections',
};

/** Names what of a route's policy, or of one request to it, a decision alone cannot see to. */
export function limitsOf({ reservation, opensConnections }: AskedOfRoute): readonly DecideLimit[] {
  return [
    ...(reservation !== null && reservation.key !== null ? [reserves] : []),
    ...(reservation?.singleUse === true ? [usesTokensOnce] : []),
    ...(opensConnections ? [staysOpen] : []),
  ];
}
