import type { Readable } from 'node:stream';
import { denial, type Denial } from '../../decision/denial.js';
import { isOneMessage } from '../../decision/grpc/messages.js';
import { refusalOf, type Reserved } from '../../decision/idempotency/record.js';
import { certainlyNotSent } from '../../decision/idempotency/settlement.js';
import { isShowable, replayedHeaders } from '../../decision/idempotency/stored-response.js';
import { upstreamRequest } from '../exchange/forwarded-messages.js';
import type { Exchange } from '../exchange/exchange.js';
import type { WholeResponse } from '../inbound/received-request.js';
import { holderOf, type Slot } from '../exchange/concurrency.js';
import type { ResponseSink } from '../upstream/call.js';
import type { UpstreamCall, UpstreamOperation } from '../upstream/pool/pool.js';
import { WriteAttempt, type WriteAttemptDeps, type AttemptedWrite } from './write-attempt.js';
import { readWhole, type BufferBudget } from './body-buffer.js';
import { BufferedResponse } from './buffered-response.js';

/**
 * - `reading`: its body is not here yet
 * - `waiting`: for its turn with a connection; nothing is reserved
 * - `reserving`: nothing was sent
 * - `buffering`: it was sent, and the response is kept as it comes
 * - `settling`: the response will not be kept, and that is being written down
 * - `streaming`: it is written down, and the response goes on to the client as it comes
 * - `over`: settled, or about to be; what the upstream still says counts for nothing
 */
type Phase = 'reading' | 'waiting' | 'reserving' | 'buffering' | 'settling' | 'streaming' | 'over';

/** The request of a reserved write, as long as its client listens. */
export interface WriteClient extends Pick<
  Exchange,
  | 'isGone'
  | 'refuse'
  | 'refuseUnreserved'
  | 'refuseUnsent'
  | 'onHead'
  | 'onData'
  | 'upstreamAsked'
  | 'upstreamResponded'
  | 'fail'
> {
  /** Sends a whole response: the upstream's, or one that was kept, with trailers as the upstream sent them. */
  readonly respond: (response: WholeResponse) => void;
  readonly onEnd: ResponseSink['onEnd'];
}

const noBody = Buffer.alloc(0);

/** A request that reserves before it is sent on. */
export interface ReservedRequest extends Omit<AttemptedWrite, 'body'> {
  /** `null` where the request has none. It tells by itself when it breaks. */
  readonly body: Readable | null;
  readonly client: WriteClient;
  /** Called once, when nothing of it is left here: it may be long after the client left. */
  readonly onOver: () => void;
}

export interface ReservedWriteDeps extends WriteAttemptDeps {
  readonly budget: BufferBudget;
}

/**
 * One reserved write, from its body to its settlement: the body is read whole, and only then something is reserved. It
 * goes on when the client leaves: what was dispatched is completed, so that a retry gets the same response.
 */
export class ReservedWrite implements ResponseSink, UpstreamOperation {
  private readonly deps: ReservedWriteDeps;
  /** `null` once nothing is left of it here. */
  private held: ReservedRequest | null;
  private onOver: (write: ReservedWrite) => void;
  private phase: Phase = 'reading';
  private body: Buffer = noBody;
  /** Made when it has its turn: in overload most writes never do. */
  private made: WriteAttempt | null = null;
  private isAborted = false;
  private isCutOff = false;
  /** Gives back the memory of the body. */
  private releaseBuffer: () => void = nothing;
  /** Takes it out of the queue of those that are not reserved. */
  private leaveQueue: () => void = nothing;
  /** Its place, until the call has it. */
  private place: Slot = nothing;
  private waitedMs = 0;
  private call: UpstreamCall | null = null;
  /** Stops the time that the upstream has. */
  private cancelTimer: () => void = nothing;
  private response: BufferedResponse | null = null;
  /** How the response ended while its status was being written to the store. */
  private endedWhileSettling: Denial | Pick<WholeResponse, 'trailers'> | null = null;

