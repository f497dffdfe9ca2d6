import { performance } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import { denial, type Denial } from '../../decision/denial.js';
import type { ListenSettings } from '../../config/types.js';
import { ByteBuffer } from './byte-buffer.js';
import type { BodySource } from './received-request.js';
import type { BodyTrailers } from '../upstream/call.js';

/** How slowly a caller may send a body; asked for whenever it counts. */
export interface BodyTimeouts {
  /** How long it may send nothing while somebody waits for more; milliseconds. */
  idleMs: number;
  /** Bytes a second on average, once it has been waited for `minRateAfterMs`; 0 asks for none. */
  minRate: number;
  minRateAfterMs: number;
}

/** What a listener's settings say of it. */
export function bodyTimeoutsOf({
  bodyIdleTimeoutMs,
  bodyMinRate,
}: Pick<ListenSettings, 'bodyIdleTimeoutMs' | 'bodyMinRate'>): BodyTimeouts {
  return { idleMs: bodyIdleTimeoutMs, minRate: bodyMinRate, minRateAfterMs: 2 * bodyIdleTimeoutMs };
}

interface RequestBodyOptions {
  readonly maxBytes: number;
  readonly timeouts: BodyTimeouts;
  /** How long the upstream may take nothing while the caller waits. */
  readonly upstreamTimeoutMs: number;
  /** What of its trailers goes on; `null` where nothing does. */
  readonly passedTrailers: (trailers: readonly string[]) => readonly string[] | null;
  /** Called once, when the body will not be complete. */
  readonly onBroken: (reason: Denial) => void;
}

/**
 * Opens the body of a request that may go on; `null` where it has none. A caller that waits for it is told when it is
 * wanted.
 */
export function openBody(
  received: { readonly body: () => BodySource },
  { hasBody, expectsContinue }: { readonly hasBody: boolean; readonly expectsContinue: boolean },
  options: RequestBodyOptions,
): RequestBody | null {
  return hasBody ? new RequestBody(received.body(), expectsContinue, options) : null;
}

/** Returns a body that was read whole in the framing that it came in: a length, or chunks. */
export function framedBody(
  whole: Buffer,
  { contentLength }: { readonly contentLength: number | null },
): Readable | Buffer {
  if (contentLength !== null) return whole;
  // `Readable.from` would ask a generator for each piece, a promise at a time.
  const body = new Readable({ read: ignore });
  body.push(whole);
  body.push(null);
  return body;
}

/**
 * Bytes on their way before the caller has to wait: for the upstream, or for the end of the turn, which would otherwise
 * bring megabytes at once. Whoever takes them slowly is timed by what was passed on together.
 */
const maxGatheredBytes = 64 * 1024;

/**
 * The body of a caller's request on its way to the upstream, counted as it comes. It ends only when the whole of it
 * came, so that a broken body never ends like a whole one.
 */
export class RequestBody extends Readable implements BodyTrailers {
  private readonly source: BodySource;
  private readonly expectsContinue: boolean;
  private readonly options: RequestBodyOptions;
  private isWanted = false;
  private receivedBytes = 0;
  /**
   * What came and was not asked for yet, or came in this turn of the event loop: a body in tiny chunks must not make as
   * many writes.
   */
  private readonly gathered = new ByteBuffer();
  private isAsked = false;
  private isPassing = false;
  private timer: NodeJS.Timeout | null = null;
  /** How long the caller was waited for; milliseconds. */
  private waitedMs = 0;
  /** Since when the caller is waited for; `null` while it is the upstream. */
  private waitsSinceMs: number | null = null;
  private onGathered: ((whole: Buffer | null) => void) | null = null;

  /** @param expectsContinue whether the caller waits for `100 Continue`: it is sent when the first byte is wanted. */
  constructor(source: BodySource, expectsContinue: boolean, options: RequestBodyOptions) {
    // A stream keeps a list of what is pushed ahead, so this one is given a single piece, when it asks.
    super({ highWaterMark: 1 });
    this.source = source;
    this.expectsContinue = expectsContinue;
    this.options = options;
    // Who reads learns of a failure from `onBroken`; an error that nobody listens for would end the process.
    this.on('error', ignore);
  }

  /** Whether all of it came, though it may not be read yet. */
  isReceived(): boolean {
    return this.source.isComplete();
  }

  /**
   * Reads ahead, and tells when there is something to send: all of it, which is handed over, or the first 64 KiB, which
   * are left here.
   */
  gather(onGathered: (whole: Buffer | null) => void): void {
    this.onGathered = onGathered;
    this.begin();
  }

