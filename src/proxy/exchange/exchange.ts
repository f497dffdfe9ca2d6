import type { Readable } from 'node:stream';
import { denial, type Denial } from '../../decision/denial.js';
import type { AttemptsMade } from '../../decision/egress/attempts.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import { clientHeaders } from '../../decision/http/response-headers.js';
import { describeBug } from '../../lib/errors.js';
import { takeSettled } from '../maybe-promise.js';
import type { KeyAsker, KeyWait } from '../../ports/auth.js';
import type { ActiveConfig } from '../auth/active-config.js';
import { authorizeRequest, type Admission, type AuthResult } from '../auth/authorize-request.js';
import type { ReservedWrites } from '../idempotency/coordinator.js';
import type { Plan } from '../idempotency/plan-reservation.js';
import type { PipelinedRequest } from '../inbound/client-connection.js';
import type {
  ReceivedRequest,
  ResponseWriter,
  ResponseWriterHost,
  WholeResponse,
} from '../inbound/received-request.js';
import type { ResponseSink } from '../upstream/call.js';
import type { UpstreamOperation } from '../upstream/pool/pool.js';
import { clientOf, ExchangeSummary, recordRequest } from './access-log-record.js';
import { takeLease, type Lease } from './admission-control.js';
import { beginTrace } from './begin-trace.js';
import { atTurnEnd } from './event-loop-batch.js';
import type { ExchangeDeps } from './exchange-deps.js';
import type { GrpcCall } from './grpc-calls.js';
import { allowedRequest, passedTrailers, upstreamRequest, withRenewedToken } from './forwarded-messages.js';
import { Upload } from './upload.js';

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
  private admission: Admission | null = null;
  private brokenBy: Denial | null = null;
  private lease: Lease | null = null;
  private upload: Upload | null = null;
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
      takeSettled(decision, this.acquire, this.fail);
    } catch (error) {
      this.fail(error);
    }
  };

  /** Takes a place among the requests in flight. */
  private readonly acquire = (decision: AuthResult): void => {
    if (this.phase !== 'deciding') return;
    const findings = decision.ok ? decision.value : decision.error;
    this.summary.findings = findings;
    this.deps.metrics.strippedHeaders(findings.stripped);
    if (this.deps.tracer !== null) beginTrace(this.deps.tracer, this, this.summary);
    if (!decision.ok) {
      this.refuse(decision.error.denial);
      return;
    }
    const admission = decision.value;
    takeLease(this.deps.acquire, admission, this, (lease) => this.onAcquired(admission, lease));
  };

  private onAcquired(admission: Admission, lease: Lease): void {
    this.lease = lease;
    this.admission = admission;
    if (admission.principal !== null) this.markAuthenticated();
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
      if (plan.admission !== admission) this.summary.passInShadow(plan.admission);
      this.forward(plan.admission, null);
    } else if (plan.kind === 'refuse') {
      this.summary.record = plan.reservationId;
      this.refuse(plan.denial);
    } else {
      const { reserving } = this.deps;
      // Without a store nothing is planned to be reserved: `planRequest` refuses it.
      if (reserving === null) throw new Error('a write was planned to be reserved where there is no store');
      this.reserve(reserving, admission, plan);
    }
  }

  /**
   * Streams it to the upstream.
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
    const upload = read === null ? this.openUpload(admission, admission.route.maxBodyBytes) : null;
    this.phase = 'forwarding';
    if (upload === null) this.send(admission, read);
    else upload.start((body) => this.attempt(() => this.send(admission, body)));
  }

  private send(admission: Admission, body: Readable | Buffer | null): void {
    // The client may have left while the body was read.
    if (this.phase !== 'forwarding') return;
    const { activeConfig, summary } = this;
    summary.upstreamAsked();
    const { method } = this.head;
    const { trace } = summary;
    const request = { admission, method, body, activeConfig, trace, callerWaitsMs: admission.grpcTimeoutMs };
    this.operation = activeConfig.upstream.send(upstreamRequest(request), this);
  }

  /** Has the whole body read and the write reserved before it is sent on. */
  private reserve(reserving: ReservedWrites, admission: Admission, plan: Extract<Plan, { kind: 'reserve' }>): void {
    const { preparation, maxBodyBytes } = plan;
    this.summary.record = preparation.reservationId;
    this.phase = 'forwarding';
    const body = this.openUpload(admission, maxBodyBytes)?.body ?? null;
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
    this.deps.webSockets.take(handshake, (webSocket) => {
      this.phase = 'forwarding';
      this.operation = webSocket;
      webSocket.send(head.method);
    });
  }

  private openUpload(admission: Admission, maxBytes: number): Upload | null {
    const { received, head, activeConfig } = this;
    if (!admission.headers.hasBody) return null;
    const limits = { maxBytes, timeouts: this.deps.bodyTimeouts };
    const onBroken = (reason: Denial): void => this.attempt(() => this.refuse(reason));
    this.upload = new Upload({ received, head, admission, activeConfig }, limits, onBroken);
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
      const { activeConfig, deps } = this;
      const { findings } = this.summary;
      if (activeConfig.config.upstream.http2) deps.onHeaders(rawHeaders.length / 2);
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
      this.summary.upstreamResponded();
      this.upload?.close();
      if (this.phase !== 'responding') return;
      this.phase = 'responded';
      this.endResponse(trailers);
    } catch (error) {
      this.fail(error);
    }
  }

  private endResponse(trailers: readonly string[] | null): void {
    const { admission, head, activeConfig } = this;
    const isPassed = trailers !== null && admission !== null;
    this.writer.end(isPassed ? passedTrailers('response', trailers, { admission, head, activeConfig }) : null);
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
      const sent = withRenewedToken(headers, this.summary.findings.principal, this.activeConfig, this.deps.clock);
      this.writer.sendWhole(status, sent, body);
      this.endResponse(trailers);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Answers with a problem document or, where a response has begun, breaks that off. */
  refuse(reason: Denial): void {
    if (this.isGone()) return;
    const hasBegun = this.phase === 'responding';
    this.summary.refused(reason);
    this.phase = 'responded';
    this.leaveUpstream();
    if (reason.reason === 'caller_gone') this.writer.abort();
    else if (hasBegun) this.writer.breakOff(reason, this.summary.identify());
    else this.writer.refuse(reason, this.summary.identify(), this.upload !== null);
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
      this.summary.passInShadow(passed);
      this.forward(passed, body);
    });
  }

  /** A bug: the client learns nothing of it, and everybody else is served on. */
  readonly fail = (error: unknown): void => {
    this.deps.log.error('bug', { request_id: this.summary.findings.requestId, ...describeBug(error) });
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
      this.record();
    } catch (error) {
      this.fail(error);
    }
  }

  private record(): void {
    const { connection } = this.received;
    const { summary, head } = this;
    const endedMs = this.deps.clock.monotonic();
    try {
      const [status, grpcStatus] = [this.writer.status(), this.writer.grpcStatus()];
      recordRequest(this.deps, { head, peer: connection.peer, status, grpcStatus, summary, endedMs });
    } finally {
      connection.finish(this, endedMs);
    }
  }

  /** Stops what is under way upstream: nobody waits for it any more. */
  private leaveUpstream(): void {
    this.operation?.cancel();
    this.upload?.close();
  }

  private releaseLease(): void {
    this.lease?.release();
    this.lease = null;
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
    this.upload?.body.restartTimeout();
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

  private markAuthenticated(): void {
    const { connection } = this.received;
    connection.markAuthenticated();
    if (connection.peer.trusted) this.deps.knownAddresses.add(this.address());
  }

  /** Of a connection that is a proxy's, its address counts. */
  hasAuthenticated(): boolean {
    const { connection } = this.received;
    return connection.peer.trusted ? this.deps.knownAddresses.has(this.address()) : connection.hasAuthenticated();
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
