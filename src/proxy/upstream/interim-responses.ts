import type { Socket } from 'node:net';

/** `HTTP/1.1 100`: where each byte stands, and which one tells 100 from the others. */
const start = Buffer.from('HTTP/1.');
const versionAt = start.length;
const status = Buffer.from(' 10');
const lastDigitAt = versionAt + 1 + status.length;
const zero = 0x30;
const one = 0x31;
const two = 0x32;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * Lets an upstream send `100 Continue` although nobody asked, which a client has to bear (RFC 9110 §15.2) and undici
 * takes for a broken response: the status is changed to 102 in the bytes read, and that is dropped like every other
 * interim one.
 */
export class InterimResponses {
  /** How much of the start of a response head was seen; `null` once a final head began, until the next request. */
  private matched: number | null = null;
  /** Inside an interim head: whether the line that is being read is still empty. `null` outside. */
  private lineIsEmpty: boolean | null = null;

  /** Looks at what is read from the socket from now on. */
  watch(socket: Socket): void {
    const read = socket.read.bind(socket);
    socket.read = (size?: number): unknown => {
      const chunk: unknown = read(size);
      if (this.matched !== null && chunk instanceof Buffer) this.rewrite(chunk);
      return chunk;
    };
  }

  /** A request is being written: what comes next begins with a response head. */
  expect(): void {
    this.matched = 0;
    this.lineIsEmpty = null;
  }

  private rewrite(chunk: Buffer): void {
    for (let i = 0; i < chunk.length && this.matched !== null; i++) {
      const byte = chunk[i] ?? 0;
      if (this.lineIsEmpty !== null) this.skip(byte);
      else if (this.matched === lastDigitAt) {
        // What follows 101 is no HTTP. Any other digit is another interim response, which undici drops by itself; its
        // end has to be found all the same.
        if (byte === zero) chunk[i] = two;
        if (byte === one) this.matched = null;
        else this.lineIsEmpty = false;
      } else if (isExpected(byte, this.matched)) this.matched += 1;
      else this.matched = null;
    }
  }

  /** Goes to the empty line that ends an interim head; another head follows. */
  private skip(byte: number): void {
    if (byte === lineFeed) {
      if (this.lineIsEmpty === true) this.expect();
      else this.lineIsEmpty = true;
    } else if (byte !== carriageReturn) this.lineIsEmpty = false;
  }
}

function isExpected(byte: number, at: number): boolean {
  if (at < versionAt) return byte === start[at];
  if (at === versionAt) return true;
  return byte === status[at - versionAt - 1];
}