  /** @param onOver called once, when nothing of it is left but what the store has yet to take. */
  constructor(deps: ReservedWriteDeps, request: ReservedRequest, onOver: (write: ReservedWrite) => void) {
    this.deps = deps;
    this.held = request;
    this.onOver = onOver;
  }

  private get request(): ReservedRequest {
    if (this.held === null) throw new Error('a write that is over was asked for its request');
    return this.held;
  }

  private get client(): WriteClient {
    return this.request.client;
  }

  private get attempt(): WriteAttempt {
    if (this.made === null) throw new Error('a write without an attempt was asked for it');
    return this.made;
  }

  start(): void {
    const { body, admission, preparation } = this.request;
    if (body === null) {
      this.awaitTurn(noBody);
      return;
    }
    this.releaseBuffer = readWhole(body, this.deps.budget.open(preparation.scope.principal), {
      expectedBytes: admission.headers.contentLength,
      onWhole: (bytes) => this.awaitTurn(bytes),
      onOverload: () => this.refuse(denial('overloaded')),
    });
  }

  /**
   * Reserves when the write's turn with a connection is near, and goes on where that succeeds. To reserve, wait, give
   * way and release takes more of the store and of this process than to serve. A write that gets no turn is refused,
   * even where the store has a result for it.
   */
  private awaitTurn(body: Buffer): void {
    if (this.phase !== 'reading') return;
    const { admission, preparation, activeConfig } = this.request;
    const { clock } = this.deps;
    if (this.isGrpc() && this.isKept() && !isOneMessage(body, preparation.rules.maxBodyBytes)) {
      this.refuse(denial('grpc_not_unary'));
      return;
    }
    this.phase = 'waiting';
    this.body = body;
    const sinceMs = clock.monotonic();
    this.leaveQueue = activeConfig.upstream.awaitTurn({
      holder: holderOf(admission),
      body,
      onTurn: (place) => {
        this.place = place;
        this.waitedMs = clock.monotonic() - sinceMs;
        this.reserve();
      },
      onRefused: (reason) => this.refuseUnreserved(reason),
    });
  }

  /** Lets a streamed response go on. */
  resume(): void {
    this.call?.resume();
  }

  /**
   * The client is gone. What was dispatched goes on; the rest of a response whose status is kept does not, and nothing
   * more is reserved.
   */
  cancel(): void {
    if (this.phase === 'reading') this.end();
    else if (this.phase === 'waiting') this.leave(denial('caller_gone'));
    else if (this.phase === 'streaming' && this.isKept()) this.stop();
  }

  /** Time is up: what is not sent yet will not be, and what has no response is in doubt. */
  abort(): void {
    this.isAborted = true;
    if (this.phase === 'reading') this.refuse(denial('shutting_down'));
    else if (this.phase === 'waiting') this.leave(denial('shutting_down'));
    else if (this.phase === 'buffering') this.giveUp(denial('shutting_down'));
  }

  /** Its caller was cut off: nobody gets the rest of a response that is passed on as it comes, and all is settled. */
  cutOff(): void {
    this.isCutOff = true;
    if (this.phase === 'streaming') this.stop();
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    if (this.phase === 'over') return;
    if (!this.attempt.isForThisAttempt(rawHeaders)) {
      this.call?.cancel();
      this.onError(denial('upstream_failed'));
      return;
    }
    this.response = new BufferedResponse(status, rawHeaders, this.request);
    if (this.response.isTooLarge() || !this.isKept()) this.streamUnkept(this.response);
  }

  onData(chunk: Buffer): boolean {
    const { response } = this;
    if (this.phase === 'streaming') return this.client.onData(chunk);
    if (response === null || this.phase === 'over') return true;
    response.append(chunk);
    if (this.phase === 'settling') return false;
    if (!response.isTooLarge()) return true;
    this.streamUnkept(response);
    return false;
  }

