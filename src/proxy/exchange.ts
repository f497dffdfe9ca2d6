import type { IncomingMessage, ServerResponse } from 'node:http';
import { denial, type Denial, type Reason } from '../decision/denial.js';
import type { RequestHead } from '../decision/request-head.js';
import { callerFields } from '../decision/response-fields.js';
import type { Log } from '../ports.js';
import { describeBug } from './bug.js';
import { CallerAnswer } from './caller-answer.js';
import type { CallerConnection, Turn } from './caller-connection.js';
import { newRequestId } from './identifiers.js';
import type { InForce } from './in-force.js';
import { admit, type Admission, type Findings, type Judgement } from './pipeline.js';
import { RequestBody } from './request-body.js';
import { recordRequest, type Recorder } from './request-record.js';
import type { Slot, Slots } from './slots.js';
import type { AnswerSink } from './upstream-call.js';
import type { UpstreamCall } from './upstream.js';

export interface ExchangeDeps extends Recorder {
  readonly inForce: () => InForce;
  readonly log: Log;
  readonly slots: Slots;
  readonly bodyIdleTimeoutMs: number;
  /** Whether every answer closes its connection. */
  readonly isShuttingDown: () => boolean;
}

/** A request as Node hands it over. */
export interface Arrival {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly connection: CallerConnection;
}

/**
 * - `waiting`: for the requests before it on its connection
 * - `judging`: no answer yet whether it may go on
 * - `admitted`: it may, and has a slot
 * - `forwarding`: the receiver was asked
 * - `answering`: the caller gets the receiver's answer
 * - `answered`: the caller was given the whole answer, or the last of what it gets
 * - `over`: recorded
 */
type Phase = 'waiting' | 'judging' | 'admitted' | 'forwarding' | 'answering' | 'answered' | 'over';

/** One request from its head to the end of its answer. Whatever happens, it is recorded once. */
export class Exchange implements Turn, AnswerSink {
  private readonly deps: ExchangeDeps;
  private readonly arrival: Arrival;
  private readonly enter: (req: IncomingMessage, res: ServerResponse) => void;
  private readonly head: RequestHead;
  private readonly answer: CallerAnswer;
  private inForce: InForce;
  private startedMs = 0;
  private phase: Phase = 'waiting';
  private findings: Findings;
  private admission: Admission | null = null;
  private reason: Reason | null = null;
  private brokenBy: Denial | null = null;
  private slot: Slot | null = null;
  private upload: RequestBody | null = null;
  private call: UpstreamCall | null = null;
  private askedMs: number | null = null;
  private answeredMs: number | null = null;
  private listensForDrain = false;

  /** `enter` leads a request that may go on through the frame to `forward`. */
  constructor(deps: ExchangeDeps, arrival: Arrival, enter: (req: IncomingMessage, res: ServerResponse) => void) {
    const { req, res, connection } = arrival;
    this.deps = deps;
    this.arrival = arrival;
    this.enter = enter;
    // Read now: the frame is shown another request.
    this.head = { method: req.method ?? '', target: req.url ?? '', httpVersion: req.httpVersion, rawHeaders: req.rawHeaders };
    this.answer = new CallerAnswer(req, res, connection, deps.isShuttingDown);
    this.inForce = deps.inForce();
    this.findings = { requestId: '', route: null, principal: null, stripped: 0 };
  }

  start(): void {
    if (this.arrival.res.socket === null) {
      // Node gave the connection up with the answer before: what is sent on now could not be answered.
      this.arrival.connection.abort();
      return;
    }
    this.phase = 'judging';
    // It may have waited long behind others, and what was granted then may be revoked by now.
    this.inForce = this.deps.inForce();
    this.startedMs = this.deps.clock.monotonic();
    this.arrival.res.on('close', this.onClose).on('error', this.fail);
    this.attempt(() => {
      if (this.brokenBy === null) this.judge();
      else this.refuse(this.brokenBy);
    });
  }

  isReceived(): boolean {
    return this.answer.isReceived();
  }

  breakBody(reason: Denial): void {
    if (this.phase === 'waiting') this.brokenBy = reason;
    else this.attempt(() => this.refuse(reason));
  }

  /** Sends it to the receiver. */
  forward(): void {
    this.attempt(() => {
      if (this.phase === 'admitted' && this.admission !== null) this.ask(this.admission);
    });
  }

  /** A bug: the caller learns nothing of it, and everybody else is served on. */
  readonly fail = (error: unknown): void => {
    this.deps.log.error('bug', { request_id: this.findings.requestId, ...describeBug(error) });
    if (this.phase === 'answered') this.answer.abort();
    else this.attempt(() => this.refuse(denial('internal')));
  };

  onHead(status: number, rawHeaders: readonly string[]): void {
    this.attempt(() => {
      if (this.phase !== 'forwarding') return;
      const { fieldRules, config } = this.inForce;
      const fields = callerFields(status, rawHeaders, fieldRules, this.findings.requestId);
      const isWhole = this.answer.begin(status, fields, config.upstream.idleTimeoutMs, this.onStalled);
      this.phase = isWhole ? 'answered' : 'answering';
    });
  }

