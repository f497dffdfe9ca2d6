import { denial, type Denial } from '../../decision/denial.js';
import type { RequestFields } from '../../decision/http/request-headers.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import type { Result } from '../../lib/result.js';
import type { KeyAsker } from '../../ports/auth.js';
import { describeBug } from './error-report.js';
import type { Caller, Onward, WholeAnswer } from './caller.js';
import { CallerAnswer, type Pace } from '../inbound/response-writer.js';
import type { Turn } from '../inbound/client-connection.js';
import { Course } from './request-timing.js';
import type { Places } from './admission-control.js';
import type { Arrival, ExchangeDeps, Phase } from './exchange-deps.js';
import { newRequestId } from './ids.js';
import type { InForce } from '../auth/active-config.js';
import { onwardOf } from './onward.js';
import { authorizeRequest, unread, type Admission, type Findings, type Judgement } from '../auth/authorize-request.js';
import type { Reserving } from '../idempotency/coordinator.js';
import { openBody, type RequestBody } from '../inbound/request-body.js';
import { clientOf, recordRequest } from './access-log-record.js';
import { planRequest, type Plan } from '../idempotency/plan-reservation.js';
import { handBack } from './session-renewal.js';
import { shareSlot } from './concurrency.js';
import { createTurnEnd } from './event-loop-batch.js';

const atTurnEnd = createTurnEnd({ connectionsFirst: true });

/** Where every exchange begins. */
const nothingFound: Findings = { requestId: '', ...unread };