  onEnd(trailers: readonly string[] | null): void {
    this.onResponseOver();
    if (this.phase === 'settling') this.endedWhileSettling = { trailers };
    else if (this.phase === 'streaming') this.endStream(trailers);
    else if (this.phase === 'buffering' && this.response !== null) this.settleWhole(this.response, trailers);
  }

  onError(reason: Denial): void {
    this.onResponseOver();
    if (this.phase === 'settling') this.endedWhileSettling = reason;
    else if (this.phase === 'streaming') this.refuse(reason);
    else if (this.phase === 'buffering') this.settleFailed(reason);
  }

  private reserve(): void {
    this.phase = 'reserving';
    const { admission, preparation, method, activeConfig, trace } = this.request;
    this.run(async () => {
      this.made = new WriteAttempt(this.deps, { admission, preparation, method, activeConfig, trace, body: this.body });
      const reserved = await this.attempt.reserve();
      if (reserved === null) this.refuse(denial('store_unavailable'));
      else if (reserved.kind === 'acquired') await this.dispatchOrRelease();
      else if (reserved.kind === 'replayed') this.replay(reserved);
      else this.refuseUnsent(refusalOf(reserved, this.request.preparation.recordId));
    });
  }

  private async dispatchOrRelease(): Promise<void> {
    const asked = this.attempt.isOverShare();
    const isOverShare = asked !== false && (await asked);
    const refused =
      this.attempt.refusal(this.client.isGone()) ??
      (this.isAborted ? denial('shutting_down') : null) ??
      (isOverShare ? denial('too_many_kept') : null);
    if (refused === null) {
      this.dispatch();
      return;
    }
    await this.attempt.settle({ kind: 'not_dispatched' });
    this.refuseUnsent(refused);
  }

  private dispatch(): void {
    const { body } = this;
    const { admission, method, activeConfig, trace } = this.request;
    this.phase = 'buffering';
    this.cancelTimer = this.deps.timers.after(this.attempt.upstreamMs, () => {
      this.giveUp({ reason: 'upstream_unreachable', error: 'connection_timeout' });
    });
    this.client.upstreamAsked();
    this.call = activeConfig.upstream.send(
      {
        ...upstreamRequest({
          admission,
          method,
          body: body.length > 0 ? body : null,
          activeConfig,
          trace,
          ofReservation: this.attempt.headers(),
        }),
        place: this.place,
        waitedMs: this.waitedMs,
        lateRefusal: () => this.attempt.lateRefusal(),
      },
      this,
    );
  }

  /**
   * Waits no longer. `unsent` is what to say where not one byte was written; else the upstream was too slow, whatever
   * the cause.
   */
  private giveUp(unsent: Denial): void {
    const { call } = this;
    call?.cancel();
    this.onError(call?.mayBeSent() === false ? unsent : denial('upstream_timeout'));
  }

  /** Store before replying: what a caller saw is what a retry gets. */
  private settleWhole(response: BufferedResponse, trailers: readonly string[] | null): void {
    this.phase = 'over';
    this.run(async () => {
      const whole = response.whole(trailers);
      await this.attempt.settle(response.outcomeOf(whole));
      if (!this.client.isGone()) this.client.respond(whole);
      this.end();
    });
  }

  /** There is no whole response. */
  private settleFailed(reason: Denial): void {
    this.phase = 'over';
    const { response } = this;
    const wasSent = response !== null || !certainlyNotSent(reason);
    const { recordId } = this.request.preparation;
    this.run(async () => {
      // A gRPC call ends with its status, which did not come.
      const hasStatus = response !== null && !(this.isGrpc() && response.status === 200);
      await this.attempt.settle(hasStatus ? response.cutOff() : { kind: wasSent ? 'no_status' : 'not_dispatched' });
      if (wasSent) this.refuse(recordId === null ? reason : { ...reason, record: recordId });
      else this.refuseUnsent(reason);
    });
  }

