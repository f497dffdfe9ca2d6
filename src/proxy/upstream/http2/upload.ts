import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2';
import type { Readable } from 'node:stream';
import { isFieldName } from '../../../decision/http/header-names.js';
import { isFieldValue } from '../../../decision/http/header-values.js';
import { trailersOf } from '../call.js';
import { addHeader } from './request-head.js';

interface UploadOptions {
  /** `null` where nobody knows. */
  readonly length: number | null;
  /** Some of it was written. */
  readonly onProgress: () => void;
  /** All of it was written. */
  readonly onEnd: () => void;
  /** The rest will not come, or it is not as long as was said. */
  readonly onBroken: () => void;
}

/**
 * Writes a body to a stream as it comes, no faster than the windows of stream and connection let it through. The stream
 * ends with the whole body, or `onBroken` is called.
 */
export class Upload {
  private readonly stream: ClientHttp2Stream;
  private readonly body: Readable;
  private readonly options: UploadOptions;
  private isStopped = false;
  private bytes = 0;

  constructor(stream: ClientHttp2Stream, body: Readable, options: UploadOptions) {
    this.stream = stream;
    this.body = body;
    this.options = options;
  }

  /** Whether nothing of the body was taken: it may go out elsewhere. */
  isUntouched(): boolean {
    return this.bytes === 0 && !this.body.readableEnded && !this.body.destroyed;
  }

  start(): void {
    this.stream.on('drain', this.onDrain).on('wantTrailers', this.onWantTrailers);
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
    this.stream.off('drain', this.onDrain);
    this.body.off('end', this.onEnd).off('error', this.onBroken).off('close', this.onBroken).off('data', this.onData);
    this.body.on('error', ignore).pause();
  }

  private readonly onDrain = (): void => {
    this.body.resume();
  };

  private readonly onData = (chunk: Buffer): void => {
    if (chunk.length === 0) return;
    this.bytes += chunk.length;
    const { length } = this.options;
    if (length !== null && this.bytes > length) {
      this.onBroken();
      return;
    }
    if (!this.stream.write(chunk)) this.body.pause();
    this.options.onProgress();
  };

  private readonly onEnd = (): void => {
    const { length, onEnd } = this.options;
    if (length !== null && this.bytes < length) {
      this.onBroken();
      return;
    }
    this.stop();
    this.stream.end();
    onEnd();
  };

  /** All of the body is on its way, and its trailers may follow. Without any, an empty frame ends the stream. */
  private readonly onWantTrailers = (): void => {
    const trailers = trailerSection(trailersOf(this.body));
    if (trailers === null) this.options.onBroken();
    else this.stream.sendTrailers(trailers);
  };

  private readonly onBroken = (): void => {
    if (this.isStopped) return;
    this.stop();
    this.options.onBroken();
  };
}

/** Fields of a trailer section (RFC 9113 §8.1); `null` where they would be something else. */
function trailerSection(fields: readonly string[] | null): OutgoingHttpHeaders | null {
  const section = Object.create(null) as OutgoingHttpHeaders;
  if (fields === null) return section;
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] ?? '').toLowerCase();
    const value = fields[i + 1] ?? '';
    if (!isFieldName(name) || !isFieldValue(value)) return null;
    addHeader(section, name, value);
  }
  return section;
}

function ignore(): void {
  // Nobody needs the body any more.
}
