import type { Denial, Reason } from '../denial.js';
import { httpStatusOf } from '../grpc/status.js';
import { valuesOf } from '../http/header-values.js';
import { revocationReasons } from '../revocation/match.js';
import type { Complete, StoredResponse } from './record.js';

/** How the upstream's part of a reserved request ended, as far as the proxy can know. */
export type UpstreamOutcome =
  /** Lookup, connect or TLS failed, or the gate refused: not one byte went out. */
  | { readonly kind: 'not_dispatched' }
  /** Some byte went out, and then there was no status: reset, time-out, cut-off. */
  | { readonly kind: 'no_status' }
  /** A status came, the body did not end, or is over the limit, or its headers are. */
  | { readonly kind: 'cut_off'; readonly status: number; readonly outcome: string | null }
  /** The whole response. */
  | { readonly kind: 'whole'; readonly response: StoredResponse; readonly outcome: string | null };

/** What the proxy does with the reservation. */
export type Settlement =
  | { readonly kind: 'release' }
  | { readonly kind: 'mark' }
  | { readonly kind: 'complete'; readonly state: Complete['state']; readonly response: StoredResponse };

/** What a route says of its upstream. */
export interface SettlementRules {
  /** Statuses that mean *not applied*. */
  readonly releaseOn: ReadonlySet<number>;
  /** Whether the upstream's `Idempotency-Outcome` counts (levels 1 and 2). */
  readonly trustsOutcome: boolean;
  /** Whether an earlier attempt is in doubt. */
  readonly takenOver: boolean;
  /** Whether it was a gRPC call, which ends with a status of its own in the trailers. */
  readonly isGrpc: boolean;
}

/**
 * Turns an outcome into what is written. In doubt the key stays taken: a write that may have happened
 * is never run again by us.
 */
export function settle(outcome: UpstreamOutcome, rules: SettlementRules): Settlement {
  switch (outcome.kind) {
    case 'not_dispatched':
      return releaseKey(rules);
    case 'no_status':
      return { kind: 'mark' };
    case 'cut_off':
      if (isNotApplied(outcome.status, outcome.outcome, rules)) return releaseKey(rules);
      return { kind: 'complete', state: 'tombstone', response: statusOnly(outcome.status) };
    case 'whole': {
      const status = rules.isGrpc ? grpcStatusOf(outcome.response) : outcome.response.status;
      // A response that ends without a status is no response, as one that never came.
      if (status === null) return { kind: 'mark' };
      if (isNotApplied(status, outcome.outcome, rules)) return releaseKey(rules);
      return { kind: 'complete', state: 'completed', response: outcome.response };
    }
  }
}

/**
 * Returns the upstream's own word on what became of the write, lower-case; `null` where it says nothing. Where it says
 * several things, one of them `committed`, it is that: in doubt a key stays taken.
 */
export function statedOutcome(rawHeaders: readonly string[]): string | null {
  const words = valuesOf(rawHeaders, 'idempotency-outcome').map((value) => value.trim().toLowerCase());
  return words.find((word) => word === 'committed') ?? words[0] ?? null;
}

function grpcStatusOf({ status, headers, trailers, body }: StoredResponse): number | null {
  return httpStatusOf({ status, headers, trailers: trailers ?? [], hasBody: body.byteLength > 0 });
}

/** What is kept of a response that cannot be shown again. */
export function statusOnly(status: number): StoredResponse {
  return { status, headers: [], body: new Uint8Array() };
}

/** The upstream's own word, where the route trusts it, beats the meaning of the status. */
function isNotApplied(status: number, outcome: string | null, rules: SettlementRules): boolean {
  if (rules.trustsOutcome && outcome === 'committed') return false;
  if (rules.trustsOutcome && outcome === 'not-applied') return true;
  return rules.releaseOn.has(status);
}

/** What this attempt did not do, the one before may have done: then the key stays taken, for the same request. */
function releaseKey({ takenOver }: SettlementRules): Settlement {
  return { kind: takenOver ? 'mark' : 'release' };
}

/** With these reasons not one byte was written: there was no connection, or the gate refused on it. */
const notSent: ReadonlySet<Reason> = new Set([
  'upstream_unreachable',
  'header_too_large_for_http2',
  'overloaded',
  'shutting_down',
  'store_unavailable',
  'token_expired',
  ...revocationReasons,
]);

/** Whether an upstream that failed for this reason got nothing of the request. */
export function certainlyNotSent({ reason }: Denial): boolean {
  return notSent.has(reason);
}
