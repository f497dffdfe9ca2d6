import { denial, type Denial, type Reason } from '../../decision/denial.js';
import type { Reserved } from '../../decision/idempotency/record.js';
import { callerFields } from '../../decision/http/response-headers.js';
import { revocationReasons } from '../../decision/revocation/match.js';
import type { UpstreamOutcome } from '../../decision/idempotency/settlement.js';
import { isShowable, replayedFields, storedFields } from '../../decision/idempotency/stored-response.js';
import type { Clock, Timers } from '../../ports/system.js';
import { assertionFields } from '../exchange/assertion-headers.js';
import { ByteBuffer } from '../inbound/byte-buffer.js';
import type { Exchange } from '../exchange/exchange.js';
import { holderOf, type Slot } from '../exchange/concurrency.js';
import type { ResponseSink } from '../upstream/call.js';
import type { UpstreamCall } from '../upstream/pool/pool.js';
import { Attempt, type AttemptDeps, type ReservedWrite } from './attempt.js';
import { announcedLength, outcomeField, type CollectedAnswer } from './buffered-response.js';
import { refusalOf } from './refusals.js';

/**
 * - `waiting`: nothing was reserved
 * - `reserving`: nothing was sent
 * - `collecting`: it was sent, and the answer is kept as it comes
 * - `turning`: the answer will not be kept, and that is being written down
 * - `streaming`: it is written down, and the answer goes on to the caller as it comes
 * - `over`: settled, or about to be; what the receiver still says counts for nothing
 */
type Phase = 'waiting' | 'reserving' | 'collecting' | 'turning' | 'streaming' | 'over';

/** The request of a reserved write, as long as its client listens. */
export type WriteClient = Pick<
  Exchange,
  | 'isGone'
  | 'refuse'
  | 'refuseUnreserved'
  | 'refuseUnsent'
  | 'respond'
  | 'onHead'
  | 'onData'
  | 'onEnd'
  | 'upstreamAsked'
  | 'upstreamAnswered'
  | 'fail'
>;

/**
 * One reserved write, from its reservation to its settlement. It goes on when the caller leaves: what was dispatched is
 * completed, so that a retry gets the same answer.
 */
export class ReservedRun implements ResponseSink {
  private readonly write: ReservedWrite;
  private readonly client: WriteClient;
  /** Called once, when nothing of it is left but what the store has yet to take. */
  private readonly onOver: () => void;
  private readonly attempt: Attempt;
  private readonly clock: Clock;
  private readonly timers: Timers;
  private phase: Phase = 'reserving';
  private isBrokenOff = false;
  /** Takes it out of the line of those that are not reserved. */
  private leaveLine: () => void = nothing;
  /** Its place, until the call has it. */
  private place: Slot = nothing;
  private waitedMs = 0;
  private call: UpstreamCall | null = null;
  /** Stops the time that the receiver has. */
  private callOff: () => void = nothing;
  private collected: CollectedAnswer | null = null;
  /** What the receiver did while that was written down. */
  private endedWhileTurning: Denial | 'end' | null = null;

  constructor(deps: AttemptDeps, write: ReservedWrite, client: WriteClient, onOver: () => void) {
    this.write = write;
    this.client = client;
    this.onOver = () => {
      this.place();
      onOver();
    };
    this.attempt = new Attempt(deps, write);
    this.clock = deps.clock;
    this.timers = deps.timers;
  }

  /**
   * Reserves when its turn with a connection is near, and goes on where that succeeds: to reserve, to wait, to give way
   * and to release takes more of the store and of this process than to serve. Who has no turn is refused, whatever the
   * store knows of it.
   */
  start(): void {
    this.phase = 'waiting';
    const sinceMs = this.clock.monotonic();
    this.leaveLine = this.write.inForce.upstream.awaitTurn({
      holder: holderOf(this.write.admission),
      onTurn: (place) => {
        this.place = place;
        this.waitedMs = this.clock.monotonic() - sinceMs;
        this.reserve();
      },
      onRefused: (reason) => {
        this.refuseUnreserved(reason);
      },
    });
  }

  /** Lets a streamed answer go on. */
  resume(): void {
    this.call?.resume();
  }

  /**
   * Nobody listens any more. What was dispatched goes on; the rest of an answer whose status is kept does not, and
   * nothing is reserved.
   */
  callerGone(): void {
    if (this.phase === 'waiting') this.leave(denial('caller_gone'));
    if (this.phase === 'streaming' && this.isKept()) this.stop();
  }

