import type { Readable } from 'node:stream';
import { denial, type Denial } from '../../decision/denial.js';
import type { AttemptsMade } from '../../decision/egress/attempts.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import { clientHeaders } from '../../decision/http/response-headers.js';
import { describeBug } from '../../lib/errors.js';
import type { Result } from '../../lib/result.js';
import type { KeyAsker, KeyWait } from '../../ports/auth.js';
import type { ActiveConfig } from '../auth/active-config.js';
import { authorizeRequest, type Admission, type Findings, type AuthResult } from '../auth/authorize-request.js';
import type { ReservedWrites } from '../idempotency/coordinator.js';
import type { Plan } from '../idempotency/plan-reservation.js';
import type { PipelinedRequest } from '../inbound/client-connection.js';
import type {
  ReceivedRequest,
  ResponseWriter,
  ResponseWriterHost,
  WholeResponse,
} from '../inbound/received-request.js';
import { framedBody, openBody, type RequestBody } from '../inbound/request-body.js';
import type { ResponseSink } from '../upstream/call.js';
import type { UpstreamOperation } from '../upstream/pool/pool.js';
import { clientOf, ExchangeSummary, nothingFound, recordRequest } from './access-log-record.js';
import type { Lease } from './admission-control.js';
import { allowedRequest, withRenewedToken } from './credential-headers.js';
import type { Slot } from './concurrency.js';
import { beginTrace } from './begin-trace.js';
import { atTurnEnd } from './event-loop-batch.js';
import type { ExchangeDeps } from './exchange-deps.js';
import type { GrpcCall } from './grpc-calls.js';
import { newRequestId } from './ids.js';
import { passedTrailers } from './passed-trailers.js';
import { upstreamRequest } from './upstream-request.js';

/**
 * How far a request is:
 *
 * - `waiting`: for the requests before it on its connection
 * - `deciding`: nobody knows yet whether it may go on
 * - `admitted`: it may, and has a place among the requests in flight
 * - `forwarding`: it is on its way to the upstream, or already there
 * - `responding`: the client gets the upstream's response
 * - `responded`: the client was given the whole response, or the last of what it gets
 * - `finished`: recorded
 */
type Phase = 'waiting' | 'deciding' | 'admitted' | 'forwarding' | 'responding' | 'responded' | 'finished';

/**
 * One request from its head to the end of its response, in the order in which it goes: `start`, `decide`, `acquire`,
 * `plan`, `forward` (or `reserve`, or `openWebSocket`), `onHead`, `onData`, `onEnd` or `onError`, `finish`. A refusal
 * may come in the place of each. Whatever happens, it is recorded once.
 */
export class Exchange implements PipelinedRequest, ResponseSink, KeyAsker, ResponseWriterHost {
  private readonly deps: ExchangeDeps;
  readonly received: ReceivedRequest;
  readonly head: RequestHead;
  private readonly writer: ResponseWriter;
  private readonly summary: ExchangeSummary;
  private phase: Phase = 'waiting';
  /** Taken once, by `decide`: nothing before that needs it. */
  activeConfig!: ActiveConfig;
  findings: Findings = nothingFound;
  private admission: Admission | null = null;
  private brokenBy: Denial | null = null;
  private lease: Lease | null = null;
  private upload: RequestBody | null = null;
  /** A place among requests whose body is yet to come; given back when it has no connection any more. */
  private streamingSlot: Slot | null = null;
  private operation: UpstreamOperation | null = null;
  /** Of a gRPC call: ends it when its caller waits no longer, and has it authorized again while it lasts. */
  private call: GrpcCall | null = null;

  constructor(deps: ExchangeDeps, received: ReceivedRequest) {
    this.deps = deps;
    this.received = received;
    this.head = received.head;
    this.writer = received.createWriter(this);
    this.summary = new ExchangeSummary(deps.clock);
  }

  /** Its turn on the connection has come. What one turn of the event loop brings is decided together, at its end. */
  start(): void {
    if (!this.received.begin(() => this.finish(), this.fail)) return;
    this.phase = 'deciding';
    this.summary.begin();
    const { brokenBy } = this;
    if (brokenBy === null) atTurnEnd(this.decide);
    else this.attempt(() => this.refuse(brokenBy));
  }