  onBody(chunk: Buffer): boolean {
    let flows = true;
    this.attempt(() => {
      if (this.phase !== 'answering') return;
      flows = this.answer.write(chunk);
      if (!flows) this.waitForCaller();
    });
    return flows;
  }

  onEnd(): void {
    this.attempt(() => {
      this.answeredMs = this.deps.clock.monotonic();
      if (this.phase !== 'answering') return;
      this.phase = 'answered';
      this.answer.end(this.inForce.config.upstream.idleTimeoutMs, this.onStalled);
    });
  }

  onFailure(reason: Denial): void {
    this.attempt(() => {
      this.answeredMs = this.deps.clock.monotonic();
      this.refuse(reason);
    });
  }

  /** Ends it at the deadline of a shutdown: what was not sent on is answered so, the rest is broken off. */
  cutOff(): void {
    this.attempt(() => {
      if (this.phase === 'judging' || this.phase === 'admitted') this.refuse(denial('shutting_down'));
      else if (!this.answer.isDelivered()) this.reason ??= 'shutting_down';
    });
  }

  private judge(): void {
    const judgement = admit(this.head, this.arrival.connection.peer, this.inForce, this.deps.clock.now());
    if (!(judgement instanceof Promise)) {
      this.settle(judgement);
      return;
    }
    judgement.then((settled) => {
      this.attempt(() => this.settle(settled));
    }, this.fail);
  }

  private settle(judgement: Judgement): void {
    if (this.phase !== 'judging') return;
    const findings = judgement.ok ? judgement.value : judgement.error;
    this.findings = findings;
    if (findings.stripped > 0) this.deps.metrics.strippedFields(findings.stripped);
    if (!judgement.ok) {
      this.refuse(judgement.error.denial);
      return;
    }
    // Only now: who has no credential cannot hold a place that somebody with one needs.
    this.slot = this.deps.slots.take(judgement.value.route.access);
    if (this.slot === null) {
      this.refuse(denial('overloaded'));
      return;
    }
    this.admission = judgement.value;
    this.phase = 'admitted';
    this.enter(this.arrival.req, this.arrival.res);
  }

  private ask({ route, target, fields, forwarded }: Admission): void {
    const { upstream, config } = this.inForce;
    const { req, res } = this.arrival;
    if (fields.hasBody) {
      this.upload = new RequestBody(req, {
        maxBytes: route.maxBodyBytes,
        callerTimeoutMs: this.deps.bodyIdleTimeoutMs,
        receiverTimeoutMs: config.upstream.idleTimeoutMs,
        onWanted: () => {
          if (fields.expectsContinue) res.writeContinue();
        },
        onBroken: reason => this.attempt(() => this.refuse(reason)),
      });
    }
    this.phase = 'forwarding';
    this.askedMs = this.deps.clock.monotonic();
    const request = {
      access: route.access,
      method: this.head.method,
      target: target.raw,
      fields: forwarded,
      body: this.upload,
      responseTimeoutMs: route.responseTimeoutMs,
    };
    this.call = upstream.send(request, this);
  }

  /** The caller has as long to take some of the answer as the receiver has to send some. */
  private waitForCaller(): void {
    this.arrival.connection.expectFlush(this.inForce.config.upstream.idleTimeoutMs, this.onStalled);
    if (this.listensForDrain) return;
    this.listensForDrain = true;
    this.answer.onDrain(() => {
      this.arrival.connection.flushed();
      this.call?.resume();
    });
  }

  /** Answers with a problem document or, where the receiver's answer has begun, breaks that off. */
  private refuse(reason: Denial): void {
    if (this.phase === 'answered' || this.phase === 'over') return;
    const hasBegun = this.phase === 'answering';
    this.reason = reason.reason;
    this.phase = 'answered';
    this.call?.cancel();
    this.upload?.destroy();
    if (hasBegun || reason.reason === 'caller_gone') this.answer.abort();
    else this.answer.refuse(reason, this.identify());
    // The answer is handed over: who does not read it holds no place.
    this.slot?.();
  }

  private readonly onStalled = (): void => {
    this.reason ??= 'caller_gone';
    this.answer.abort();
  };

  private readonly onClose = (): void => {
    this.attempt(() => {
      this.conclude();
    });
  };

  private conclude(): void {
    if (this.phase === 'over') return;
    if (this.reason === null && !this.answer.isDelivered()) this.reason = 'caller_gone';
    this.phase = 'over';
    this.call?.cancel();
    this.upload?.destroy();
    this.slot?.();
    this.identify();
    const { findings, head, reason, startedMs, askedMs, answeredMs } = this;
    try {
      recordRequest(this.deps, {
        findings, reason, startedMs, askedMs, answeredMs, method: head.method, target: head.target, status: this.answer.status(),
      });
    } finally {
      this.arrival.connection.finish(this);
    }
  }

  /** The request's id; a new one where it ended before it could be read. */
  private identify(): string {
    if (this.findings.requestId === '') this.findings = { ...this.findings, requestId: newRequestId() };
    return this.findings.requestId;
  }

  private attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.fail(error);
    }
  }
}
