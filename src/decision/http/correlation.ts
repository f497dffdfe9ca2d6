import { isTraceparent } from './trace-context.js';

/** By what a request is followed across services. `null` where the caller sent nothing that can be kept. */
export interface Correlation {
  readonly requestId: string | null;
  readonly traceparent: string | null;
  readonly tracestate: string | null;
}

/** A caller's request id goes to logs and answers as it came: nothing in it may forge either. */
const requestId = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * Keeps what is sound of the caller's fields, their lines combined; `replaced` counts what was sent and is not kept.
 */
export function readCorrelation(
  sentRequestId: string | undefined,
  sentTraceparent: string | undefined,
  sentTracestate: string | undefined,
): Correlation & { readonly replaced: number } {
  const keepsRequestId = sentRequestId !== undefined && requestId.test(sentRequestId);
  const keepsTrace = sentTraceparent !== undefined && isTraceparent(sentTraceparent);
  let replaced = 0;
  if (sentRequestId !== undefined && !keepsRequestId) replaced++;
  if (sentTraceparent !== undefined && !keepsTrace) replaced++;
  if (sentTracestate !== undefined && !keepsTrace) replaced++;
  return {
    requestId: keepsRequestId ? sentRequestId : null,
    traceparent: keepsTrace ? sentTraceparent : null,
    // A trace state belongs to the parent it came with (W3C Trace Context §3.3).
    tracestate: keepsTrace ? (sentTracestate ?? null) : null,
    replaced,
  };
}