  private readonly decide = (): void => {
    if (this.phase !== 'deciding') return;
    try {
      // Asked now and not before: it may have waited long behind others, and what was granted then may be revoked.
      this.activeConfig = this.deps.activeConfig();
      const { peer } = this.received.connection;
      const decision = authorizeRequest(this.head, peer, this.activeConfig, this.deps.clock.now(), undefined, this);
      // At once where it is known already: a promise would cost a turn of the event loop.
      if (!(decision instanceof Promise)) this.acquire(decision);
      else decision.then((settled) => this.attempt(() => this.acquire(settled)), this.fail);
    } catch (error) {
      this.fail(error);
    }
  };

  /** Takes a place among the requests in flight. */
  private acquire(decision: AuthResult): void {
    if (this.phase !== 'deciding') return;
    this.findings = decision.ok ? decision.value : decision.error;
    this.deps.metrics.strippedHeaders(this.findings.stripped);
    if (this.deps.tracer !== null) beginTrace(this.deps.tracer, this, this.summary);
    if (!decision.ok) {
      this.refuse(decision.error.denial);
      return;
    }
    const admission = decision.value;
    const acquired = this.deps.acquire(admission);
    if (!(acquired instanceof Promise)) this.onAcquired(admission, acquired);
    else acquired.then((settled) => this.attempt(() => this.onAcquired(admission, settled)), this.fail);
  }

  private onAcquired(admission: Admission, acquired: Result<Lease, Denial>): void {
    if (!acquired.ok) {
      this.refuse(acquired.error);
      return;
    }
    if (this.phase !== 'deciding') {
      // The client left while the store was asked.
      acquired.value.release();
      return;
    }
    this.lease = acquired.value;
    this.admission = admission;
    if (admission.principal !== null) this.received.connection.markTrusted();
    this.summary.shadow = admission.shadow;
    this.phase = 'admitted';
    if (admission.route.isGrpc) {
      this.call = this.deps.grpcCalls.begin(this, this.head, this.received.connection.peer, admission);
    }
    if (this.brokenBy === null) this.plan(admission);
    else this.refuse(this.brokenBy);
  }

  /** Plans what becomes of it, and sends it on its way. */
  private plan(admission: Admission): void {
    const plan = this.deps.plan(admission, this.activeConfig, this.head);
    if (plan.kind === 'forward') {
      if (plan.admission !== admission) this.passInShadow(plan.admission);
      this.forward(plan.admission, null);
    } else if (plan.kind === 'refuse') {
      this.summary.record = plan.reservationId;
      this.refuse(plan.denial);
    } else if (this.deps.reserving !== null) this.reserve(this.deps.reserving, admission, plan);
  }

  /**
   * Streams it to the upstream. A body that is not here yet is sent as it comes while there is an early place for it,
   * and otherwise once there is something to send.
   *
   * @param read the body, where it was read before.
   */
  private forward(admission: Admission, read: Buffer | null): void {
    if (this.writer.allow !== undefined) {
      this.phase = 'responded';
      this.writer.allow(allowedRequest(admission, this.head.method, this.activeConfig, this.deps.clock));
      return;
    }
    if (admission.headers.upgrade !== null) {
      this.openWebSocket(admission);
      return;
    }
    const body = read ?? this.openBody(admission, admission.route.maxBodyBytes);
    this.phase = 'forwarding';
    const isWhole = body === null || Buffer.isBuffer(body);
    if (!isWhole && !body.isReceived()) this.streamingSlot = this.activeConfig.upstream.takeStreamingSlot();
    if (isWhole || this.streamingSlot !== null) {
      this.send(admission, body);
      return;
    }
    body.gather((whole) => {
      const gathered = whole === null ? body : framedBody(whole, admission.headers);
      this.attempt(() => this.send(admission, gathered));
    });
  }

  private send(admission: Admission, body: Readable | Buffer | null): void {
    // The client may have left while the body was read.
    if (this.phase !== 'forwarding') return;
    const { head, activeConfig, summary } = this;
    summary.upstreamAsked();
    const request = upstreamRequest(admission, head.method, body, activeConfig, summary.trace);
    this.operation = activeConfig.upstream.send(request, this);
  }

  /** Has the whole body read and the write reserved before it is sent on. */
  private reserve(reserving: ReservedWrites, admission: Admission, plan: Extract<Plan, { kind: 'reserve' }>): void {
    const { preparation, maxBodyBytes } = plan;
    this.summary.record = preparation.reservationId;
    this.phase = 'forwarding';
    const body = this.openBody(admission, maxBodyBytes);
    // What was dispatched keeps its place when the client leaves.
    const { lease } = this;
    lease?.retain();
    this.operation = reserving.start({
      admission,
      preparation,
      body,
      method: this.head.method,
      activeConfig: this.activeConfig,
      client: this,
      trace: this.summary.trace,
      onOver: () => lease?.release(),
    });
  }

