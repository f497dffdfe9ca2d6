import type { Readable, Writable } from 'node:stream';

/** Hears how the body of a request goes out. */
export interface BodyOptions {
  /** Bytes of it; `null` where nobody knows. */
  readonly length: number | null;
  /** Some of it was written, or the target took what was; whether it takes more at once. */
  readonly onProgress: (takesMore: boolean) => void;
  /** All of it was written. */
  readonly onEnd: () => void;
  /** The rest will not come, or it is not as long as was said. */
  readonly onBroken: () => void;
}

/** Sends a body as it comes, no faster than `target` takes it. It ends whole, or `onBroken` is called. */
export abstract class BodySender<Target extends Writable> {
  protected readonly target: Target;
  protected readonly body: Readable;
  protected readonly options: BodyOptions;
  private isStopped = false;
  private bytes = 0;

  constructor(target: Target, body: Readable, options: BodyOptions) {
    this.target = target;
    this.body = body;
    this.options = options;
  }

  /** A piece that is not empty; `false` where the target takes no more until `drain`. */
  protected abstract write(chunk: Buffer): boolean;

  /** What goes out behind the body, which is whole; `null` where that would not be what it should be. */
  protected abstract ending(): (() => void) | null;

  start(): void {
    this.target.on('drain', this.onDrain);
    this.body
      .on('end', this.onEnd)
      .on('error', this.onBroken)
      .on('close', this.onBroken)
      .on('data', this.onData)
      .resume();
    // One that ended before says nothing more.
    if (this.body.destroyed || this.body.readableEnded) queueMicrotask(this.onBroken);
  }

  /** Takes no more of it. */
  stop(): void {
    if (this.isStopped) return;
    this.isStopped = true;
    this.target.off('drain', this.onDrain);
    this.body.off('end', this.onEnd).off('error', this.onBroken).off('close', this.onBroken).off('data', this.onData);
    this.body.on('error', ignore).pause();
  }

  /** Whether nothing of the body was taken: it may go out elsewhere. */
  isUntouched(): boolean {
    return this.bytes === 0 && !this.body.readableEnded && !this.body.destroyed;
  }

  private readonly onDrain = (): void => {
    this.options.onProgress(true);
    this.body.resume();
  };

  private readonly onData = (chunk: Buffer): void => {
    // As a chunk it would be the last one.
    if (chunk.length === 0) return;
    this.bytes += chunk.length;
    const { length, onProgress } = this.options;
    if (length !== null && this.bytes > length) {
      this.onBroken();
      return;
    }
    const flows = this.write(chunk);
    onProgress(flows);
    if (!flows) this.body.pause();
  };

  private readonly onEnd = (): void => {
    const { length, onEnd } = this.options;
    const ending = length !== null && this.bytes < length ? null : this.ending();
    if (ending === null) {
      this.onBroken();
      return;
    }
    this.stop();
    ending();
    onEnd();
  };

  private readonly onBroken = (): void => {
    if (this.isStopped) return;
    this.stop();
    this.options.onBroken();
  };
}

function ignore(): void {
  // Nobody needs the body any more.
}
