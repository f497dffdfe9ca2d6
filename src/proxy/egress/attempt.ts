import type { Denial } from '../../decision/denial.js';
import { needsProblem, outcomeOf, problemTypeIn, type ResponseOutcome } from '../../decision/egress/attempt-outcome.js';
import type { AttemptOutcome } from '../../decision/egress/retry.js';
import type { ResponseSink, UpstreamRequest } from '../upstream/call.js';
import type { Upstream, UpstreamCall } from '../upstream/pool/pool.js';

/** A response that was held back: its body decides, or another attempt may give a better one. */
export interface HeldResponse {
  readonly status: number;
  readonly rawHeaders: readonly string[];
  readonly chunks: readonly Buffer[];
  readonly trailers: readonly string[] | null;
}

/** Who makes the attempts. */
export interface EgressAttemptHost {
  readonly now: () => number;
  /**
   * Says what became of it, once. `held` is the whole response where it was held back to its end.
   *
   * @returns whether the response is passed on.
   */
  readonly onOutcome: (outcome: AttemptOutcome, held: HeldResponse | null) => boolean;
  /** There is no response. */
  readonly onFailure: (reason: Denial) => void;
  /** What is passed on, from its head to one of its two ends. */
  readonly onHead: (status: number, rawHeaders: readonly string[]) => void;
  readonly onData: (chunk: Buffer) => boolean;
  readonly onEnd: (trailers: readonly string[] | null) => void;
  readonly onError: (reason: Denial) => void;
}

/** How much of a response that is held back is read, bytes. */
const maxHeldResponseBytes = 16 * 1024;

/** How much of a response that is not passed on is read, so that its connection can be used again; bytes. */
const maxDiscardedBytes = 64 * 1024;

/**
 * How long after its head a response is read that is not passed on, milliseconds. Then what was held back is judged by
 * its head alone, and what nobody gets is broken off: bytes that come one by one would keep a caller, or a connection,
 * for hours.
 */
const maxUnpassedMs = 2_000;

/**
 * - `waiting`: for the head
 * - `holding`: holds back a response that is yet to be judged
 * - `passing`: passes it on
 * - `discarding`: reads what nobody gets
 */
type Phase = 'waiting' | 'holding' | 'passing' | 'discarding';

/** One attempt to have a request carried out by a target. */
export class EgressAttempt implements ResponseSink {
  private readonly host: EgressAttemptHost;
  private call: UpstreamCall | null = null;
  private phase: Phase = 'waiting';
  /** What the head says; `null` before it. */
  private outcome: ResponseOutcome | null = null;
  private rawHeaders: readonly string[] = [];
  private chunks: Buffer[] = [];
  private bytes = 0;
  /** The timer of `maxUnpassedMs`; `null` while it does not run. */
  private unpassed: NodeJS.Timeout | null = null;
  /** Whether nothing more of it comes. */
  private isOver = false;

  constructor(host: EgressAttemptHost) {
    this.host = host;
  }

  begin(upstream: Upstream, request: UpstreamRequest): void {
    this.call = upstream.send(request, this);
  }

  resume(): void {
    this.call?.resume();
  }

  cancel(): void {
    this.end();
    this.call?.cancel();
  }

  mayBeSent(): boolean {
    return this.call?.mayBeSent() === true;
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    const outcome = outcomeOf(status, rawHeaders, this.host.now());
    this.outcome = outcome;
    this.rawHeaders = rawHeaders;
    if (status === 401 || needsProblem(outcome, rawHeaders)) this.phase = 'holding';
    else this.settle(outcome, null);
    if (!this.isPassing() && !this.isOver) this.unpassed = setTimeout(() => this.endUnpassed(), maxUnpassedMs);
  }

  onData(chunk: Buffer): boolean {
    if (this.phase === 'passing') return this.host.onData(chunk);
    this.bytes += chunk.length;
    if (this.phase === 'discarding') {
      if (this.bytes > maxDiscardedBytes) this.cancel();
      return true;
    }
    this.chunks.push(chunk);
    // No problem document of Sallyport is larger.
    if (this.bytes > maxHeldResponseBytes) return this.judgeEarly();
    return true;
  }

  onEnd(trailers: readonly string[] | null): void {
    this.end();
    const { outcome, rawHeaders, chunks } = this;
    if (this.phase === 'holding' && outcome !== null) {
      const problemType = problemTypeIn(Buffer.concat(chunks));
      this.settle({ ...outcome, problemType }, { status: outcome.status, rawHeaders, chunks, trailers });
      if (this.isPassing()) for (const chunk of chunks) this.host.onData(chunk);
    }
    if (this.isPassing()) this.host.onEnd(trailers);
  }

  onError(reason: Denial): void {
    this.end();
    if (this.phase === 'passing') this.host.onError(reason);
    else if (this.phase !== 'discarding') this.host.onFailure(reason);
  }

  private settle(outcome: ResponseOutcome, held: HeldResponse | null): void {
    if (!this.host.onOutcome(outcome, held)) {
      this.phase = 'discarding';
      return;
    }
    this.stopTimer();
    this.phase = 'passing';
    this.host.onHead(outcome.status, this.rawHeaders);
  }

  /** By its head alone. */
  private judgeEarly(): boolean {
    const { outcome, chunks } = this;
    this.chunks = [];
    if (outcome !== null) this.settle(outcome, null);
    let flows = true;
    if (this.isPassing()) for (const chunk of chunks) flows = this.host.onData(chunk);
    return flows;
  }

  private endUnpassed(): void {
    if (this.phase === 'holding') this.judgeEarly();
    if (!this.isPassing()) this.cancel();
  }

  private end(): void {
    this.isOver = true;
    this.stopTimer();
  }

  private stopTimer(): void {
    if (this.unpassed !== null) clearTimeout(this.unpassed);
    this.unpassed = null;
  }

  private isPassing(): boolean {
    return this.phase === 'passing';
  }
}
