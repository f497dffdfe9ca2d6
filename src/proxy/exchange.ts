import type { IncomingMessage, ServerResponse } from 'node:http';
import { denial, type Denial, type Reason } from '../decision/denial.js';
import type { RequestFields } from '../decision/request-fields.js';
import type { RequestHead } from '../decision/request-head.js';
import { callerFields } from '../decision/response-fields.js';
import { replayedFields } from '../decision/stored-response.js';
import type { Log } from '../ports.js';
import { describeBug } from './bug.js';
import { CallerAnswer } from './caller-answer.js';
import type { CallerConnection, Turn } from './caller-connection.js';
import { newRequestId } from './identifiers.js';
import type { InForce } from './in-force.js';
import { admit, type Admission, type Findings, type Judgement } from './pipeline.js';
import { RequestBody } from './request-body.js';
import { recordRequest, type Recorder } from './request-record.js';
import { prepare, type Preparation } from './reserving/preparation.js';
import type { ReservedCaller } from './reserving/reserved-run.js';
import type { ReservedHandle, Reserving } from './reserving/reserving.js';
import type { Slot, Slots } from './slots.js';
import type { AnswerSink } from './upstream-call.js';
import type { UpstreamCall } from './upstream.js';

export interface ExchangeDeps extends Recorder {
  readonly inForce: () => InForce;
  readonly log: Log;
  readonly slots: Slots;
  /** `null` where there is no store. */
  readonly reserving: Reserving | null;
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
 * - `reserving`: its body is read, it is reserved and sent, and its answer is kept
 * - `forwarding`: the receiver was asked
 * - `answering`: the caller gets the receiver's answer
 * - `answered`: the caller was given the whole answer, or the last of what it gets
 * - `over`: recorded
 */
type Phase = 'waiting' | 'judging' | 'admitted' | 'reserving' | 'forwarding' | 'answering' | 'answered' | 'over';

/** One request from its head to the end of its answer. Whatever happens, it is recorded once. */
export class Exchange implements Turn, AnswerSink {
  private readonly deps: ExchangeDeps;
  private readonly arrival: Arrival;
  private readonly enter: (req: IncomingMessage, res: ServerResponse) => void;
  private readonly head: RequestHead;
  private readonly answer: CallerAnswer;
  private readonly inForce: InForce;
  private readonly startedMs: number;
  private phase: Phase = 'waiting';
  private findings: Findings;
  private admission: Admission | null = null;
  private reason: Reason | null = null;
  private brokenBy: Denial | null = null;
  private slot: Slot | null = null;
  private upload: RequestBody | null = null;
  private call: UpstreamCall | null = null;
  private reserved: ReservedHandle | null = null;
  private record: string | null = null;
  private isReplayed = false;
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
    this.startedMs = deps.clock.monotonic();
    this.findings = { requestId: '', route: null, principal: null, stripped: 0 };
  }

