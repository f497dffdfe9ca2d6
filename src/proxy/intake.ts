import type { Socket } from 'node:net';

/**
 * Whether a caller's connection is read. Node by itself reads on however many requests wait, and makes a request and a
 * response of each, so that a caller which sends faster than it is answered takes all memory.
 */
export class Intake {
  private readonly socket: Socket;
  private readonly resume: () => Socket;
  private state: 'reading' | 'held' | 'discarding' = 'reading';

  constructor(socket: Socket) {
    this.socket = socket;
    this.resume = socket.resume.bind(socket);
    // Node resumes when a body is wanted or some of an answer went out, whatever waits.
    socket.resume = () => (this.state === 'held' ? socket : this.resume());
  }

  /** Whether all that comes is read and parsed. */
  isReading(): boolean {
    return this.state === 'reading';
  }

  isHeld(): boolean {
    return this.state === 'held';
  }

  /** Reads no more. What the read at hand brought, at most 64 KiB, is still parsed. */
  hold(): void {
    if (this.state !== 'reading') return;
    this.state = 'held';
    this.socket.pause();
  }

  /** Reads on. */
  release(): void {
    if (this.state !== 'held') return;
    this.state = 'reading';
    this.resume();
  }

  /** Leaves it to somebody else to read: Node's parser is gone. */
  leave(): void {
    this.state = 'reading';
    // Where the parser was stopped, the stream waits for ever for what it would have read: an empty piece tells it otherwise.
    this.socket.push('');
  }

  /** From now on reads and forgets, so that the caller can go on and its end is noticed; nothing more is parsed. */
  discard(): void {
    if (this.state === 'discarding') return;
    this.hold();
    this.state = 'discarding';
    // Not now: the parser may be in the midst of what was read.
    setImmediate(() => {
      if (this.socket.destroyed) return;
      // Node's parser reads past the stream until somebody listens here. The stream thinks that it is reading since before
      // that, and would wait for ever: an empty piece tells it otherwise.
      this.socket.removeAllListeners('data').on('data', () => undefined).push('');
      this.resume();
    });
  }
}
