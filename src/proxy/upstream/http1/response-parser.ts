import { trimBlanks } from '../../../lib/text.js';
import { isInterim, readResponseHead, type ResponseHead } from './response-head.js';

/** Hears of the head of a response. */
export interface ResponseHeadEvents {
  /** The final head; interim ones are dropped. */
  readonly onHead: (head: ResponseHead) => void;
  /** The head of a 101 that was asked for, and what came behind it, which is of another protocol. */
  readonly onSwitch: (head: ResponseHead, rest: Buffer) => void;
}

/**
 * - `head`: of a response, interim ones among them
 * - `counted`: the body has a length
 * - `size`, `chunk`, `chunk-end`, `trailers`: parts of a chunked body (RFC 9112 §7.1)
 * - `until-end`: the body ends with the connection
 * - `done`: the response is complete
 * - `switched`: what follows is of another protocol
 */
type State = 'head' | 'counted' | 'size' | 'chunk' | 'chunk-end' | 'trailers' | 'until-end' | 'done' | 'switched';

/** Response heads of applications with many cookies fit; what is larger is a broken response. */
const maxHeadBytes = 64 * 1024;

/** A chunk's size with its extensions, or a line of the trailers. */
const maxLineBytes = 4 * 1024;

/** Interim responses before the final one: an upstream that sends more never comes to it. */
const maxInterim = 1_000;

const chunkSize = /^([0-9A-Fa-f]{1,32})(?:;[\t\x20-\x7e\x80-\xff]*)?$/;
const trailerLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/;

const lineEnd = '\r\n';
const headEnd = '\r\n\r\n';
const lineFeed = 0x0a;

/** Reads the responses of one connection, one after the other, from bytes however they are cut. */
export class ResponseParser {
  /**
   * Whether the last read brought nothing but a response. Where it did not, or went on after its end, nothing can be
   * read from the connection any more.
   */
  isSound = true;
  private readonly events: ResponseHeadEvents;
  private state: State = 'done';
  private isResponseToHead = false;
  private maySwitch = false;
  /** Of the head, a size line or the trailers, what came so far. */
  private text = '';
  /** The last of it, where it is a head: its end may be cut. */
  private carryOver = '';
  /** Bytes of the body, or of the chunk, that are yet to come. */
  private left = 0;
  private trailerBytes = 0;
  /** Whether the request asked for trailers; else they are read and dropped. */
  private keepsTrailers = false;
  /** Names and values in turn. */
  private kept: string[] | null = null;
  private interim = 0;
  /** The head by which the upstream switched protocols. */
  private switchHead: ResponseHead | null = null;

  constructor(events: ResponseHeadEvents) {
    this.events = events;
  }

  /**
   * The next bytes are a response to a request that was written.
   *
   * @param maySwitch whether that request asked for another protocol.
   * @param keepsTrailers whether it asked for trailers.
   */
  expect(isToHead: boolean, maySwitch = false, keepsTrailers = false): void {
    this.keepsTrailers = keepsTrailers;
    this.kept = null;
    this.state = 'head';
    this.isSound = true;
    this.isResponseToHead = isToHead;
    this.maySwitch = maySwitch;
    this.text = '';
    this.carryOver = '';
    this.interim = 0;
    this.trailerBytes = 0;
  }

  /** What came behind the last chunk, names and values in turn; `null` where there was nothing, or nobody asked. */
  trailers(): readonly string[] | null {
    return this.kept;
  }

  isDone(): boolean {
    return this.state === 'done';
  }

  /**
   * Reads what came, and returns what of it is of the body, without its framing; a copy. `isSound` tells afterwards
   * whether it was a response.
   */
  read(bytes: Buffer): Buffer | null {
    let at = 0;
    let isSound = true;
    let body: Buffer | null = null;
    let filled = 0;
    while (at < bytes.length && isSound) {
      switch (this.state) {
        case 'counted':
        case 'chunk':
        case 'until-end': {
          const end = this.state === 'until-end' ? bytes.length : Math.min(bytes.length, at + this.left);
          // All that one read brings is handed on in one piece, however small its chunks.
          body ??= Buffer.allocUnsafe(bytes.length - at);
          filled += bytes.copy(body, filled, at, end);
          if (this.state !== 'until-end') this.consume(end - at);
          at = end;
          break;
        }
        case 'head':
          at = this.takeHead(bytes, at);
          isSound = at >= 0;
          if (this.switchHead === null || !isSound) break;
          this.events.onSwitch(this.switchHead, bytes.subarray(at));
          return null;
        case 'size':
        case 'chunk-end':
        case 'trailers':
          at = this.takeLine(bytes, at);
          isSound = at >= 0;
          break;
        case 'done':
        case 'switched':
          isSound = false;
      }
    }
    this.isSound = isSound;
    return body === null ? null : trimmed(body, filled);
  }