  start(): void {
    this.phase = 'judging';
    this.arrival.res.on('close', this.onClose);
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
      const isWhole = this.answer.begin(status, callerFields(rawHeaders, this.inForce.fieldRules, this.findings.requestId));
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
      this.answeredMs ??= this.deps.clock.monotonic();
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

  private ask(admission: Admission): void {
    const { upstream, config: { issuers } } = this.inForce;
    const { route, target, fields, forwarded } = admission;
    const prepared = prepare(admission, issuers.map(({ rules }) => rules), this.deps.reserving?.floorS() ?? null);
    if (!prepared.ok) {
      this.refuse(prepared.error);
      return;
    }
    if (prepared.value !== null) {
      this.reserve(admission, prepared.value);
      return;
    }
    if (fields.hasBody) this.upload = this.openBody(fields, route.maxBodyBytes);
    this.phase = 'forwarding';
    this.askedMs = this.deps.clock.monotonic();
    const request = {
      method: this.head.method, target: target.raw, fields: forwarded, body: this.upload, responseTimeoutMs: route.responseTimeoutMs,
    };
    this.call = upstream.send(request, this);
  }

  private openBody({ expectsContinue }: RequestFields, maxBytes: number): RequestBody {
    const { req, res } = this.arrival;
    return new RequestBody(req, {
      maxBytes,
      callerTimeoutMs: this.deps.bodyIdleTimeoutMs,
      receiverTimeoutMs: this.inForce.config.upstream.idleTimeoutMs,
      onWanted: () => {
        if (expectsContinue) res.writeContinue();
      },
      onBroken: reason => this.attempt(() => this.refuse(reason)),
    });
  }

  /** Reads the whole body and reserves before it sends anything on. */
  private reserve(admission: Admission, preparation: Preparation): void {
    const { reserving } = this.deps;
    const { upstream, config } = this.inForce;
    const { route, fields } = admission;
    if (reserving === null) {
      this.refuse(denial('store_unavailable'));
      return;
    }
    this.phase = 'reserving';
    this.record = preparation.recordId;
    if (fields.hasBody) this.upload = this.openBody(fields, Math.min(route.maxBodyBytes, preparation.rules.maxBodyBytes));
    const { slot } = this;
    // What was dispatched keeps its place when the caller leaves.
    this.slot = null;
    this.reserved = reserving.start({
      input: { admission, preparation, method: this.head.method, upstream, connectTimeoutMs: config.upstream.connectTimeoutMs },
      body: this.upload,
      caller: this.reservedCaller(preparation),
      onBug: this.fail,
      onOver: () => slot?.(),
    });
  }

  private reservedCaller({ sentKey }: Preparation): ReservedCaller {
    return {
      isGone: () => this.phase === 'answered' || this.phase === 'over',
      refuse: reason => this.attempt(() => this.refuse(reason)),
      asked: () => {
        this.askedMs = this.deps.clock.monotonic();
      },
      answered: () => {
        this.answeredMs = this.deps.clock.monotonic();
      },
      replay: (response) => {
        this.isReplayed = true;
        this.pass(response.status, replayedFields(response, sentKey ?? '', this.findings.requestId), Buffer.from(response.body));
      },
      answer: (status, rawHeaders, body) => {
        this.pass(status, callerFields(rawHeaders, this.inForce.fieldRules, this.findings.requestId), body);
      },
      begin: (status, rawHeaders) => {
        this.phase = 'forwarding';
        this.onHead(status, rawHeaders);
      },
      write: this.onBody.bind(this),
      end: this.onEnd.bind(this),
    };
  }

  /** Gives the caller a whole answer. */
  private pass(status: number, fields: string[], body: Buffer): void {
    this.attempt(() => {
      if (this.phase !== 'reserving') return;
      const isWhole = this.answer.begin(status, fields);
      this.phase = isWhole ? 'answered' : 'answering';
      if (isWhole) return;
      if (body.length > 0) this.answer.write(body);
      this.phase = 'answered';
      this.answer.end(this.inForce.config.upstream.idleTimeoutMs, this.onStalled);
    });
  }

  /** The caller has as long to take some of the answer as the receiver has to send some. */
  private waitForCaller(): void {
    this.arrival.connection.expectFlush(this.inForce.config.upstream.idleTimeoutMs, this.onStalled);
    if (this.listensForDrain) return;
    this.listensForDrain = true;
    this.answer.onDrain(() => {
      this.arrival.connection.flushed();
      this.call?.resume();
      this.reserved?.resume();
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
    this.reserved?.leave();
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
    this.reserved?.leave();
    this.slot?.();
    this.identify();
    const { findings, head, reason, record, isReplayed, startedMs, askedMs, answeredMs } = this;
    recordRequest(this.deps, {
      findings, reason, record, isReplayed, startedMs, askedMs, answeredMs, method: head.method, target: head.target, status: this.answer.status(),
    });
    this.arrival.connection.finish(this);
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
