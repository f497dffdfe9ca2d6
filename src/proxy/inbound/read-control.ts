import type { Socket } from 'node:net';
import type { QueueBudget } from './queue-budget.js';
import { ByteBuffer } from './byte-buffer.js';
import { mayParse, stopParser } from '../node-internals/parser.js';
import { holdResume, keepPaused, readInPlaceOfParser, wakeStream } from '../node-internals/socket.js';

/**
 * How many bytes are read behind a request that is being served: this many at once, and again in each second that it
 * takes. So a caller that hung up is noticed, however much it sent before.
 */
const stepBytes = 64 * 1024;
const stepMs = 1_000;

/** A caller that sends more than this behind one slow request does not wait for its response; bytes. */
const maxReadAheadBytes = 1024 * 1024;

interface ReadControlOptions {
  /** Shared by all connections. */
  readonly queueBudget: QueueBudget;
  /** More came than may be kept. */
  readonly onOverflow: () => void;
}

/**
 * What is done with the bytes of a client connection. Node by itself parses on however many requests wait, and makes
 * a request and a response of each, so that a caller which sends faster than it is answered takes all memory. Not to
 * read at all would be no better: nobody would see that the caller has hung up.
 *
 * - `reading`: Node's parser has them
 * - `held`: they are kept, unparsed
 * - `discarding`: they are read and forgotten
 */
export class ReadControl {
  private readonly socket: Socket;
  private readonly options: ReadControlOptions;
  private readonly readOn: () => Socket;
  private readonly held = new ByteBuffer();
  private state: 'reading' | 'held' | 'discarding' = 'reading';
  private allowedBytes = stepBytes;
  private timer: NodeJS.Timeout | null = null;
  /** Node's listeners for bytes, while ours has their place. */
  private parserListeners: ((chunk: Buffer) => void)[] | null = null;

  constructor(socket: Socket, options: ReadControlOptions) {
    this.socket = socket;
    this.options = options;
    this.readOn = holdResume(socket, () => this.state === 'held');
    keepPaused(socket);
    socket.on('close', () => this.dropHeld());
  }

  /** Whether all that comes is read and parsed. */
  isReading(): boolean {
    return this.state === 'reading';
  }

  isHeld(): boolean {
    return this.state === 'held';
  }

  /** Parses no more. What the read at hand brought is still parsed, until `stop`. */
  hold(): void {
    if (this.state !== 'reading') return;
    this.state = 'held';
    this.socket.pause();
    // Not now: the parser is still at work on this read, and most requests that wait get their response before that.
    setImmediate(this.startHolding);
  }

  /** Parses on, with what was held. */
  release(): void {
    if (this.state !== 'held') return;
    this.state = 'reading';
    if (this.parserListeners === null) this.readOn();
    else this.replay();
  }

  /** Parses nothing more, not even of the read at hand. */
  stop(): void {
    stopParser(this.socket);
  }

  /** Leaves it to somebody else to read, whose listeners are in place: Node's parser is gone. */
  handOver(): void {
    this.state = 'reading';
    this.socket.off('data', this.onHeld);
    this.parserListeners = null;
    // Where the parser was stopped, the stream waits for ever for what it would have read.
    wakeStream(this.socket);
    const early = this.dropHeld();
    if (early.length > 0) this.socket.emit('data', early);
  }

  /** From now on reads and forgets, so that the caller can go on and its end is noticed; nothing more is parsed. */
  discard(): void {
    if (this.state === 'discarding') return;
    this.stop();
    this.hold();
    this.state = 'discarding';
    this.dropHeld();
    setImmediate(() => {
      if (!this.socket.destroyed) this.readBy(() => undefined);
    });
  }

  private readonly startHolding = (): void => {
    if (this.state !== 'held' || this.parserListeners !== null || this.socket.destroyed) return;
    this.parserListeners = this.socket.listeners('data') as ((chunk: Buffer) => void)[];
    this.readBy(this.onHeld);
  };

  private readonly onHeld = (chunk: Buffer): void => {
    if (!this.options.queueBudget.addBytes(chunk.length)) {
      this.options.onOverflow();
      return;
    }
    this.held.append(chunk);
    if (this.held.length >= this.allowedBytes && this.timer === null) this.pauseReading();
  };

  private pauseReading(): void {
    this.socket.pause();
    this.timer = setTimeout(() => {
      this.timer = null;
      this.allowedBytes += stepBytes;
      if (this.allowedBytes > maxReadAheadBytes) this.options.onOverflow();
      else this.readOn();
    }, stepMs);
  }

  /** Gives Node's parser its place back. */
  private readonly replay = (): void => {
    if (this.state !== 'reading' || this.parserListeners === null || this.socket.destroyed) return;
    if (!mayParse(this.socket)) {
      this.socket.once('drain', this.replay);
      return;
    }
    this.socket.off('data', this.onHeld);
    for (const listener of this.parserListeners) this.socket.on('data', listener);
    this.parserListeners = null;
    let bytes = this.dropHeld();
    // In pieces as large as one read: a piece may bring a request behind which the rest has to wait.
    while (bytes.length > 0 && this.isReading()) {
      this.socket.emit('data', bytes.subarray(0, stepBytes));
      bytes = bytes.subarray(stepBytes);
    }
    if (this.isReading()) this.readOn();
    else if (this.isHeld()) this.onHeld(bytes);
  };

  private readBy(listener: (chunk: Buffer) => void): void {
    readInPlaceOfParser(this.socket, listener);
    this.readOn();
  }

  /** Holds nothing any more; returns what it held. */
  private dropHeld(): Buffer {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.allowedBytes = stepBytes;
    this.options.queueBudget.removeBytes(this.held.length);
    return this.held.take();
  }
}