/** One request from its head to the end of its answer. Whatever happens, it is recorded once. */
export class Exchange implements Turn, Caller, KeyAsker, Pace {
  private readonly deps: ExchangeDeps;
  private readonly arrival: Arrival;
  private readonly head: RequestHead;
  private readonly answer: CallerAnswer;
  private inForce: InForce;
  private readonly course: Course;
  private phase: Phase = 'waiting';
  private findings: Findings;
  private admission: Admission | null = null;
  private brokenBy: Denial | null = null;
  private places: Places | null = null;
  private upload: RequestBody | null = null;
  private onward: Onward | null = null;

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
    this.inForce = deps.inForce();
    this.answer = new CallerAnswer(arrival, this);
    this.course = new Course(deps.clock);
    this.findings = nothingFound;
  }

  start(): void {
    this.arrival.upgrade?.begin();
    if (this.arrival.res.socket === null) {
      // Node gave the connection up with the answer before: what is sent on now could not be answered.
      this.arrival.connection.abort();
      return;
    }
    this.phase = 'judging';
    this.course.begin();
    this.arrival.res.on('close', () => this.attempt(() => this.conclude())).on('error', this.fail);
    const { brokenBy } = this;
    if (brokenBy === null) atTurnEnd(() => this.attempt(() => this.judge()));
    else this.attempt(() => this.refuse(brokenBy));
  }

  isReceived(): boolean {
    return this.answer.isReceived();
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
    this.onward?.resume();
  }

  breakBody(reason: Denial): void {
    // What breaks while it is judged is refused after that: whose request it was, and on which route, is recorded.
    if (this.phase === 'waiting' || this.phase === 'judging') this.brokenBy = reason;
    else this.attempt(() => this.refuse(reason));
  }

  /** A bug: the caller learns nothing of it, and everybody else is served on. */
  readonly fail = (error: unknown): void => {
    this.deps.log.error('bug', { request_id: this.findings.requestId, ...describeBug(error) });
    if (this.phase === 'answered') this.answer.abort();
    else this.attempt(() => this.refuse(denial('internal')));
  };

  isGone(): boolean {
    return this.phase === 'answered' || this.phase === 'over';
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

  refuse(reason: Denial): void {
    if (this.isGone()) return;
    const hasBegun = this.phase === 'answering';
    this.course.reason = reason.reason;
    this.course.missing = reason.missing ?? null;
    this.phase = 'answered';
    this.onward?.leave();
    this.upload?.destroy();
    if (hasBegun || reason.reason === 'caller_gone') this.answer.abort();
    else this.answer.refuse(reason, this.identify(), this.upload !== null);
    // The answer is handed over: who does not read it holds no place.
    this.places?.all();
  }

  refuseUnreserved(reason: Denial): void {
    this.attempt(() => {
      this.course.record = null;
      this.refuse(reason);
    });
  }

  refuseUnsent(reason: Denial, body: Buffer): void {
    this.attempt(() => {
      const passed = this.isGone() ? null : (this.admission?.shadowAdmission(reason) ?? null);
      if (passed === null) {
        this.refuse(reason);
        return;
      }
      this.passInShadow(passed);
      this.send(passed, body);
    });
  }

  give({ status, fields, body, isReplayed }: WholeAnswer): void {
    this.attempt(() => {
      if (this.phase !== 'onward') return;
      this.course.isReplayed = isReplayed;
      this.phase = 'answered';
      this.answer.give(status, handBack(fields, this.findings.principal, this.inForce, this.deps.clock), body);
      this.answer.end();
    });
  }

  begin(status: number, fields: string[]): void {
    if (this.phase !== 'onward') return;
    try {
      const isWhole = this.answer.begin(
        status,
        handBack(fields, this.findings.principal, this.inForce, this.deps.clock),
      );
      this.phase = isWhole ? 'answered' : 'answering';
    } catch (error) {
      this.fail(error);
    }
  }

  write(chunk: Buffer): boolean {
    if (this.phase !== 'answering') return true;
    try {
      return this.answer.write(chunk);
    } catch (error) {
      this.fail(error);
      return true;
    }
  }

  end(): void {
    this.attempt(() => {
      if (this.phase !== 'answering') return;
      this.phase = 'answered';
      this.answer.end();
    });
  }

  asked(): void {
    this.attempt(() => this.course.asked());
  }

  answered(): void {
    this.attempt(() => this.course.answered());
  }

  drained(): void {
    this.attempt(() => this.answer.drained());
  }

  hurry(): void {
    this.upload?.hurry();
  }

  /** Ends it at the deadline of a shutdown: what was not sent on is answered so, the rest is broken off. */
  cutOff(): void {
    this.attempt(() => {
      if (this.phase === 'judging' || this.phase === 'admitted') this.refuse(denial('shutting_down'));
      else if (!this.answer.isDelivered()) this.course.reason ??= 'shutting_down';
    });
  }

  private judge(): void {
    if (this.phase !== 'judging') return;
    // It may have waited long behind others, and what was granted then may be revoked by now.
    this.inForce = this.deps.inForce();
    const judgement = authorizeRequest(
      this.head,
      this.arrival.connection.peer,
      this.inForce,
      this.deps.clock.now(),
      undefined,
      this,
    );
    this.once(judgement, (settled) => this.settle(settled));
  }

  private settle(judgement: Judgement): void {
    if (this.phase !== 'judging') return;
    const findings = judgement.ok ? judgement.value : judgement.error;
    this.findings = findings;
    this.deps.metrics.strippedFields(findings.stripped);
    if (judgement.ok) this.once(this.deps.enter(judgement.value), (entered) => this.admit(judgement.value, entered));
    else this.refuse(judgement.error.denial);
  }

  private admit(admission: Admission, entered: Result<Places, Denial>): void {
    if (!entered.ok) this.refuse(entered.error);
    // The caller may have left while the store was asked.
    else if (this.phase !== 'judging') entered.value.all();
    else {
      this.places = entered.value;
      this.admission = admission;
      if (admission.principal !== null) this.arrival.connection.markTrusted();
      this.course.shadow = admission.shadow;
      this.phase = 'admitted';
      if (this.brokenBy === null) this.ask(admission);
      else this.refuse(this.brokenBy);
    }
  }

  private ask(admission: Admission): void {
    const bodyBytes = admission.fields.contentLength ?? 0;
    const plan = planRequest(admission, this.inForce, this.deps.reserving, bodyBytes);
    switch (plan.kind) {
      case 'forward':
        if (plan.admission !== admission) this.passInShadow(plan.admission);
        this.send(plan.admission);
        break;
      case 'reserve':
        this.course.record = plan.preparation.reservationId;
        if (this.deps.reserving !== null) this.reserve(this.deps.reserving, admission, plan);
        break;
      case 'refuse':
        this.course.record = plan.reservationId;
        this.refuse(plan.denial);
    }
  }

  /** A later step would have refused it: it goes on without identity and reservation. */
  private passInShadow(passed: Admission): void {
    this.findings = passed;
    this.course.shadow = passed.shadow;
    this.course.record = null;
  }

  private send(admission: Admission, held: Buffer | null = null): void {
    const { answer, arrival, course, deps, head, inForce } = this;
    const onward = onwardOf(admission, {
      answer,
      arrival,
      caller: this,
      course,
      deps,
      head,
      inForce,
      seat: this.places?.seat ?? null,
    });
    if (onward === null) return;
    const body = held ?? this.openBody(admission.fields, admission.route.maxBodyBytes);
    this.phase = 'onward';
    this.onward = onward;
    onward.send(head.method, body);
  }

  private openBody(fields: RequestFields, maxBytes: number): RequestBody | null {
    this.upload = openBody(this.arrival, fields, {
      maxBytes,
      pace: this.deps.bodyPace,
      receiverTimeoutMs: this.inForce.config.upstream.idleTimeoutMs,
      onBroken: (reason) => this.attempt(() => this.refuse(reason)),
    });
    return this.upload;
  }

  /** Has the whole body read and the write reserved before it is sent on. */
  private reserve(reserving: Reserving, admission: Admission, plan: Extract<Plan, { kind: 'reserve' }>): void {
    const { preparation, maxBodyBytes } = plan;
    this.phase = 'onward';
    const body = this.openBody(admission.fields, maxBodyBytes);
    // What was dispatched keeps its place when the caller leaves.
    const [mine, theirs] = shareSlot(this.places?.all ?? null);
    this.places = { seat: mine, all: mine };
    this.onward = reserving.start({
      admission,
      preparation,
      body,
      method: this.head.method,
      inForce: this.inForce,
      caller: this,
      onOver: theirs,
    });
  }

  private conclude(): void {
    if (this.phase === 'over') return;
    if (this.course.reason === null && !this.answer.isDelivered()) this.course.reason = 'caller_gone';
    this.phase = 'over';
    this.onward?.leave();
    this.upload?.destroy();
    this.places?.all();
    this.identify();
    const {
      arrival: { connection },
      course,
      findings,
      head,
    } = this;
    const endedMs = this.deps.clock.monotonic();
    try {
      recordRequest(this.deps, {
        findings,
        head,
        peer: connection.peer,
        status: this.answer.status(),
        course,
        endedMs,
      });
    } finally {
      connection.finish(this, endedMs);
    }
  }

  /** The request's id; a new one where it ended before it could be read. */
  private identify(): string {
    if (this.findings.requestId === '') this.findings = { ...this.findings, requestId: newRequestId() };
    return this.findings.requestId;
  }

  /** Goes on now where that is known already: a promise would cost a turn of the event loop. */
  private once<T>(known: T | Promise<T>, next: (value: T) => void): void {
    if (known instanceof Promise) known.then((value) => this.attempt(() => next(value)), this.fail);
    else next(known);
  }

  private attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.fail(error);
    }
  }
}
