import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

interface BodyWriterOptions {
  /** Goes out with the first of the body. */
  readonly head: string;
  /** `null` sends it in chunks. */
  readonly length: number | null;
  /** What goes out behind the last chunk, names and values in turn; asked at the end of a body in chunks. */
  readonly trailers?: () => readonly string[] | null;
  /** Some of it was written. */
  readonly onProgress: () => void;
  /** All of it was written. */
  readonly onEnd: () => void;
  /** The rest will not come, or it is not as long as was said. */
  readonly onBroken: () => void;
}

const lastChunk = '0\r\n';

/** One line of a trailer section. What goes in was judged; this holds once more that it ends no line early. */
const trailerLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [\t\x20-\x7e\x80-\xff]*$/;

/** Writes a body as it comes, no faster than the upstream takes it. It ends whole, or `onBroken` is called. */
export class BodyWriter {
  private readonly socket: Socket;
  private readonly body: Readable;
  private readonly options: BodyWriterOptions;
  private hasBegun = false;
  private isStopped = false;
  private bytes = 0;

  constructor(socket: Socket, body: Readable, options: BodyWriterOptions) {
    this.socket = socket;
    this.body = body;
    this.options = options;
  }

  start(): void {
    this.socket.on('drain', this.onDrain);
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
    this.isStopped = true;
    this.socket.off('drain', this.onDrain);
    this.body.off('end', this.onEnd).off('error', this.onBroken).off('close', this.onBroken).off('data', this.onData);
    this.body.on('error', () => undefined).pause();
  }

  private readonly onDrain = (): void => {
    this.body.resume();
  };

  private readonly onData = (chunk: Buffer): void => {
    // As a chunk it would be the last one.
    if (chunk.length === 0) return;
    this.bytes += chunk.length;
    const { length } = this.options;
    if (length !== null && this.bytes > length) {
      this.onBroken();
      return;
    }
    this.socket.cork();
    this.begin();
    if (length === null) this.socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
    let flows = this.socket.write(chunk);
    if (length === null) flows = this.socket.write('\r\n', 'latin1');
    this.socket.uncork();
    this.options.onProgress();
    if (!flows) this.body.pause();
  };

  private readonly onEnd = (): void => {
    const { length, onEnd } = this.options;
    if (length !== null && this.bytes < length) {
      this.onBroken();
      return;
    }
    const trailers = length === null ? trailerSection(this.options.trailers?.() ?? null) : '';
    if (trailers === null) {
      this.onBroken();
      return;
    }
    this.stop();
    this.begin();
    if (length === null) this.socket.write(`${lastChunk}${trailers}\r\n`, 'latin1');
    onEnd();
  };

  private readonly onBroken = (): void => {
    if (this.isStopped) return;
    this.stop();
    this.options.onBroken();
  };

  private begin(): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    this.socket.write(this.options.head, 'latin1');
  }
}

/** The lines of a trailer section (RFC 9112 §7.1.2); `null` where they would be something else. */
function trailerSection(fields: readonly string[] | null): string | null {
  if (fields === null) return '';
  let text = '';
  for (let i = 0; i < fields.length; i += 2) {
    const line = `${fields[i] ?? ''}: ${fields[i + 1] ?? ''}`;
    if (!trailerLine.test(line)) return null;
    text += `${line}\r\n`;
  }
  return text;
}
