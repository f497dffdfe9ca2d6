import type { Readable } from 'node:stream';
import { denial, type Denial } from '../../decision/denial.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import { callerFields } from '../../decision/http/response-headers.js';
import { describeBug } from '../../lib/errors.js';
import type { Result } from '../../lib/result.js';
import type { Log } from '../../ports/system.js';
import type { WebSockets } from '../websocket/connections.js';
import type { KeyAsker } from '../../ports/auth.js';
import type { InForce } from '../auth/active-config.js';
import { authorizeRequest, unread, type Admission, type Findings, type Judgement } from '../auth/authorize-request.js';
import type { ReservedWrites } from '../idempotency/coordinator.js';
import { planRequest, type Plan } from '../idempotency/plan-reservation.js';
import type { Turn } from '../inbound/client-connection.js';
import type { Arrival } from '../inbound/incoming-request.js';
import { framedBody, openBody, type BodyPace, type RequestBody } from '../inbound/request-body.js';
import { CallerAnswer, type Pace, type WholeResponse } from '../inbound/response-writer.js';
import type { ResponseSink } from '../upstream/call.js';
import type { UpstreamOperation } from '../upstream/pool/pool.js';
import { clientOf, Course, recordRequest, type Recorder } from './access-log-record.js';
import type { AcquireLease, Lease } from './admission-control.js';
import { assertionHeaders, withRenewedToken } from './credential-headers.js';
import { holderOf, type Slot } from './concurrency.js';
import { createTurnEnd } from './event-loop-batch.js';
import { newRequestId } from './ids.js';

/** What every exchange of a server works with. */
export interface ExchangeDeps extends Recorder {
  /** What is in force now; asked once for each request, when it is decided. */
  readonly inForce: () => InForce;
  readonly log: Log;
  readonly acquire: AcquireLease;
  /** `null` where there is no store. */
  readonly reserving: ReservedWrites | null;
  readonly webSockets: WebSockets;
  readonly bodyPace: BodyPace;
  /** Whether every answer closes its connection. */
  readonly isShuttingDown: () => boolean;
}

/**
 * - `waiting`: for the requests before it on its connection
 * - `deciding`: nobody knows yet whether it may go on
 * - `admitted`: it may, and has a place among the requests in flight
 * - `forwarding`: it is on its way to the upstream, or already there
 * - `responding`: the client gets the upstream's response
 * - `responded`: the client was given the whole response, or the last of what it gets
 * - `finished`: recorded
 */
type Phase = 'waiting' | 'deciding' | 'admitted' | 'forwarding' | 'responding' | 'responded' | 'finished';

const atTurnEnd = createTurnEnd({ connectionsFirst: true });

/** Where every exchange begins. */
const nothingFound: Findings = { requestId: '', ...unread };

/**
 * One request from its head to the end of its response, in the order in which it goes: `start`, `decide`, `acquire`,
 * `plan`, `forward` (or `reserve`, or `openWebSocket`), `onHead`, `onData`, `onEnd` or `onError`, `finish`. A refusal
 * may come in the place of each. Whatever happens, it is recorded once.
 */
export class Exchange implements Turn, ResponseSink, KeyAsker, Pace {
  private readonly deps: ExchangeDeps;
  private readonly arrival: Arrival;
  private readonly head: RequestHead;
  private readonly answer: CallerAnswer;
  private readonly course: Course;
  private phase: Phase = 'waiting';
  /** Taken once, by `decide`: nothing before that needs it. */
  private inForce!: InForce;
  private findings: Findings = nothingFound;
  private admission: Admission | null = null;
  private brokenBy: Denial | null = null;
  private lease: Lease | null = null;
  private upload: RequestBody | null = null;
  /** A place among requests whose body is yet to come; given back when it has no connection any more. */
  private earlyPlace: Slot | null = null;
  private operation: UpstreamOperation | null = null;

  constructor(deps: ExchangeDeps, arrival: Arrival) {
    const { req } = arrival;
    this.deps = deps;
    this.arrival = arrival;
    this.head = {
      method: req.method ?? '',
      target: req.originalUrl ?? '',
      httpVersion: req.httpVersion,
      rawHeaders: req.rawHeaders,
    };
    this.answer = new CallerAnswer(arrival, this);
    this.course = new Course(deps.clock);
  }

  /** Its turn on the connection has come. What one turn of the event loop brings is decided together, at its end. */
  start(): void {
    const { res, connection, upgrade } = this.arrival;
    upgrade?.begin();
    if (res.socket === null) {
      // Node gave the connection up with the response before: what is sent on now could not be answered.
      connection.abort();
      return;
    }
    this.phase = 'deciding';
    this.course.begin();
    res.on('close', () => this.finish()).on('error', this.fail);
    const { brokenBy } = this;
    if (brokenBy === null) atTurnEnd(this.decide);
    else this.attempt(() => this.refuse(brokenBy));
  }