  /** Time is up: what is not sent yet will not be, and what has no answer is in doubt. */
  breakOff(): void {
    this.isBrokenOff = true;
    if (this.phase === 'waiting') this.leave(denial('shutting_down'));
    else if (this.phase === 'collecting') this.giveUp(denial('shutting_down'));
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    if (!this.attempt.isAnsweredBy(rawHeaders)) {
      this.call?.cancel();
      this.onError(denial('upstream_failed'));
      return;
    }
    this.collected = { status, rawHeaders, body: new ByteBuffer() };
    // An answer to HEAD announces a body that does not come.
    const isTooLarge = this.write.method !== 'HEAD' && announcedLength(rawHeaders) > this.maxStored();
    if (isTooLarge || !this.isKept()) this.turn(this.collected);
  }

  onData(chunk: Buffer): boolean {
    const { collected } = this;
    if (this.phase === 'streaming') return this.client.onData(chunk);
    if (collected === null || this.phase === 'over') return true;
    collected.body.append(chunk);
    if (this.phase === 'turning') return false;
    if (collected.body.length <= this.maxStored()) return true;
    this.turn(collected);
    return false;
  }

  onEnd(): void {
    this.answered();
    if (this.phase === 'turning') this.endedWhileTurning = 'end';
    else if (this.phase === 'streaming') this.endStream();
    else if (this.phase === 'collecting' && this.collected !== null) this.concludeWhole(this.collected);
  }

  onError(reason: Denial): void {
    this.answered();
    if (this.phase === 'turning') this.endedWhileTurning = reason;
    else if (this.phase === 'streaming') this.refuse(reason);
    else if (this.phase === 'collecting') this.concludeFailed(reason);
  }

  private reserve(): void {
    this.phase = 'reserving';
    this.go(async () => {
      const reserved = await this.attempt.reserve();
      if (reserved === null) this.refuse(denial('store_unavailable'));
      else if (reserved.kind === 'acquired') await this.dispatchOrRelease();
      else if (reserved.kind === 'replayed') this.replay(reserved);
      else this.refuseUnsent(refusalOf(reserved, this.write.preparation.recordId));
    });
  }

  private async dispatchOrRelease(): Promise<void> {
    const asked = this.attempt.isOverShare();
    const isOverShare = asked !== false && (await asked);
    const refused =
      this.attempt.refusal(this.client.isGone()) ??
      (this.isBrokenOff ? denial('shutting_down') : null) ??
      (isOverShare ? denial('too_many_kept') : null);
    if (refused === null) {
      this.dispatch();
      return;
    }
    await this.attempt.settle({ kind: 'not_dispatched' });
    this.refuseUnsent(refused);
  }

  private dispatch(): void {
    const {
      admission: { target, fields, forwarded, route },
      method,
      body,
      inForce: { upstream },
    } = this.write;
    this.phase = 'collecting';
    this.callOff = this.timers.after(this.attempt.upstreamMs, () => {
      this.giveUp({ reason: 'upstream_unreachable', error: 'connection_timeout' });
    });
    this.client.upstreamAsked();
    // The whole body is here: its length is known, however it came.
    const length =
      fields.contentLength === null && (body.length > 0 || fields.chunked)
        ? ['Content-Length', String(body.length)]
        : [];
    this.call = upstream.send(
      {
        holder: holderOf(this.write.admission),
        method,
        target: target.raw,
        fields: [
          ...forwarded,
          ...length,
          ...this.attempt.fields(),
          ...assertionFields(this.write.admission, method, this.write.inForce),
        ],
        body: body.length > 0 ? body : null,
        responseTimeoutMs: route.responseTimeoutMs,
        place: this.place,
        waitedMs: this.waitedMs,
        lateRefusal: () => this.attempt.lateRefusal(),
      },
      this,
    );
  }

  /**
   * Waits no longer. `unsent` is what to say where not one byte was written; else the receiver was too slow, whatever
   * the cause.
   */
  private giveUp(unsent: Denial): void {
    const { call } = this;
    call?.cancel();
    this.onError(call?.mayBeSent() === false ? unsent : denial('upstream_timeout'));
  }

  /** Store before replying: what a caller saw is what a retry gets. */
  private concludeWhole(collected: CollectedAnswer): void {
    this.phase = 'over';
    this.go(async () => {
      const { status, rawHeaders } = collected;
      const body = collected.body.take();
      const fields = this.fieldsOf(collected);
      const kept = storedFields(fields, this.write.preparation.rules.storeHeaders);
      const outcome: UpstreamOutcome =
        kept === null
          ? cutOff(collected)
          : { kind: 'whole', response: { status, fields: kept, body }, outcome: outcomeField(rawHeaders) };
      await this.attempt.settle(outcome);
      if (!this.client.isGone()) this.client.respond({ status, fields, body, isReplayed: false });
      this.onOver();
    });
  }

