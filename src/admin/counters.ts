import type { Reason } from '../decision/denial.js';
import { nothingStripped, totalStripped } from '../decision/http/stripped-headers.js';
import { noConnectionEndings } from '../decision/limits/idle-connections.js';
import type { Metrics, Outcome } from '../ports/observability.js';
import type { Counts } from './status.js';

/** Counts for `/status` what passes on to the metrics. */
interface CountedMetrics extends Metrics {
  readonly counts: () => Counts;
}

/** Totals since the start, over every route: a series of the metrics ends with its route, these do not. */
export function countMetrics(metrics: Metrics): CountedMetrics {
  const requests: Record<Outcome, number> = { forwarded: 0, replayed: 0, denied: 0, failed: 0, shadow: 0 };
  const denials = new Map<Reason, number>();
  const failures = new Map<Reason, number>();
  const shadowDenials = new Map<Reason, number>();
  const connectionsEnded = noConnectionEndings();
  const reloads = { ok: 0, failed: 0 };
  const grpcCalls = new Map<number, number>();
  let stripped = 0;
  return {
    request: (route, outcome, status, durationMs, overheadMs, exemplar) => {
      requests[outcome] += 1;
      metrics.request(route, outcome, status, durationMs, overheadMs, exemplar);
    },
    decided: metrics.decided,
    denial: (route, reason) => {
      increment(denials, reason);
      metrics.denial(route, reason);
    },
    failure: (route, reason) => {
      increment(failures, reason);
      metrics.failure(route, reason);
    },
    shadowDenial: (route, reason) => {
      increment(shadowDenials, reason);
      metrics.shadowDenial(route, reason);
    },
    grpcCall: (route, status) => {
      increment(grpcCalls, status);
      metrics.grpcCall(route, status);
    },
    strippedHeaders: (dropped) => {
      // As of almost every request.
      if (dropped === nothingStripped) return;
      stripped += totalStripped(dropped);
      metrics.strippedHeaders(dropped);
    },
    jwksRefresh: metrics.jwksRefresh,
    discoveryRefresh: metrics.discoveryRefresh,
    jwksWait: metrics.jwksWait,
    introspection: metrics.introspection,
    introspectionLookup: metrics.introspectionLookup,
    configReload: (result) => {
      reloads[result] += 1;
      metrics.configReload(result);
    },
    webSocketClosed: metrics.webSocketClosed,
    connectionEnded: (ending) => {
      connectionsEnded[ending] += 1;
      metrics.connectionEnded(ending);
    },
    counts: () => ({
      requests: { ...requests },
      denials: Object.fromEntries(denials),
      failures: Object.fromEntries(failures),
      shadow_denials: Object.fromEntries(shadowDenials),
      grpc_calls: Object.fromEntries(grpcCalls),
      connections_ended: { ...connectionsEnded },
      stripped_fields: stripped,
      config_reloads: { ...reloads },
    }),
  };
}

function increment<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
