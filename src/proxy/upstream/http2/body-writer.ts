import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2';
import { isFieldName } from '../../../decision/http/header-names.js';
import { isFieldValue } from '../../../decision/http/header-values.js';
import { BodySender } from '../body-sender.js';
import { trailersOf } from '../call.js';
import { addHeader, isSectionTooLong } from './request-head.js';

/** Writes a body to a stream, as far as the windows of stream and connection let it through, and ends the stream. */
export class StreamBodyWriter extends BodySender<ClientHttp2Stream> {
  override start(): void {
    this.target.on('wantTrailers', this.onWantTrailers);
    super.start();
  }

  protected write(chunk: Buffer): boolean {
    return this.target.write(chunk);
  }

  protected ending(): () => void {
    return () => this.target.end();
  }

  /** All of the body is on its way, and its trailers may follow. Without any, an empty frame ends the stream. */
  private readonly onWantTrailers = (): void => {
    const trailers = trailerSection(trailersOf(this.body));
    if (trailers === null) this.options.onBroken();
    else this.target.sendTrailers(trailers);
  };
}

/** Bytes of a body that are handed to a stream at once. */
export const pieceBytes = 64 * 1024;

/**
 * Writes a body that is all here to a stream, the next piece when the one before was let through, and ends the stream.
 * Node would take all of it at once, whatever the windows, and counts what it holds for a connection: see
 * `sessionMemoryMb`.
 */
export class PieceWriter {
  private readonly stream: ClientHttp2Stream;
  private readonly body: Buffer;
  private readonly onEnd: () => void;
  private written = 0;

  /** @param onEnd the last piece was handed to the stream. */
  constructor(stream: ClientHttp2Stream, body: Buffer, onEnd: () => void) {
    this.stream = stream;
    this.body = body;
    this.onEnd = onEnd;
  }

  start(): void {
    this.stream.on('drain', this.writeOn);
    this.writeOn();
  }

  /** Writes no more of it. */
  stop(): void {
    this.stream.off('drain', this.writeOn);
  }

  private readonly writeOn = (): void => {
    let takesMore = true;
    while (takesMore) {
      const piece = this.body.subarray(this.written, this.written + pieceBytes);
      this.written += piece.length;
      if (this.written === this.body.length) {
        this.stop();
        this.stream.end(piece);
        this.onEnd();
        return;
      }
      takesMore = this.stream.write(piece);
    }
  };
}

/** Fields of a trailer section (RFC 9113 §8.1); `null` where they would be something else. */
function trailerSection(fields: readonly string[] | null): OutgoingHttpHeaders | null {
  const section = Object.create(null) as OutgoingHttpHeaders;
  if (fields === null) return section;
  if (isSectionTooLong(fields)) return null;
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] ?? '').toLowerCase();
    const value = fields[i + 1] ?? '';
    if (!isFieldName(name) || !isFieldValue(value)) return null;
    addHeader(section, name, value);
  }
  return section;
}