  private openWebSocket(admission: Admission): void {
    const { writer, received, summary, head, activeConfig, lease } = this;
    const handshake = {
      admission,
      head,
      peer: received.connection.peer,
      activeConfig,
      upgrade: received.upgrade,
      response: writer,
      client: this,
      summary,
      releaseGlobal: () => lease?.releaseGlobal(),
    };
    this.deps.webSockets.take(handshake, (taken) => {
      if (!taken.ok) this.refuse(taken.error);
      // The client left, or a shutdown came, while the other processes were asked for a place.
      else if (this.isGone()) taken.value.cancel();
      else {
        this.phase = 'forwarding';
        this.operation = taken.value;
        taken.value.send(head.method);
      }
    });
  }

  private openBody(admission: Admission, maxBytes: number): RequestBody | null {
    const { headers } = admission;
    const { head, activeConfig } = this;
    if (!headers.hasBody) return null;
    this.upload = openBody(this.received, headers, {
      maxBytes,
      pace: this.deps.bodyPace,
      upstreamTimeoutMs: this.activeConfig.config.upstream.idleTimeoutMs,
      onBroken: (reason) => this.attempt(() => this.refuse(reason)),
      passedTrailers: (trailers) => passedTrailers('request', trailers, { admission, head, activeConfig }),
    });
    return this.upload;
  }

  upstreamAsked(): void {
    this.attempt(() => this.summary.upstreamAsked());
  }

  upstreamResponded(): void {
    this.attempt(() => this.summary.upstreamResponded());
  }

  onAttempts(made: AttemptsMade): void {
    this.summary.attempts = made;
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    if (this.phase !== 'forwarding') return;
    try {
      const { activeConfig, findings, deps } = this;
      const headers = clientHeaders(status, rawHeaders, activeConfig.headerRules, findings.requestId);
      const renewed = withRenewedToken(headers, findings.principal, activeConfig, deps.clock);
      this.phase = this.writer.begin(status, renewed) ? 'responded' : 'responding';
    } catch (error) {
      this.fail(error);
    }
  }

  onData(chunk: Buffer): boolean {
    if (this.phase !== 'responding') return true;
    try {
      return this.writer.write(chunk);
    } catch (error) {
      this.fail(error);
      return true;
    }
  }

  onEnd(trailers: readonly string[] | null): void {
    try {
      this.streamingSlot?.();
      this.summary.upstreamResponded();
      // The upstream answered without the rest of the body: held back, it would keep its place.
      this.upload?.destroy();
      if (this.phase !== 'responding') return;
      this.phase = 'responded';
      this.writer.end(trailers === null ? null : this.passedTrailers(trailers));
    } catch (error) {
      this.fail(error);
    }
  }

  /** What of the trailers of a response goes on to the caller; `null` where nothing does. */
  passedTrailers(trailers: readonly string[]): readonly string[] | null {
    const { admission, head, activeConfig } = this;
    return admission === null ? null : passedTrailers('response', trailers, { admission, head, activeConfig });
  }

  onError(reason: Denial): void {
    this.attempt(() => this.summary.upstreamResponded());
    this.attempt(() => this.refuse(reason));
  }

  /** Sends a whole response: the upstream's, or one that was kept. */
  respond({ status, headers, body, trailers, isReplayed }: WholeResponse): void {
    if (this.phase !== 'forwarding') return;
    try {
      this.summary.isReplayed = isReplayed;
      this.phase = 'responded';
      const sent = withRenewedToken(headers, this.findings.principal, this.activeConfig, this.deps.clock);
      this.writer.sendWhole(status, sent, body);
      this.writer.end(trailers === null ? null : this.passedTrailers(trailers));
    } catch (error) {
      this.fail(error);
    }
  }

  /** Answers with a problem document or, where a response has begun, breaks that off. */
  refuse(reason: Denial): void {
    if (this.isGone()) return;
    const hasBegun = this.phase === 'responding';
    this.summary.reason = reason.reason;
    this.summary.missing = reason.missing ?? null;
    this.phase = 'responded';
    this.leaveUpstream();
    if (reason.reason === 'caller_gone') this.writer.abort();
    else if (hasBegun) this.writer.breakOff(reason, this.identify());
    else this.writer.refuse(reason, this.identify(), this.upload !== null);
    // The response is handed over: who does not read it holds no place.
    this.releaseLease();
  }

