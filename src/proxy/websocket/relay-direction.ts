import type { Duplex } from 'node:stream';
import type { FrameReader } from '../../decision/websocket/frames.js';
import { GatheredWrites } from '../inbound/gathered-writes.js';

/**
 * - `open`: frames are passed on
 * - `finishing`: the rest of one frame is passed on, then our Close
 * - `muted`: nothing is passed on; a Close is still looked for
 * - `closed`: a Close was seen, and nothing counts that follows it
 */
type DirectionState = 'open' | 'finishing' | 'muted' | 'closed';

/**
 * How much of a source is read and forgotten, bytes: enough to find a Close behind what was under way. A source whose
 * target is gone may send as fast as the network takes it, and to read that keeps others waiting.
 */
const maxForgotten = 1024 * 1024;

/** One direction of a WebSocket connection. It is read no faster than its target takes it. */
export class RelayDirection {
  readonly source: Duplex;
  private readonly target: Duplex;
  private readonly writes: GatheredWrites;
  private readonly reader: FrameReader;
  private state: DirectionState = 'open';
  private last: Buffer | null = null;
  private forgotten = 0;
  /** Whether nobody will ever take what its source sends. */
  private isAbandoned = false;
  private readonly onStopped: () => void;

  /** @param onStopped called where its source is read no more, since too much came for nobody. */
  constructor(source: Duplex, target: Duplex, reader: FrameReader, onStopped: () => void) {
    this.source = source;
    this.target = target;
    this.reader = reader;
    this.onStopped = onStopped;
    this.writes = new GatheredWrites({
      isBlocked: () => target.writableLength > 0,
      write: (bytes, onTaken) => !target.writable || target.write(bytes, onTaken),
    });
    target.on('drain', this.readOn);
  }

  /** What a piece of it led to: `null` where it just goes on. */
  take(chunk: Buffer): 'close' | 'finished' | 'malformed' | null {
    if (this.state === 'muted' || this.state === 'closed' || !this.target.writable) this.forget(chunk);
    if (this.state === 'closed') return null;
    if (this.state === 'finishing') return this.takeRest(chunk);
    const { passed, close, isMalformed } = this.reader.read(chunk);
    if (this.state === 'open') for (const piece of passed) this.pass(piece);
    if (close === null) return isMalformed ? 'malformed' : null;
    this.state = 'closed';
    return 'close';
  }

  /** Whether its source has sent a Close. */
  isClosed(): boolean {
    return this.state === 'closed';
  }

  isFinishing(): boolean {
    return this.state === 'finishing';
  }

  /** Whether a frame of ours may come next. */
  isBetweenFrames(): boolean {
    return this.state === 'open' && this.reader.missing() === 0;
  }

  /** Passes nothing more on, and ends with `last` where that may stand: at once, or after the frame that has begun. */
  finish(last: Buffer, awaitsFrame: boolean): void {
    if (this.state !== 'open') return;
    if (this.isBetweenFrames()) this.write(last);
    else if (awaitsFrame) {
      this.state = 'finishing';
      this.last = last;
      return;
    }
    this.mute();
  }

  /** Its target gets nothing more, once it took what was passed on. */
  end(): void {
    this.writes.flush();
    this.target.end();
  }

  /** What comes from now on is forgotten: its target is gone, or it makes no sense. */
  drop(): void {
    this.state = 'closed';
    this.readOn();
  }

  /** Drops it for good: where much came for nobody, its source is cut as soon as it took what was for it. */
  abandon(): void {
    this.isAbandoned = true;
    this.drop();
    this.cutAbandoned();
  }

  private takeRest(chunk: Buffer): 'close' | 'finished' | 'malformed' | null {
    const missing = this.reader.missing();
    const rest = chunk.subarray(0, missing);
    const { close } = this.reader.read(rest);
    this.pass(rest);
    if (rest.length < missing) return null;
    if (close !== null) {
      this.state = 'closed';
      return 'close';
    }
    this.mute();
    return this.take(chunk.subarray(missing)) ?? 'finished';
  }

  private mute(): void {
    this.state = 'muted';
    if (this.last !== null) this.write(this.last);
    this.last = null;
    this.readOn();
  }

  /** Whether its source is read no more, since too much came for nobody. */
  hasStopped(): boolean {
    return this.forgotten > maxForgotten;
  }

  private forget(chunk: Buffer): void {
    const before = this.hasStopped();
    this.forgotten += chunk.length;
    if (!this.hasStopped()) return;
    this.source.pause();
    if (!before) this.onStopped();
    this.cutAbandoned();
  }

  /** What its source has still to take was ended before. */
  private cutAbandoned(): void {
    if (!this.isAbandoned || !this.hasStopped()) return;
    if (this.source.writableLength === 0) this.source.destroy();
    else this.source.once('finish', () => this.source.destroy());
  }

  private readonly readOn = (): void => {
    if (!this.hasStopped()) this.source.resume();
  };

  private pass(bytes: Buffer): void {
    if (bytes.length > 0 && !this.write(bytes)) this.source.pause();
  }

  private write(bytes: Buffer): boolean {
    return this.writes.write(bytes);
  }
}
