import { responseOf, isFailure, type Denial, type Reason } from '../../decision/denial.js';
import type { Form } from '../../decision/decide/forms.js';
import type { AttemptsMade } from '../../decision/egress/attempts.js';
import { headerValue, type RequestHead } from '../../decision/http/request-head.js';
import { plainAddress } from '../../lib/ip-ranges.js';
import type { Clock } from '../../ports/system.js';
import type { KeyWait } from '../../ports/auth.js';
import type { RequestTrace } from '../../ports/tracing.js';
import type { Metrics, Outcome, Protocol, RequestRecord } from '../../ports/observability.js';
import type { ShadowPass } from '../../decision/route/shadow-mode.js';
import { unread, type Admission, type Findings, type Peer } from '../auth/authorize-request.js';
import { newRequestId } from './ids.js';
import { switchingProtocols } from '../upstream/http1/response-head.js';

/** Where the end of each request is told. */
export interface Recorder {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly requestLog: (record: RequestRecord) => void;
  /** Which proxy asks, where requests are only asked about. */
  readonly asksAs?: Form;
  /** The client behind trusted proxies, by the other end of the connection and `X-Forwarded-For`. */
  readonly findClient: (peer: string, forwardedFor: string) => string;
}

/** Of a request that nobody has looked at yet. */
const nothingFound: Findings = { requestId: '', ...unread };

/** What is learnt of a request on its way, for its record. Times are of the monotonic clock, in milliseconds. */
export class ExchangeSummary {
  findings: Findings = nothingFound;
  startedMs = NaN;
  /** Why it ended early, or `null`. */
  reason: Reason | null = null;
  /** Permissions, or claims of a session, for want of which it ended; `null` where it was not for that. */
  missing: readonly string[] | null = null;
  /** Why it would have ended, where shadow mode let it go on. */
  shadow: ShadowPass | null = null;
  /** Id of the reservation, where there is one. */
  record: string | null = null;
  /** Whether the response was one that was kept. */
  isReplayed = false;
  /** What was tried on the calling side; `null` on the other one. */
  attempts: AttemptsMade | null = null;
  /** When the upstream was asked, or `null`. */
  askedMs: number | null = null;
  /** When its response was complete or given up, or `null`. */
  respondedMs: number | null = null;
  /** `null` where it is not traced. */
  trace: RequestTrace | null = null;
  /** For its trace: of keys that it waited for. */
  keyWaits: KeyWait[] | null = null;
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Its turn has come: it may have waited long behind others. */
  begin(): void {
    this.startedMs = this.clock.monotonic();
  }

  /** It ends here. */
  refused({ reason, missing }: Denial): void {
    this.reason = reason;
    this.missing = missing ?? null;
  }

  /** A later step would have refused it: it goes on without identity and reservation. */
  passInShadow(passed: Admission): void {
    this.findings = passed;
    this.shadow = passed.shadow;
    this.record = null;
  }

  /** The request's id; a new one where it ended before it could be read. */
  identify(): string {
    if (this.findings.requestId === '') this.findings = { ...this.findings, requestId: newRequestId() };
    return this.findings.requestId;
  }

  /** What did not go out is asked again where shadow mode lets it pass: the time is that from the first asking on. */
  upstreamAsked(): void {
    this.askedMs ??= this.clock.monotonic();
    this.respondedMs = null;
  }

  upstreamResponded(): void {
    this.respondedMs ??= this.clock.monotonic();
  }
}

/** A request that ended. */
interface EndedRequest {
  readonly head: RequestHead;
  readonly peer: Peer;
  /** What the caller was sent; 0 where nothing was. */
  readonly status: number;
  /** What the caller was sent of a gRPC call, 0 to 16; `null` where that was none. */
  readonly grpcStatus: number | null;
  readonly summary: ExchangeSummary;
  /** Of the monotonic clock, milliseconds. */
  readonly endedMs: number;
}

const maxPathLength = 8 * 1024;

/** From this status on something failed; below it something was refused. */
const firstFailure = 500;

/** Where these end a request, the upstream was not reached. */
const notReached: ReadonlySet<Reason> = new Set<Reason>([
  'overloaded',
  'upstream_unreachable',
  'header_too_large_for_http2',
]);

/** Keys that only some log lines have, in the order in which they are written. */
type OptionalPart =
  'permissions' | 'missing_permissions' | 'attempts' | 'not_retried' | 'client_certificate' | 'asked_by' | 'span_id';
type GrowingRecord = Omit<RequestRecord, OptionalPart> & {
  -readonly [Part in OptionalPart]?: NonNullable<Pick<RequestRecord, OptionalPart>>[Part];
};

/** Logs and counts one request at its end. A bug where its client is looked for takes neither away. */
export function recordRequest(recorder: Recorder, request: EndedRequest): void {
  let client = '';
  try {
    client = clientOf(recorder, request.head, request.peer);
  } finally {
    recordOf(recorder, request, client);
  }
}

