import { readTarget } from '../../decision/http/request-target.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import { placeOf } from '../../decision/route/route-table.js';
import type { Tracer } from '../../ports/tracing.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { Peer } from '../auth/authorize-request.js';
import type { ExchangeSummary } from './access-log-record.js';

/** A request that is decided. */
interface DecidedRequest {
  readonly head: RequestHead;
  readonly received: { readonly connection: { readonly peer: Peer } };
  readonly activeConfig: ActiveConfig;
}

/**
 * Begins the trace of a request that is to have one, and keeps it with what is learnt of the request. The span begins
 * when the request's turn came, but whether there is one is decided only now, when it is known who asks.
 */
export function beginTrace(
  tracer: Tracer,
  { head, received, activeConfig }: DecidedRequest,
  summary: ExchangeSummary,
): void {
  const { peer } = received.connection;
  const { traceId, callerTraceparent: traceparent = null, principal, route } = summary.findings;
  const trace = tracer.begin({
    traceparent,
    traceId,
    // On the calling side nobody but the workload can be the caller.
    isTrusted: principal !== null || peer.trusted || activeConfig.asksNobody === true,
    startedMs: summary.startedMs,
  });
  if (trace === null) return;
  summary.trace = trace;
  const { listen, table } = activeConfig.config;
  const target = route === null ? null : readTarget(head.target, listen.maxTargetBytes);
  const placed = target?.ok === true ? placeOf(table, head.method, target.value.segments) : null;
  const path = placed !== null && placed.route === route ? placed.path : route?.paths[0];
  trace.place({
    method: head.method,
    path: path?.text ?? null,
    route: route?.name ?? 'none',
    isGrpc: route?.isGrpc === true,
  });
  for (const { issuer, startedMs, endedMs, result } of summary.keyWaits ?? []) {
    trace.part('fetch key', startedMs, endedMs, { 'sallyport.issuer': issuer, 'sallyport.result': result });
  }
}
