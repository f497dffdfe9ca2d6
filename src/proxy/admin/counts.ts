import { type Reason, reasons } from '../../decision/denial.js';
import type { Metrics, Outcome } from '../../ports.js';
import type { Counts } from './status.js';

/** Counts for `/status` what passes on to the metrics. */
export interface CountedMetrics extends Metrics {
  readonly counts: () => Counts;
}

/** Totals since the start, over every route: a series of the metrics ends with its route, these do not. */
export function countMetrics(metrics: Metrics): CountedMetrics {
  const requests: Record<Outcome, number> = { forwarded: 0, replayed: 0, denied: 0, failed: 0, shadow: 0 };
  const denials = new Map<Reason, number>(reasons.map((reason) => [reason, 0]));
  const shadowDenials = new Map<Reason, number>();
  const reloads = { ok: 0, failed: 0 };
  let stripped = 0;
  return {
    request: (route, outcome, durationMs, overheadMs) => {
      requests[outcome] += 1;
      metrics.request(route, outcome, durationMs, overheadMs);
    },
    denial: (reason) => {
      denials.set(reason, (denials.get(reason) ?? 0) + 1);
      metrics.denial(reason);
    },
    shadowDenial: (route, reason) => {
      shadowDenials.set(reason, (shadowDenials.get(reason) ?? 0) + 1);
      metrics.shadowDenial(route, reason);
    },
    strippedFields: (count) => {
      stripped += count;
      metrics.strippedFields(count);
    },
    jwksRefresh: metrics.jwksRefresh,
    configReload: (result) => {
      reloads[result] += 1;
      metrics.configReload(result);
    },
    webSocketClosed: metrics.webSocketClosed,
    connectionEnded: metrics.connectionEnded,
    counts: () => ({
      requests: { ...requests },
      denials: Object.fromEntries([...denials].filter(([, count]) => count > 0)),
      shadow_denials: Object.fromEntries(shadowDenials),
      stripped_fields: stripped,
      config_reloads: { ...reloads },
    }),
  };
}