  /** What goes on of the trailers, once it has ended. */
  trailers(): readonly string[] | null {
    const trailers = this.source.trailers();
    return trailers.length === 0 ? null : this.options.passedTrailers(trailers);
  }

  /** Other timeouts count, from now on. */
  restartTimeout(): void {
    if (this.waitsSinceMs !== null) this.waitFor('caller');
  }

  override _read(): void {
    this.isAsked = true;
    if (this.gathered.length > 0) this.passSoon();
    this.begin();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.stopTimer();
    this.source.stream
      .off('data', this.onData)
      .off('end', this.onEnd)
      .off('error', this.onClose)
      .off('close', this.onClose);
    // The rest is read and forgotten, so that the caller gets to read the response.
    this.source.stream.on('error', ignore).resume();
    callback(error);
  }

  private readonly onData = (chunk: Buffer): void => {
    this.receivedBytes += chunk.length;
    this.source.onRead?.(chunk.length, this.options.timeouts.idleMs);
    if (this.receivedBytes > this.options.maxBytes) {
      this.break(denial('body_too_large'));
      return;
    }
    if (this.isTooSlow()) {
      this.break(denial('body_timeout'));
      return;
    }
    this.gathered.append(chunk);
    const isFull = this.gathered.length >= maxGatheredBytes;
    if (isFull) this.source.stream.pause();
    if (this.isAsked) this.passSoon();
    else if (isFull) {
      this.waitFor('upstream');
      this.tellGathered(null);
    } else if (this.onGathered !== null) this.timer?.refresh();
  };

  /** At the end of this turn, with what else it brings. */
  private passSoon(): void {
    if (this.isPassing) return;
    this.isPassing = true;
    setImmediate(this.pass);
  }

  private readonly pass = (): void => {
    this.isPassing = false;
    if (this.gathered.length === 0 || this.destroyed) return;
    this.isAsked = false;
    // Who takes it at once asks for more before this returns.
    this.push(this.gathered.take());
    if (!this.wasAskedAgain()) this.waitFor('upstream');
  };

  private wasAskedAgain(): boolean {
    return this.isAsked;
  }

  private readonly onEnd = (): void => {
    if (!this.source.isComplete()) {
      this.pass();
      this.break(denial(this.source.brokenBy));
      return;
    }
    if (this.onGathered !== null) {
      const whole = this.gathered.take();
      this.destroy();
      this.tellGathered(whole);
      return;
    }
    this.pass();
    if (this.destroyed) return;
    this.push(null);
    this.waitFor('upstream');
  };

  private readonly onClose = (): void => {
    if (!this.source.isComplete()) this.break(denial('caller_gone'));
  };

  private begin(): void {
    if (!this.isWanted) {
      this.isWanted = true;
      if (this.expectsContinue) this.source.sendContinue();
      this.source.stream
        .on('data', this.onData)
        .on('end', this.onEnd)
        .on('error', this.onClose)
        .on('close', this.onClose);
      // An empty body may have ended before anybody listened.
      if (this.source.stream.readableEnded) process.nextTick(this.onEnd);
    }
    this.source.stream.resume();
    this.waitFor('caller');
  }

  private tellGathered(whole: Buffer | null): void {
    const { onGathered } = this;
    this.onGathered = null;
    onGathered?.(whole);
  }

  private break(reason: Denial): void {
    if (this.destroyed) return;
    this.destroy();
    this.options.onBroken(reason);
  }

  private waitFor(side: 'caller' | 'upstream'): void {
    this.stopTimer();
    const isForCaller = side === 'caller' && !this.source.isComplete();
    this.waitedMs = this.waitedSoFarMs();
    this.waitsSinceMs = isForCaller ? performance.now() : null;
    if (side === 'caller' && !isForCaller) return;
    const limitMs = isForCaller ? this.options.timeouts.idleMs : this.options.upstreamTimeoutMs;
    this.timer = setTimeout(() => {
      this.break(denial(side === 'caller' ? 'body_timeout' : 'upstream_timeout'));
    }, limitMs);
  }

  private waitedSoFarMs(): number {
    return this.waitsSinceMs === null ? this.waitedMs : this.waitedMs + performance.now() - this.waitsSinceMs;
  }

  /** Whoever pauses for too long is noticed by the timer; this is for those who send hardly anything, now and then. */
  private isTooSlow(): boolean {
    const { minRateAfterMs, minRate } = this.options.timeouts;
    return minRate > 0 && this.waitedSoFarMs() > minRateAfterMs + (this.receivedBytes / minRate) * 1_000;
  }

  private stopTimer(): void {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.timer = null;
  }
}

function ignore(): void {
  // There is nothing to do.
}