  private readonly decide = (): void => {
    if (this.phase !== 'deciding') return;
    try {
      // Asked now and not before: it may have waited long behind others, and what was granted then may be revoked.
      this.inForce = this.deps.inForce();
      const { peer } = this.arrival.connection;
      const decision = authorizeRequest(this.head, peer, this.inForce, this.deps.clock.now(), undefined, this);
      // At once where it is known already: a promise would cost a turn of the event loop.
      if (!(decision instanceof Promise)) this.acquire(decision);
      else decision.then((settled) => this.attempt(() => this.acquire(settled)), this.fail);
    } catch (error) {
      this.fail(error);
    }
  };

  /** Takes a place among the requests in flight. */
  private acquire(decision: Judgement): void {
    if (this.phase !== 'deciding') return;
    this.findings = decision.ok ? decision.value : decision.error;
    this.deps.metrics.strippedFields(this.findings.stripped);
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
    if (admission.principal !== null) this.arrival.connection.markTrusted();
    this.course.shadow = admission.shadow;
    this.phase = 'admitted';
    if (this.brokenBy === null) this.plan(admission);
    else this.refuse(this.brokenBy);
  }

  /** Plans what becomes of it, and sends it on its way. */
  private plan(admission: Admission): void {
    const { reserving } = this.deps;
    const plan = planRequest(admission, this.inForce, reserving, admission.fields.contentLength ?? 0);
    if (plan.kind === 'forward') {
      if (plan.admission !== admission) this.passInShadow(plan.admission);
      this.forward(plan.admission, null);
    } else if (plan.kind === 'refuse') {
      this.course.record = plan.reservationId;
      this.refuse(plan.denial);
    } else if (reserving !== null) this.reserve(reserving, admission, plan);
  }

  /**
   * Streams it to the upstream. A body that is not here yet is sent on as it comes while there are places for such, and
   * else when there is something to send.
   *
   * @param read the body, where it was read before.
   */
  private forward(admission: Admission, read: Buffer | null): void {
    if (admission.fields.upgrade !== null) {
      this.openWebSocket(admission);
      return;
    }
    const body = read ?? this.openBody(admission, admission.route.maxBodyBytes);
    this.phase = 'forwarding';
    if (body === null || Buffer.isBuffer(body)) {
      this.send(admission, body);
      return;
    }
    this.earlyPlace = body.isHere() ? null : this.inForce.upstream.takeEarlyPlace();
    if (this.earlyPlace !== null) {
      this.send(admission, body);
      return;
    }
    body.gather((whole) => {
      const gathered = whole === null ? body : framedBody(whole, admission.fields);
      this.attempt(() => this.send(admission, gathered));
    });
  }

  private send(admission: Admission, body: Readable | Buffer | null): void {
    // The client may have left while the body was read.
    if (this.phase !== 'forwarding') return;
    const { method } = this.head;
    const { forwarded, fields, route, target } = admission;
    const assertion = assertionHeaders(admission, method, this.inForce);
    const sent = assertion.length === 0 ? forwarded : [...forwarded, ...assertion];
    // A body that was read for a reservation has a length, however it came.
    const needsLength = fields.chunked && fields.contentLength === null && Buffer.isBuffer(body);
    this.course.asked();
    this.operation = this.inForce.upstream.send(
      {
        holder: holderOf(admission),
        method,
        target: target.raw,
        fields: needsLength ? [...sent, 'Content-Length', String(body.length)] : sent,
        body,
        responseTimeoutMs: route.responseTimeoutMs,
      },
      this,
    );
  }

