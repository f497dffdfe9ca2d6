import { denial, type Denial } from '../../decision/denial.js';
import { gate, leaseMsOf } from '../../decision/dispatch-gate.js';
import { fingerprintOf } from '../../decision/fingerprint.js';
import type { Reserve, StoredResponse } from '../../decision/reservation.js';
import { settle, type UpstreamOutcome } from '../../decision/settlement.js';
import { storedFields } from '../../decision/stored-response.js';
import { markerTtlMs } from '../../decision/token-marker.js';
import type { Clock, ReservationMetrics, ReservationStore, ReserveAnswer } from '../../ports.js';
import { newAttempt } from '../identifiers.js';
import type { Admission } from '../pipeline.js';
import type { AnswerSink } from '../upstream-call.js';
import type { Upstream, UpstreamCall } from '../upstream.js';
import { announcedLength, outcomeField, type CollectedAnswer } from './collected-answer.js';
import type { Preparation } from './preparation.js';
import { refusalOf } from './refusals.js';
import type { Settlements, SettleCommand } from './settlements.js';

/** What a run tells the caller, as long as there is one. */
export interface ReservedCaller {
  readonly isGone: () => boolean;
  readonly refuse: (reason: Denial) => void;
  /** An answer kept from an earlier run. */
  readonly replay: (response: StoredResponse) => void;
  /** The receiver's whole answer. */
  readonly answer: (status: number, rawHeaders: readonly string[], body: Buffer) => void;
  /** The head of an answer that is too large to keep, and then its parts. */
  readonly begin: (status: number, rawHeaders: readonly string[]) => void;
  /** `false` stops the receiver until `ReservedRun.resume`. */
  readonly write: (chunk: Buffer) => boolean;
  readonly end: () => void;
  readonly asked: () => void;
  readonly answered: () => void;
}

export interface ReservedRunDeps {
  readonly store: ReservationStore;
  readonly settlements: Settlements;
  readonly metrics: ReservationMetrics;
  readonly clock: Clock;
  /** Replicas that have to confirm. */
  readonly replicas: number;
  readonly settleTimeoutMs: number;
}

export interface ReservedInput {
  readonly admission: Admission;
  readonly preparation: Preparation;
  readonly method: string;
  readonly body: Buffer;
  readonly upstream: Upstream;
  readonly connectTimeoutMs: number;
}

/** Names of what the receiver learns of a reservation. */
const recordField = 'Idempotency-Record';
const fenceField = 'Idempotency-Fence';

/**
 * One reserved write, from its reservation to its settlement. It goes on when the caller leaves: what was dispatched is
 * completed, so that a retry gets the same answer. Every path ends in one settlement or none needed, and in `done`.
 */
export class ReservedRun implements AnswerSink {
  private readonly deps: ReservedRunDeps;
  private readonly input: ReservedInput;
  private readonly caller: ReservedCaller;
  private readonly attempt = newAttempt();
  private readonly leaseMs: number;
  private readonly upstreamMs: number;
  private fence = 0;
  private fingerprint = '';
  private leaseEndsMs = 0;
  private call: UpstreamCall | null = null;
  private timer: NodeJS.Timeout | null = null;
  private collected: CollectedAnswer | null = null;
  /** `collecting` until the answer turns out too large; `turning` while that is written down. */
  private mode: 'collecting' | 'turning' | 'streaming' | 'over' = 'collecting';
  private endedWhileTurning: Denial | 'end' | null = null;
  private finish: () => void = () => undefined;
  /** Settles when nothing of the run is left but background settlements. Never rejects. */
  readonly done: Promise<void>;