  /** There is no whole answer. */
  private concludeFailed(reason: Denial): void {
    this.phase = 'over';
    const { collected } = this;
    const wasSent = collected !== null || !certainlyNotSent(reason);
    const { recordId } = this.write.preparation;
    this.go(async () => {
      await this.attempt.settle(
        collected !== null ? cutOff(collected) : { kind: wasSent ? 'no_status' : 'not_dispatched' },
      );
      this.refuse(wasSent && recordId !== null ? { ...reason, record: recordId } : reason);
    });
  }

  /** The answer is not kept: that is written down, and then it is passed on as it comes. */
  private turn(collected: CollectedAnswer): void {
    this.phase = 'turning';
    this.go(async () => {
      await this.attempt.settle(cutOff(collected));
      if (this.client.isGone() && this.isKept()) {
        this.stop();
        return;
      }
      this.phase = 'streaming';
      this.client.onHead(collected.status, collected.rawHeaders);
      const flows = collected.body.length === 0 || this.client.onData(collected.body.take());
      if (this.endedWhileTurning === 'end') this.endStream();
      else if (this.endedWhileTurning !== null) this.refuse(this.endedWhileTurning);
      else if (flows) this.call?.resume();
    });
  }

  private endStream(): void {
    this.phase = 'over';
    this.client.onEnd();
    this.onOver();
  }

  /** Nobody wants the rest. */
  private stop(): void {
    this.phase = 'over';
    this.stopTimer();
    this.call?.cancel();
    this.onOver();
  }

  private replay({ response }: Extract<Reserved, { kind: 'replayed' }>): void {
    const {
      admission: { requestId },
      preparation: { sentKey },
    } = this.write;
    const { status, body } = response;
    if (!isShowable(response)) {
      this.refuse(denial('store_unavailable'));
      return;
    }
    this.phase = 'over';
    if (!this.client.isGone()) {
      this.client.respond({
        status,
        fields: replayedFields(response, sentKey ?? '', requestId),
        body: Buffer.from(body),
        isReplayed: true,
      });
    }
    this.onOver();
  }

  private refuse(reason: Denial): void {
    this.phase = 'over';
    if (!this.client.isGone()) this.client.refuse(reason);
    this.onOver();
  }

  private refuseUnreserved(reason: Denial): void {
    this.phase = 'over';
    this.client.refuseUnreserved(reason);
    this.onOver();
  }

  /** Has no turn any more. */
  private leave(reason: Denial): void {
    this.leaveLine();
    this.refuseUnreserved(reason);
  }

  private refuseUnsent(reason: Denial): void {
    this.phase = 'over';
    if (!this.client.isGone()) this.client.refuseUnsent(reason, this.write.body);
    this.onOver();
  }

  private fieldsOf({ status, rawHeaders }: CollectedAnswer): string[] {
    return callerFields(status, rawHeaders, this.write.inForce.fieldRules, this.write.admission.requestId);
  }

  /** Whether an answer may be shown again; where only the token was reserved none is, and it goes on as it comes. */
  private isKept(): boolean {
    return this.write.preparation.recordId !== null;
  }

  private maxStored(): number {
    return this.write.preparation.rules.maxStoredResponseBytes;
  }

  private answered(): void {
    this.stopTimer();
    this.client.upstreamAnswered();
  }

  private stopTimer(): void {
    this.callOff();
    this.callOff = nothing;
  }

  /** What fails in it is a bug. */
  private go(step: () => Promise<void>): void {
    step().catch((error: unknown) => {
      this.phase = 'over';
      this.stopTimer();
      this.call?.cancel();
      this.client.fail(error);
      this.onOver();
    });
  }
}

function nothing(): void {
  // There is nothing to give back, to leave or to call off.
}

function cutOff({ status, rawHeaders }: CollectedAnswer): UpstreamOutcome {
  return { kind: 'cut_off', status, outcome: outcomeField(rawHeaders) };
}

/** With these reasons not one byte was written: there was no connection, or the gate refused on it. */
const notSent: ReadonlySet<Reason> = new Set([
  'upstream_unreachable',
  'overloaded',
  'shutting_down',
  'store_unavailable',
  'token_expired',
  ...revocationReasons,
]);

function certainlyNotSent({ reason }: Denial): boolean {
  return notSent.has(reason);
}