  /** The connection ended: whether the response is whole. */
  end(): boolean {
    if (this.state === 'until-end') this.state = 'done';
    return this.state === 'done';
  }

  private consume(bytes: number): void {
    this.left -= bytes;
    if (this.left === 0) this.state = this.state === 'chunk' ? 'chunk-end' : 'done';
  }

  /** Where the next part begins; -1 where the head is none. */
  private takeHead(bytes: Buffer, at: number): number {
    const before = this.text.length;
    const whole = before === 0 ? bytes.indexOf(headEnd, at, 'latin1') : -1;
    if (whole >= 0) {
      return this.beginBody(bytes.toString('latin1', at, whole + lineEnd.length)) ? whole + headEnd.length : -1;
    }
    const piece = bytes.toString('latin1', at, bytes.length);
    // To search all that came before again would take time in the square of it, where it comes byte by byte.
    const searched = this.carryOver + piece;
    const found = searched.indexOf(headEnd);
    this.text += piece;
    if (found < 0) {
      this.carryOver = searched.slice(1 - headEnd.length);
      return this.text.length < maxHeadBytes + lineEnd.length ? bytes.length : -1;
    }
    const end = before - this.carryOver.length + found;
    const head = this.text.slice(0, end + lineEnd.length);
    this.text = '';
    this.carryOver = '';
    return this.beginBody(head) ? at + end + headEnd.length - before : -1;
  }

  private beginBody(text: string): boolean {
    const head = text.length > maxHeadBytes ? null : readResponseHead(text, this.isResponseToHead);
    if (head === null) return false;
    if (isInterim(head)) {
      this.interim += 1;
      return this.interim <= maxInterim;
    }
    if (head.status < 200) {
      this.state = 'switched';
      this.switchHead = head;
      return this.maySwitch;
    }
    this.left = typeof head.body === 'number' ? head.body : 0;
    if (head.body === 'chunked') this.state = 'size';
    else if (head.body === 'until-end') this.state = 'until-end';
    else this.state = this.left === 0 ? 'done' : 'counted';
    this.events.onHead(head);
    return true;
  }

  /** Where the next part begins; -1 where the line is not what has to stand here. */
  private takeLine(bytes: Buffer, at: number): number {
    const found = bytes.indexOf(lineFeed, at);
    const next = found < 0 ? bytes.length : found + 1;
    this.text += bytes.toString('latin1', at, next);
    if (this.text.length > maxLineBytes) return -1;
    if (found < 0) return next;
    const line = this.text;
    this.text = '';
    return line.endsWith(lineEnd) && this.acceptLine(line.slice(0, -lineEnd.length)) ? next : -1;
  }

  private acceptLine(line: string): boolean {
    if (this.state === 'chunk-end') {
      this.state = 'size';
      return line === '';
    }
    if (this.state === 'trailers') {
      this.trailerBytes += line.length;
      if (line === '') this.state = 'done';
      return line === '' || this.takeTrailer(line);
    }
    const size = chunkSize.exec(line)?.[1];
    if (size === undefined) return false;
    this.left = Number.parseInt(size, 16);
    this.state = this.left === 0 ? 'trailers' : 'chunk';
    return Number.isSafeInteger(this.left);
  }

  /** Whether it is one, and the section is not too large. */
  private takeTrailer(line: string): boolean {
    if (this.trailerBytes > maxHeadBytes || !trailerLine.test(line)) return false;
    if (!this.keepsTrailers) return true;
    const colon = line.indexOf(':');
    (this.kept ??= []).push(line.slice(0, colon), trimBlanks(line.slice(colon + 1)));
    return true;
  }
}

/** What was filled of it. Small parts of large reads would keep all of these for as long as a slow caller takes. */
function trimmed(body: Buffer, filled: number): Buffer {
  if (filled === body.length) return body;
  return filled * 2 < body.length ? Buffer.from(body.subarray(0, filled)) : body.subarray(0, filled);
}
