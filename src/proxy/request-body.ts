import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { denial, type Denial } from '../decision/denial.js';
import { ByteBuffer } from './byte-buffer.js';

export interface RequestBodyOptions {
  readonly maxBytes: number;
  /** How long the caller may send nothing while the receiver waits. */
  readonly callerTimeoutMs: number;
  /** How long the receiver may take nothing while the caller waits. */
  readonly receiverTimeoutMs: number;
  /** Called when the first byte is wanted: the caller may be waiting for `100 Continue`. */
  readonly onWanted: () => void;
  /** Called once, when the body will not be complete. */
  readonly onBroken: (reason: Denial) => void;
}

/** Opens the body of a request that may go on; `null` where it has none. A caller that waits for it is told when it is wanted. */
export function openBody(
  { req, res }: { readonly req: IncomingMessage; readonly res: ServerResponse },
  { hasBody, expectsContinue }: { readonly hasBody: boolean; readonly expectsContinue: boolean },
  options: Omit<RequestBodyOptions, 'onWanted'>,
): RequestBody | null {
  if (!hasBody) return null;
  return new RequestBody(req, {
    ...options,
    onWanted: () => {
      if (expectsContinue) res.writeContinue();
    },
  });
}

/** Bytes on their way before the caller has to wait for the receiver. */
const maxGatheredBytes = 64 * 1024;

/**
 * The body of a caller's request on its way to the receiver, counted as it comes. It ends only when the whole of it came,
 * so that a broken body never ends like a whole one.
 */
export class RequestBody extends Readable {
  private readonly request: IncomingMessage;
  private readonly options: RequestBodyOptions;
  private isWanted = false;
  private receivedBytes = 0;
  /** What came and was not asked for yet, or came in this turn of the event loop: a body in tiny chunks must not make as many writes. */
  private readonly gathered = new ByteBuffer();
  private isAsked = false;
  private isPassing = false;
  private timer: NodeJS.Timeout | null = null;

  constructor(request: IncomingMessage, options: RequestBodyOptions) {
    // The stream keeps a list of what it was given ahead: it is given one piece, when it asks.
    super({ highWaterMark: 1 });
    this.request = request;
    this.options = options;
    // Who reads learns of a failure from `onBroken`; an error that nobody listens for would end the process.
    this.on('error', () => undefined);
  }

  override _read(): void {
    if (!this.isWanted) {
      this.isWanted = true;
      this.options.onWanted();
      this.request.on('data', this.onData).on('end', this.onEnd).on('error', this.onClose).on('close', this.onClose);
    }
    this.isAsked = true;
    if (this.gathered.length > 0) this.passSoon();
    this.request.resume();
    this.waitFor('caller');
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.stopTimer();
    this.request.off('data', this.onData).off('end', this.onEnd).off('error', this.onClose).off('close', this.onClose);
    // The rest is read and forgotten, so that the caller gets to read the answer.
    this.request.on('error', () => undefined).resume();
    callback(error);
  }

  private readonly onData = (chunk: Buffer): void => {
    this.receivedBytes += chunk.length;
    if (this.receivedBytes > this.options.maxBytes) {
      this.break(denial('body_too_large'));
      return;
    }
    this.gathered.append(chunk);
    if (this.isAsked) this.passSoon();
    else if (this.gathered.length >= maxGatheredBytes) {
      this.request.pause();
      this.waitFor('receiver');
    }
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
    if (!this.wasAskedAgain()) this.waitFor('receiver');
  };

  private wasAskedAgain(): boolean {
    return this.isAsked;
  }

  private readonly onEnd = (): void => {
    this.pass();
    if (this.destroyed) return;
    if (!this.request.complete) {
      this.break(denial('body_broken'));
      return;
    }
    this.push(null);
    this.waitFor('receiver');
  };

  private readonly onClose = (): void => {
    if (!this.request.complete) this.break(denial('caller_gone'));
  };

  private break(reason: Denial): void {
    if (this.destroyed) return;
    this.destroy();
    this.options.onBroken(reason);
  }

  private waitFor(side: 'caller' | 'receiver'): void {
    this.stopTimer();
    if (side === 'caller' && this.request.complete) return;
    const limitMs = side === 'caller' ? this.options.callerTimeoutMs : this.options.receiverTimeoutMs;
    this.timer = setTimeout(() => {
      this.break(denial(side === 'caller' ? 'body_timeout' : 'upstream_timeout'));
    }, limitMs);
  }

  private stopTimer(): void {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.timer = null;
  }
}
