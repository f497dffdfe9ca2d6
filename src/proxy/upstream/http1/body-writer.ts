import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { BodySender, type BodyOptions } from '../body-sender.js';
import { trailersOf } from '../call.js';

const lastChunk = '0\r\n';

/** One line of a trailer section. What goes in was judged; this holds once more that it ends no line early. */
const trailerLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [\t\x20-\x7e\x80-\xff]*$/;

/** Writes a body behind its head; one whose length nobody knows in chunks, with its trailers behind the last. */
export class BodyWriter extends BodySender<Socket> {
  /** Goes out with the first of the body; `null` once it did. */
  private head: string | null;

  constructor(socket: Socket, head: string, body: Readable, options: BodyOptions) {
    super(socket, body, options);
    this.head = head;
  }

  protected write(chunk: Buffer): boolean {
    const { target } = this;
    target.cork();
    this.begin();
    let flows: boolean;
    if (this.isChunked()) {
      target.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
      target.write(chunk);
      flows = target.write('\r\n', 'latin1');
    } else flows = target.write(chunk);
    target.uncork();
    return flows;
  }

  protected ending(): (() => void) | null {
    if (!this.isChunked()) return () => this.begin();
    const trailers = trailerSection(trailersOf(this.body));
    if (trailers === null) return null;
    return () => {
      this.begin();
      this.target.write(`${lastChunk}${trailers}\r\n`, 'latin1');
    };
  }

  private isChunked(): boolean {
    return this.options.length === null;
  }

  private begin(): void {
    if (this.head === null) return;
    this.target.write(this.head, 'latin1');
    this.head = null;
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
