import { Transform, type TransformCallback } from 'node:stream';
import type { Payload } from './reserved-request.js';

/** A body whose length was not announced, on its way to whatever parses it: an error ends it where it is too large. */
export class CountedBody extends Transform {
  private readonly maxBytes: number;
  private readonly onTooLarge: () => void;
  private bytes = 0;

  /** @param onTooLarge called before the error. */
  constructor(payload: Payload, maxBytes: number, onTooLarge: () => void) {
    super();
    this.maxBytes = maxBytes;
    this.onTooLarge = onTooLarge;
    // An error that nobody listens for would end the process.
    this.on('error', () => undefined);
    payload.on('error', (error) => this.destroy(error));
    payload.once('close', () => {
      if (!payload.readableEnded) this.destroy(new Error('the body broke off'));
    });
    payload.pipe(this);
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    this.bytes += chunk.length;
    if (this.bytes <= this.maxBytes) callback(null, chunk);
    else {
      this.onTooLarge();
      callback(new Error('the body is larger than its route allows'));
    }
  }
}