  constructor(deps: ReservedRunDeps, input: ReservedInput, caller: ReservedCaller) {
    this.deps = deps;
    this.input = input;
    this.caller = caller;
    // Waiting for a free connection and connecting have the connect time-out each.
    const connectMs = 2 * input.connectTimeoutMs;
    const responseMs = input.admission.route.responseTimeoutMs;
    this.upstreamMs = connectMs + responseMs;
    this.leaseMs = leaseMsOf({ connectMs, responseMs, settleMs: deps.settleTimeoutMs });
    this.done = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  /** Reserves, and goes on where that succeeds. Rejects only for a bug. */
  async start(): Promise<void> {
    const { clock, store, metrics } = this.deps;
    const reservedAtMs = clock.monotonic();
    this.leaseEndsMs = reservedAtMs + this.leaseMs;
    const answer = await store.reserve(this.input.preparation.scope, this.reserveCommand());
    metrics.storeCall('reserve', clock.monotonic() - reservedAtMs);
    if (!answer.ok) {
      metrics.reservation('unavailable');
      // It may have run all the same: freed by attempt id as soon as the store answers again.
      if (answer.error.mayHaveRun) void this.write({ kind: 'release', attempt: this.attempt });
      this.refuse(denial('store_unavailable'));
      return;
    }
    const { reserved } = answer.value;
    metrics.reservation(reserved.kind === 'unsupported' ? 'unavailable' : reserved.kind);
    if (reserved.kind === 'acquired') await this.passGate(answer.value, reserved.fence, reservedAtMs);
    else if (reserved.kind === 'replayed') this.replay(reserved.response);
    else this.refuse(refusalOf(reserved, this.input.preparation.recordId));
  }

  /** Lets a streamed answer go on. */
  resume(): void {
    this.call?.resume();
  }

  /** Nobody listens any more. What was dispatched goes on; an answer that is not kept anyway does not. */
  callerGone(): void {
    if (this.mode === 'streaming') this.stop();
  }

  /** Time is up: what was dispatched and has no answer is in doubt. */
  breakOff(): void {
    if (this.mode !== 'collecting' || this.call === null) return;
    this.call.cancel();
    void this.conclude(this.collected === null ? { kind: 'no_status' } : cutOff(this.collected), denial('shutting_down'));
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    this.collected = { status, rawHeaders, chunks: [], bytes: 0 };
    if ((announcedLength(rawHeaders) ?? 0) > this.maxStored()) this.turn(this.collected);
  }

  onBody(chunk: Buffer): boolean {
    const { collected } = this;
    if (this.mode === 'streaming') return this.caller.write(chunk);
    if (collected === null || this.mode === 'over') return true;
    collected.chunks.push(chunk);
    collected.bytes += chunk.length;
    if (this.mode === 'turning') return false;
    if (collected.bytes <= this.maxStored()) return true;
    this.turn(collected);
    return false;
  }

  onEnd(): void {
    this.stopTimer();
    this.caller.answered();
    if (this.mode === 'turning') this.endedWhileTurning = 'end';
    else if (this.mode === 'streaming') this.endStream();
    else if (this.mode === 'collecting' && this.collected !== null) void this.concludeWhole(this.collected);
  }

  onFailure(reason: Denial): void {
    this.stopTimer();
    this.caller.answered();
    const { collected } = this;
    if (this.mode === 'turning') this.endedWhileTurning = reason;
    else if (this.mode === 'streaming') this.refuse(reason);
    else if (collected !== null) void this.conclude(cutOff(collected), reason);
    else void this.conclude({ kind: certainlyNotSent(reason) ? 'not_dispatched' : 'no_status' }, reason);
  }

  private reserveCommand(): Reserve {
    const { rules, principal, issuer, scope, recordId } = this.input.preparation;
    const { admission: { target, fields }, method, body } = this.input;
    this.fingerprint = fingerprintOf({
      method,
      operation: rules.operation,
      path: target.path,
      query: target.query,
      contentType: valueOf(fields.passed, 'content-type'),
      contentEncoding: valueOf(fields.passed, 'content-encoding'),
      body,
      fields: rules.fields.map(name => ({ name, value: valueOf(fields.passed, name) })),
    });
    return {
      attempt: this.attempt,
      key: recordId === null
        ? null
        : { fingerprint: this.fingerprint, leaseMs: this.leaseMs, retentionMs: rules.retentionMs, takesOver: rules.receiver === 'deduplicates' },
      markerTtlMs: scope.token === null
        ? null
        : markerTtlMs({ expiresAtS: principal.expiresAtS, clockSkewS: issuer.clockSkewS }, this.deps.clock.now()),
    };
  }

  private async passGate({ confirmedReplicas }: ReserveAnswer, fence: number, reservedAtMs: number): Promise<void> {
    const { clock, replicas, metrics } = this.deps;
    const { principal, issuer } = this.input.preparation;
    this.fence = fence;
    const refused = gate({
      sinceReserveMs: clock.monotonic() - reservedAtMs,
      leaseMs: this.leaseMs,
      upstreamMs: this.upstreamMs,
      confirmedReplicas: confirmedReplicas ?? 0,
      neededReplicas: replicas,
      nowMs: clock.now(),
      tokenExpiresAtMs: principal.expiresAtS * 1000,
      clockSkewMs: issuer.clockSkewS * 1000,
      callerGone: this.caller.isGone(),
    });
    if (refused === null) {
      this.dispatch();
      return;
    }
    if ((confirmedReplicas ?? 0) < replicas) metrics.replicaShortfall();
    await this.conclude({ kind: 'not_dispatched' }, refused);
  }

  private dispatch(): void {
    const { admission, method, body, upstream, preparation: { recordId } } = this.input;
    const fields = [...admission.forwarded];
    // The whole body is here: its length is known, however it came.
    if (admission.fields.contentLength === null && (body.length > 0 || admission.fields.chunked)) fields.push('Content-Length', String(body.length));
    if (recordId !== null) fields.push(recordField, recordId);
    fields.push(fenceField, String(this.fence));
    this.timer = setTimeout(() => {
      this.call?.cancel();
      this.onFailure(denial('upstream_timeout'));
    }, this.upstreamMs);
    this.caller.asked();
    const request = {
      method, target: admission.target.raw, fields, body: body.length > 0 ? body : null, responseTimeoutMs: admission.route.responseTimeoutMs,
    };
    this.call = upstream.send(request, this);
  }

  /** Store before replying: what a caller saw is what a retry gets. */
  private async concludeWhole(collected: CollectedAnswer): Promise<void> {
    const { storeHeaders } = this.input.preparation.rules;
    const body = Buffer.concat(collected.chunks);
    const fields = storedFields(collected.rawHeaders, storeHeaders);
    const outcome = outcomeField(collected.rawHeaders);
    this.mode = 'over';
    await this.settleAs(fields === null
      ? cutOff(collected)
      : { kind: 'whole', response: { status: collected.status, fields, body }, outcome });
    if (!this.caller.isGone()) this.caller.answer(collected.status, collected.rawHeaders, body);
    this.finish();
  }

  /** Ends without a whole answer. */
  private async conclude(outcome: UpstreamOutcome, reason: Denial): Promise<void> {
    if (this.mode === 'over') return;
    this.mode = 'over';
    this.stopTimer();
    await this.settleAs(outcome);
    this.refuse(outcome.kind === 'no_status' || outcome.kind === 'cut_off' ? withRecord(reason, this.input.preparation.recordId) : reason);
  }

  /** The answer is too large to keep: that is written down, and then it is passed on as it comes. */
  private turn(collected: CollectedAnswer): void {
    this.mode = 'turning';
    void this.settleAs(cutOff(collected)).then(() => {
      if (this.caller.isGone()) {
        this.stop();
        return;
      }
      this.mode = 'streaming';
      // The total time was for an answer to keep; bytes of a stream have their own.
      this.stopTimer();
      this.caller.begin(collected.status, collected.rawHeaders);
      const flows = collected.chunks.length === 0 || this.caller.write(Buffer.concat(collected.chunks));
      collected.chunks.length = 0;
      if (this.endedWhileTurning === 'end') this.endStream();
      else if (this.endedWhileTurning !== null) this.refuse(this.endedWhileTurning);
      else if (flows) this.call?.resume();
    });
  }

  private endStream(): void {
    this.mode = 'over';
    this.caller.end();
    this.finish();
  }

  private stop(): void {
    this.mode = 'over';
    this.stopTimer();
    this.call?.cancel();
    this.finish();
  }

  private replay(response: StoredResponse): void {
    if (!this.caller.isGone()) this.caller.replay(response);
    this.finish();
  }

  private refuse(reason: Denial): void {
    this.mode = 'over';
    if (!this.caller.isGone()) this.caller.refuse(reason);
    this.finish();
  }

  private async settleAs(outcome: UpstreamOutcome): Promise<void> {
    const { rules, recordId } = this.input.preparation;
    // Only a token was reserved, and its marker stays: there is nothing to settle.
    if (recordId === null) return;
    const settlement = settle(outcome, { releaseOn: rules.releaseOn, trustsOutcome: rules.receiver !== 'plain' });
    switch (settlement.kind) {
      case 'release':
        await this.write({ kind: 'release', attempt: this.attempt });
        return;
      case 'mark':
        await this.write({ kind: 'mark', command: { attempt: this.attempt, fence: this.fence } });
        return;
      case 'complete':
        await this.write({
          kind: 'complete',
          command: {
            attempt: this.attempt, fence: this.fence, fingerprint: this.fingerprint,
            state: settlement.state, response: settlement.response, retentionMs: rules.retentionMs,
          },
        });
    }
  }

  private async write(command: SettleCommand): Promise<void> {
    const { scope, rules, recordId } = this.input.preparation;
    // An answer is worth keeping for as long as retries may ask for it, within reason; a release only helps until the lease ends.
    const untilMs = command.kind === 'complete' ? this.deps.clock.monotonic() + Math.min(rules.retentionMs, completionPatienceMs) : this.leaseEndsMs;
    await this.deps.settlements.settle(scope, command, untilMs, recordId);
  }

  private maxStored(): number {
    return this.input.preparation.rules.maxStoredResponseBytes;
  }

  private stopTimer(): void {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.timer = null;
  }
}

/** How long a result that the store did not take is offered again, milliseconds. */
const completionPatienceMs = 5 * 60_000;

function cutOff({ status, rawHeaders }: CollectedAnswer): UpstreamOutcome {
  return { kind: 'cut_off', status, outcome: outcomeField(rawHeaders) };
}

/** With these reasons not one byte was written. */
function certainlyNotSent({ reason }: Denial): boolean {
  return reason === 'upstream_unreachable' || reason === 'overloaded';
}

function withRecord(reason: Denial, record: string | null): Denial {
  return record === null ? reason : { ...reason, record };
}

function valueOf(passed: readonly string[], name: string): string | null {
  const values: string[] = [];
  for (let index = 0; index + 1 < passed.length; index += 2) {
    if ((passed[index] ?? '').toLowerCase() === name) values.push(passed[index + 1] ?? '');
  }
  return values.length === 0 ? null : values.join(', ');
}