function recordOf(
  recorder: Recorder,
  { head, peer, status, grpcStatus, summary, endedMs }: EndedRequest,
  client: string,
): void {
  const requestId = summary.identify();
  const { findings, trace } = summary;
  const { route, traceId } = findings;
  const { reason: ended, missing, shadow, record, isReplayed, startedMs, askedMs, respondedMs } = summary;
  const principal = findings.principal ?? shadow?.principal ?? null;
  const durationMs = endedMs - startedMs;
  const elsewhereMs = askedMs === null ? 0 : (respondedMs ?? endedMs) - askedMs;
  // A connection that was switched was forwarded, however it ended.
  const isSwitched = status === switchingProtocols;
  const wasAsked = askedMs !== null && (ended === null || !notReached.has(ended));
  const decision =
    isReplayed && ended === null ? 'replayed' : outcomeOf(isSwitched ? null : ended, wasAsked, shadow !== null);
  const reason = decision === 'shadow' && shadow !== null ? shadow.denial.reason : ended;
  const routeName = route?.name ?? 'none';
  recorder.metrics.request(routeName, decision, status, durationMs, durationMs - elsewhereMs, trace?.exemplar());
  if (grpcStatus !== null) recorder.metrics.grpcCall(routeName, grpcStatus);
  if (ended !== null && !isSwitched) count(recorder.metrics, routeName, ended);
  if (shadow !== null) recorder.metrics.shadowDenial(routeName, shadow.denial.reason);
  const entry: GrowingRecord = {
    request_id: requestId,
    route: routeName,
    method: head.method,
    path: pathOf(head.target),
    decision,
    reason,
    kind: principal?.kind ?? null,
    issuer: principal?.issuerName ?? null,
    subject: principal?.subject ?? null,
    key_id: (principal?.keyId ?? '') || null,
    status,
    duration_ms: rounded(durationMs),
    upstream_ms: wasAsked ? rounded(elsewhereMs) : null,
    record,
    trace_id: trace?.traceId ?? traceId,
    protocol: protocolOf(head),
    grpc_status: grpcStatus,
    client_address: client || null,
    user_agent: headerValue(head, 'user-agent'),
  };
  const certificate = findings.clientCertificate ?? null;
  if (certificate !== null) entry.client_certificate = certificate;
  if (shadow !== null || route?.mode === 'shadow') {
    entry.permissions = principal?.permissions ?? null;
    entry.missing_permissions = shadow?.missing ?? missing;
  } else if (missing !== null) entry.missing_permissions = missing;
  if (summary.attempts !== null) {
    entry.attempts = summary.attempts.count;
    entry.not_retried = summary.attempts.notRetried;
  }
  if (recorder.asksAs !== undefined) {
    entry.asked_by = recorder.asksAs;
    recorder.metrics.decided(recorder.asksAs, decision);
  }
  if (trace !== null) {
    entry.span_id = trace.spanId;
    const scheme = peer.encrypted ? 'https' : 'http';
    const httpVersion = entry.protocol.slice('HTTP/'.length);
    trace.end({ scheme, httpVersion, status, grpcStatus, decision, reason }, endedMs);
  }
  recorder.requestLog(entry);
}

function count(metrics: Metrics, route: string, reason: Reason): void {
  if (isFailure(reason)) metrics.failure(route, reason);
  else metrics.denial(route, reason);
}

/** Of a head that could not be read, or that names another version, HTTP/1.1: it came as lines, not as frames. */
function protocolOf({ httpVersion, endsStream }: RequestHead): Protocol {
  if (endsStream !== undefined) return 'HTTP/2';
  return httpVersion === '1.0' ? 'HTTP/1.0' : 'HTTP/1.1';
}

/** The client's address; empty where its socket has none. */
export function clientOf(
  { findClient }: Pick<Recorder, 'findClient'>,
  head: RequestHead,
  { remoteAddress, trusted }: Peer,
): string {
  const forwardedFor = trusted ? headerValue(head, 'x-forwarded-for') : null;
  return forwardedFor === null ? plainAddress(remoteAddress) : findClient(remoteAddress, forwardedFor);
}

/** Where the caller leaves while the upstream works, nothing was denied and nothing failed here. */
function outcomeOf(reason: Reason | null, wasAsked: boolean, isShadow: boolean): Outcome {
  if (reason === null || (reason === 'caller_gone' && wasAsked)) return isShadow ? 'shadow' : 'forwarded';
  return responseOf(reason).status >= firstFailure ? 'failed' : 'denied';
}

/** Queries may hold secrets, and so may what stands before the host of an absolute target. */
function pathOf(target: string): string {
  const end = target.search(/[?#]/);
  const path = (end === -1 ? target : target.slice(0, end)).slice(0, maxPathLength);
  return path.startsWith('/') ? path : path.replace(/^.*@/, '');
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
