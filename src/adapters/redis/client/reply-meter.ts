/** Elements that all lists of one reply have: those of a Cluster of many ranges have most. */
const mostParts = 262_144;

/** How deep lists lie in each other: `CLUSTER SLOTS` has four. */
const deepest = 16;

/** First bytes of what a server sends in RESP 2: a status, an error, a number, a text, a list. */
const kinds = { status: 0x2b, error: 0x2d, number: 0x3a, text: 0x24, list: 0x2a } as const;

const [cr, lf, minus, zero] = [0x0d, 0x0a, 0x2d, 0x30];

/** A server that does not hold to the protocol, or to what a reply can be. */
class ProtocolBroken extends Error {
  constructor(reason: 'what is not RESP 2' | 'a reply without an end') {
    super(`the server sends ${reason}`);
    this.name = 'ProtocolBroken';
  }
}

/**
 * Reads along what a server sends, without keeping any of it, and says when it goes beyond what a reply can be: a
 * client sets room aside for as many elements as a list says that it has, and keeps each of them, however small, at
 * some 200 bytes.
 */
export class ReplyMeter {
  private readonly maxBytes: number;
  /** What comes next: a part, the rest of a line, a length, or the bytes of a text. */
  private at: 'part' | 'line' | 'length' | 'text' = 'part';
  private isList = false;
  private length = 0;
  private isNegative = false;
  /** Of the text with its end of line. */
  private bytesLeft = 0;
  /** Elements that are yet to come of each list that is open, the outermost first. */
  private readonly open: number[] = [];
  /** Of the reply that has begun. */
  private parts = 0;
  private bytes = 0;

  /** @param maxBytes the largest reply. */
  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** @throws {ProtocolBroken} It must not be read on then. */
  take(chunk: Buffer): void {
    for (let index = 0; index < chunk.length;) {
      const next = this.next(chunk, index);
      this.bytes += next - index;
      if (this.bytes > this.maxBytes) throw new ProtocolBroken('a reply without an end');
      index = next;
    }
  }

  private next(chunk: Buffer, index: number): number {
    switch (this.at) {
      case 'part':
        this.begin(chunk[index] ?? 0);
        return index + 1;
      case 'line': {
        const end = chunk.indexOf(lf, index);
        if (end === -1) return chunk.length;
        this.end();
        return end + 1;
      }
      case 'length':
        this.readLength(chunk[index] ?? 0);
        return index + 1;
      case 'text': {
        const taken = Math.min(this.bytesLeft, chunk.length - index);
        this.bytesLeft -= taken;
        if (this.bytesLeft === 0) this.end();
        return index + taken;
      }
    }
  }

  private begin(kind: number): void {
    if (this.open.length === 0) [this.parts, this.bytes] = [0, 0];
    if (kind === kinds.text || kind === kinds.list) {
      this.at = 'length';
      this.isList = kind === kinds.list;
      this.length = 0;
      this.isNegative = false;
    } else if (kind === kinds.status || kind === kinds.error || kind === kinds.number) this.at = 'line';
    else throw new ProtocolBroken('what is not RESP 2');
  }

  private readLength(byte: number): void {
    if (byte === lf) this.beginContent(this.isNegative ? -this.length : this.length);
    else if (byte === minus) this.isNegative = true;
    else if (byte >= zero && byte < zero + 10) this.length = this.length * 10 + byte - zero;
    else if (byte !== cr) throw new ProtocolBroken('what is not RESP 2');
    if (this.length > this.maxBytes) throw new ProtocolBroken('a reply without an end');
  }

  /** @param length negative where there is none: null. */
  private beginContent(length: number): void {
    if (this.isList && length > 0) {
      this.parts += length;
      if (this.parts > mostParts) throw new ProtocolBroken('a reply without an end');
      if (this.open.length === deepest) throw new ProtocolBroken('what is not RESP 2');
      this.open.push(length);
      this.at = 'part';
    } else if (!this.isList && length >= 0) {
      this.bytesLeft = length + 2;
      this.at = 'text';
    } else this.end();
  }

  /** A part has come whole, and with it each list that it was the last one of. */
  private end(): void {
    this.at = 'part';
    for (let inner = this.open.pop(); inner !== undefined; inner = this.open.pop()) {
      if (inner > 1) {
        this.open.push(inner - 1);
        return;
      }
    }
  }
}