  /** Refuses what was to be reserved first, and was not: there is no record of it. */
  refuseUnreserved(reason: Denial): void {
    this.attempt(() => {
      this.summary.record = null;
      this.refuse(reason);
    });
  }

  /** Refuses what was not sent on yet, or lets it go on with this body where the route is in shadow mode. */
  refuseUnsent(reason: Denial, body: Buffer): void {
    this.attempt(() => {
      const passed = this.isGone() ? null : (this.admission?.shadowAdmission(reason) ?? null);
      if (passed === null) {
        this.refuse(reason);
        return;
      }
      this.passInShadow(passed);
      this.forward(passed, body);
    });
  }

  /** A later step would have refused it: it goes on without identity and reservation. */
  private passInShadow(passed: Admission): void {
    this.findings = passed;
    this.summary.shadow = passed.shadow;
    this.summary.record = null;
  }

  /** A bug: the client learns nothing of it, and everybody else is served on. */
  readonly fail = (error: unknown): void => {
    this.deps.log.error('bug', { request_id: this.findings.requestId, ...describeBug(error) });
    if (this.phase === 'responded') this.writer.abort();
    else this.attempt(() => this.refuse(denial('internal')));
  };

  /** The response is over, or its connection: gives everything back and records it. */
  private finish(): void {
    if (this.phase === 'finished') return;
    try {
      if (this.summary.reason === null && !this.writer.isDelivered()) this.summary.reason = 'caller_gone';
      this.phase = 'finished';
      this.call?.end();
      this.leaveUpstream();
      this.releaseLease();
      this.identify();
      this.record();
    } catch (error) {
      this.fail(error);
    }
  }

  private record(): void {
    const { connection } = this.received;
    const { summary, findings, head } = this;
    const endedMs = this.deps.clock.monotonic();
    try {
      const [status, grpcStatus] = [this.writer.status(), this.writer.grpcStatus()];
      recordRequest(this.deps, { findings, head, peer: connection.peer, status, grpcStatus, summary, endedMs });
    } finally {
      connection.finish(this, endedMs);
    }
  }

  /** Stops what is under way upstream: nobody waits for it any more. */
  private leaveUpstream(): void {
    this.streamingSlot?.();
    this.operation?.cancel();
    this.upload?.destroy();
  }

  private releaseLease(): void {
    this.lease?.release();
    this.lease = null;
  }

  /** The request's id; a new one where it ended before it could be read. */
  private identify(): string {
    if (this.findings.requestId === '') this.findings = { ...this.findings, requestId: newRequestId() };
    return this.findings.requestId;
  }

  /** Whether nothing that is said from now on would be heard. */
  isGone(): boolean {
    return this.phase === 'responded' || this.phase === 'finished';
  }

  onKeyWait(wait: KeyWait): void {
    (this.summary.keyWaits ??= []).push(wait);
  }

  isReceived(): boolean {
    return this.writer.isReceived();
  }

  failBody(reason: Denial): void {
    // What breaks before the decision is refused after it: whose request it was, and on which route, is recorded.
    if (this.phase === 'waiting' || this.phase === 'deciding') this.brokenBy = reason;
    else this.attempt(() => this.refuse(reason));
  }

  shortenBodyTimeouts(): void {
    this.upload?.restartTimeout();
  }

  /** Ends it at the deadline of a shutdown: what was not sent on is answered so, the rest is broken off. */
  cutOff(): void {
    this.attempt(() => {
      if (this.phase === 'deciding' || this.phase === 'admitted') this.refuse(denial('shutting_down'));
      else if (!this.writer.isDelivered()) this.summary.reason ??= 'shutting_down';
    });
  }

  onDrain(): void {
    this.attempt(() => this.writer.onDrain());
  }

  isShuttingDown(): boolean {
    return this.deps.isShuttingDown();
  }

  challenges(): readonly string[] {
    return this.deps.challenges();
  }

  writeTimeoutMs(): number {
    return this.activeConfig.config.upstream.idleTimeoutMs;
  }

  onWriteTimeout(): void {
    this.summary.reason ??= 'caller_gone';
    this.writer.abort();
  }

  onWritable(): void {
    this.operation?.resume();
  }

  address(): string {
    return clientOf(this.deps, this.head, this.received.connection.peer);
  }

  isKnown(): boolean {
    return this.received.connection.isTrusted();
  }

  now(): number {
    return this.deps.clock.now();
  }

  private attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.fail(error);
    }
  }
}