  /** Has the whole body read and the write reserved before it is sent on. */
  private reserve(reserving: ReservedWrites, admission: Admission, plan: Extract<Plan, { kind: 'reserve' }>): void {
    const { preparation, maxBodyBytes } = plan;
    this.course.record = preparation.reservationId;
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
      inForce: this.inForce,
      client: this,
      onOver: () => lease?.release(),
    });
  }

  /** Sends the opening handshake of a WebSocket connection. */
  private openWebSocket(admission: Admission): void {
    const { answer, arrival, course, deps, head, inForce, lease } = this;
    const opened = deps.webSockets.take({
      admission,
      head,
      peer: arrival.connection.peer,
      inForce,
      upgrade: arrival.upgrade,
      answer,
      client: this,
      course,
      seat: () => lease?.releaseGlobal(),
    });
    if (!opened.ok) {
      this.refuse(opened.error);
      return;
    }
    this.phase = 'forwarding';
    this.operation = opened.value;
    opened.value.send(head.method);
  }

  private openBody({ fields }: Admission, maxBytes: number): RequestBody | null {
    if (!fields.hasBody) return null;
    this.upload = openBody(this.arrival, fields, {
      maxBytes,
      pace: this.deps.bodyPace,
      receiverTimeoutMs: this.inForce.config.upstream.idleTimeoutMs,
      onBroken: (reason) => this.attempt(() => this.refuse(reason)),
    });
    return this.upload;
  }

  upstreamAsked(): void {
    this.attempt(() => this.course.asked());
  }

  upstreamAnswered(): void {
    this.attempt(() => this.course.answered());
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    if (this.phase !== 'forwarding') return;
    try {
      const { inForce, findings, deps } = this;
      const fields = callerFields(status, rawHeaders, inForce.fieldRules, findings.requestId);
      const isWhole = this.answer.begin(status, withRenewedToken(fields, findings.principal, inForce, deps.clock));
      this.phase = isWhole ? 'responded' : 'responding';
    } catch (error) {
      this.fail(error);
    }
  }

  onData(chunk: Buffer): boolean {
    if (this.phase !== 'responding') return true;
    try {
      return this.answer.write(chunk);
    } catch (error) {
      this.fail(error);
      return true;
    }
  }

  onEnd(): void {
    try {
      this.earlyPlace?.();
      this.course.answered();
      if (this.phase !== 'responding') return;
      this.phase = 'responded';
      this.answer.end();
    } catch (error) {
      this.fail(error);
    }
  }

  onError(reason: Denial): void {
    this.attempt(() => this.course.answered());
    this.attempt(() => this.refuse(reason));
  }

  /** Sends a whole response: the upstream's, or one that was kept. */
  respond({ status, fields, body, isReplayed }: WholeResponse): void {
    if (this.phase !== 'forwarding') return;
    try {
      this.course.isReplayed = isReplayed;
      this.phase = 'responded';
      this.answer.give(status, withRenewedToken(fields, this.findings.principal, this.inForce, this.deps.clock), body);
      this.answer.end();
    } catch (error) {
      this.fail(error);
    }
  }

  /** Answers with a problem document or, where a response has begun, breaks that off. */
  refuse(reason: Denial): void {
    if (this.isGone()) return;
    const hasBegun = this.phase === 'responding';
    this.course.reason = reason.reason;
    this.course.missing = reason.missing ?? null;
    this.phase = 'responded';
    this.leaveUpstream();
    if (hasBegun || reason.reason === 'caller_gone') this.answer.abort();
    else this.answer.refuse(reason, this.identify(), this.upload !== null);
    // The answer is handed over: who does not read it holds no place.
    this.releaseLease();
  }

  /** Refuses what was to be reserved first, and was not: there is no record of it. */
  refuseUnreserved(reason: Denial): void {
    this.attempt(() => {
      this.course.record = null;
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
    this.course.shadow = passed.shadow;
    this.course.record = null;
  }

  /** A bug: the client learns nothing of it, and everybody else is served on. */
  readonly fail = (error: unknown): void => {
    this.deps.log.error('bug', { request_id: this.findings.requestId, ...describeBug(error) });
    if (this.phase === 'responded') this.answer.abort();
    else this.attempt(() => this.refuse(denial('internal')));
  };

  /** The response is over, or its connection: gives everything back and records it. */
  private finish(): void {
    if (this.phase === 'finished') return;
    try {
      if (this.course.reason === null && !this.answer.isDelivered()) this.course.reason = 'caller_gone';
      this.phase = 'finished';
      this.leaveUpstream();
      this.releaseLease();
      this.identify();
      this.record();
    } catch (error) {
      this.fail(error);
    }
  }

  private record(): void {
    const { course, findings, head } = this;
    const { connection } = this.arrival;
    const endedMs = this.deps.clock.monotonic();
    try {
      const { peer } = connection;
      recordRequest(this.deps, { findings, head, peer, status: this.answer.status(), course, endedMs });
    } finally {
      connection.finish(this, endedMs);
    }
  }

  /** Nobody listens any more. */
  private leaveUpstream(): void {
    this.earlyPlace?.();
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

  isReceived(): boolean {
    return this.answer.isReceived();
  }

  breakBody(reason: Denial): void {
    // What breaks before the decision is refused after it: whose request it was, and on which route, is recorded.
    if (this.phase === 'waiting' || this.phase === 'deciding') this.brokenBy = reason;
    else this.attempt(() => this.refuse(reason));
  }

  hurry(): void {
    this.upload?.hurry();
  }

  /** Ends it at the deadline of a shutdown: what was not sent on is answered so, the rest is broken off. */
  cutOff(): void {
    this.attempt(() => {
      if (this.phase === 'deciding' || this.phase === 'admitted') this.refuse(denial('shutting_down'));
      else if (!this.answer.isDelivered()) this.course.reason ??= 'shutting_down';
    });
  }

  drained(): void {
    this.attempt(() => this.answer.drained());
  }

  isShuttingDown(): boolean {
    return this.deps.isShuttingDown();
  }

  patienceMs(): number {
    return this.inForce.config.upstream.idleTimeoutMs;
  }

  onStalled(): void {
    this.course.reason ??= 'caller_gone';
    this.answer.abort();
  }

  onFlowing(): void {
    this.operation?.resume();
  }

  address(): string {
    return clientOf(this.deps, this.head, this.arrival.connection.peer);
  }

  isKnown(): boolean {
    return this.arrival.connection.isTrusted();
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