  /** The response is not kept: that is written down, and then it is passed on as it comes. */
  private streamUnkept(response: BufferedResponse): void {
    this.phase = 'settling';
    this.run(async () => {
      await this.attempt.settle(response.cutOff());
      if (this.isCutOff || (this.client.isGone() && this.isKept())) {
        this.stop();
        return;
      }
      this.phase = 'streaming';
      this.client.onHead(response.status, response.rawHeaders);
      const came = response.take();
      const flows = came === null || this.client.onData(came);
      const ended = this.endedWhileSettling;
      if (ended !== null && 'trailers' in ended) this.endStream(ended.trailers);
      else if (ended !== null) this.refuse(ended);
      else if (flows) this.call?.resume();
    });
  }

  private endStream(trailers: readonly string[] | null): void {
    this.phase = 'over';
    this.client.onEnd(trailers);
    this.end();
  }

  /** Nobody wants the rest, or nobody gets it any more. */
  private stop(): void {
    this.phase = 'over';
    this.stopTimer();
    this.call?.cancel();
    this.end();
  }

  private replay({ response }: Extract<Reserved, { kind: 'replayed' }>): void {
    const { admission, preparation, trace } = this.request;
    const { status, body, traceparent } = response;
    if (!isShowable(response)) {
      this.refuse(denial('store_unavailable'));
      return;
    }
    this.phase = 'over';
    if (traceparent !== undefined) trace?.link(traceparent);
    if (!this.client.isGone()) {
      this.client.respond({
        status,
        headers: replayedHeaders(response, preparation.sentKey ?? '', admission.requestId),
        body: Buffer.from(body),
        trailers: response.trailers ?? null,
        isReplayed: true,
      });
    }
    this.end();
  }

  private refuse(reason: Denial): void {
    this.phase = 'over';
    // A body may still come when the write is over, and be too much.
    if (this.held?.client.isGone() === false) this.held.client.refuse(reason);
    this.end();
  }

  private refuseUnreserved(reason: Denial): void {
    this.phase = 'over';
    this.client.refuseUnreserved(reason);
    this.end();
  }

  /** Has no turn any more. */
  private leave(reason: Denial): void {
    this.leaveQueue();
    this.refuseUnreserved(reason);
  }

  private refuseUnsent(reason: Denial): void {
    this.phase = 'over';
    if (!this.client.isGone()) this.client.refuseUnsent(reason, this.body);
    this.end();
  }

  /**
   * Gives everything back, once, and lets go of the request. A `Set` or a queue that it passed through may keep what is
   * left of it for long: V8's tables refer to those that took their place, so once one of them is in the old generation
   * all that follow stay, and what was in them, until that is collected.
   */
  private end(): void {
    this.phase = 'over';
    if (this.held === null) return;
    const { onOver } = this;
    this.place();
    this.releaseBuffer();
    this.held = null;
    this.made = null;
    this.call = null;
    this.response = null;
    this.body = noBody;
    this.leaveQueue = nothing;
    this.releaseBuffer = nothing;
    this.onOver = nothing;
    onOver(this);
  }

  /** Whether a response may be shown again; where only the token was reserved none is, and it goes on as it comes. */
  private isKept(): boolean {
    return this.request.preparation.recordId !== null;
  }

  private isGrpc(): boolean {
    return this.request.admission.route.isGrpc;
  }

  private onResponseOver(): void {
    this.stopTimer();
    this.held?.client.upstreamResponded();
  }

  private stopTimer(): void {
    this.cancelTimer();
    this.cancelTimer = nothing;
  }

  /** What fails in it is a bug. */
  private run(step: () => Promise<void>): void {
    const { client } = this;
    step().catch((error: unknown) => {
      this.phase = 'over';
      this.stopTimer();
      this.call?.cancel();
      client.fail(error);
      this.end();
    });
  }
}

function nothing(): void {
  // There is nothing to give back, to leave or to call off.
}
