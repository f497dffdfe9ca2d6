/** W3C Trace Context (level 2): the headers that let one request be followed across services. */

/** `version "-" trace-id "-" parent-id "-" trace-flags`; versions after 00 may go on with another `-`. */
const traceparent = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-[\x21-\x7e]{0,200})?$/;

const zeroTraceId = '0'.repeat(32);
const zeroParentId = '0'.repeat(16);

/** Random bytes that a new `traceparent` takes: 16 for the trace, 8 for the parent. */
export const traceparentBytes = 24;

/**
 * `random` (level 2, §3.2.2.5.2), and not `sampled`: that says that the caller may have recorded the trace
 * (§3.2.2.5.1), and nobody has recorded one that begins here.
 */
const newTraceFlags = '02';

/** Where the trace id begins, behind a version of two digits and a hyphen, and how long it is. */
const traceIdStart = 3;

/** Tells whether a `traceparent` can be passed on (§3.2.2): in lower case, no zero ids, any version but ff. */
export function isTraceparent(text: string): boolean {
  const [, version, traceId, parentId, rest] = traceparent.exec(text) ?? [];
  if (version === undefined || version === 'ff') return false;
  return traceId !== zeroTraceId && parentId !== zeroParentId && (rest === undefined || version !== '00');
}

/** The id of the whole trace, of a `traceparent` that can be passed on; `null` where there is none. */
export function traceIdOf(traceparent: string | null): string | null {
  return traceparent === null ? null : traceparent.slice(traceIdStart, traceIdStart + zeroTraceId.length);
}

/** What a sound `traceparent` says of the span that a request belongs to. */
interface ParentSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether whoever sent it records the trace (§3.2.2.5.1). */
  readonly isSampled: boolean;
}

/** Reads a `traceparent` that can be passed on. */
export function parentSpanOf(traceparent: string): ParentSpan {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  return { traceId, spanId, isSampled: (parseInt(flags, 16) & 1) === 1 };
}

/** Names a span that is recorded: `random` and `sampled` are said of a trace that begins here, `sampled` of others. */
export function sampledTraceparent(traceId: string, spanId: string, beginsHere: boolean): string {
  return `00-${traceId}-${spanId}-${beginsHere ? '03' : '01'}`;
}

/** Puts a `traceparent` in the place of the one that stands among headers, names and values in turn. */
export function withTraceparent(headers: readonly string[], traceparent: string): string[] {
  const changed = headers.slice();
  const index = changed.findIndex((text, at) => at % 2 === 0 && text.toLowerCase() === 'traceparent');
  if (index === -1) changed.push('traceparent', traceparent);
  else changed[index + 1] = traceparent;
  return changed;
}

/** Makes a `traceparent` of `traceparentBytes` random bytes, in hexadecimal digits. */
export function createTraceparent(random: string): string {
  return `00-${notZero(random.slice(0, zeroTraceId.length))}-${notZero(random.slice(zeroTraceId.length))}-${newTraceFlags}`;
}

/** Zero ids are invalid; a fault of the random source must not make an upstream throw the header away. */
function notZero(id: string): string {
  return id === zeroTraceId || id === zeroParentId ? `${id.slice(1)}1` : id;
}

/** By what a request is followed across services. `null` where the caller sent nothing that can be kept. */
export interface Correlation {
  readonly requestId: string | null;
  readonly traceparent: string | null;
  readonly tracestate: string | null;
}

/** A caller's request id goes to logs and answers as it came: nothing in it may forge either. */
const requestId = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * Keeps what is sound of the caller's headers, their lines combined; `replaced` counts what was sent and is not kept.
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
