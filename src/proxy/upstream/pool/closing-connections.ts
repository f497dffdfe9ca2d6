import type { OpenSocket } from '../socket.js';

/** How long an upstream that was told that no request follows may take to end the connection. */
const closeTimeoutMs = 1_000;

/**
 * Connections after their last response, whose end is left to the upstream: who ends one first keeps its port for a
 * minute, and ports on this side are few where each request has a connection of its own.
 */
export class ClosingConnections {
  private readonly timers = new Map<OpenSocket, NodeJS.Timeout>();

  count(): number {
    return this.timers.size;
  }

  /** Takes one over. Nothing is read from it any more: it ends by itself, in time, or at the first byte. */
  add(opened: OpenSocket): void {
    const { socket } = opened;
    const end = (): void => {
      socket.destroy();
    };
    this.timers.set(opened, setTimeout(end, closeTimeoutMs));
    socket.once('end', end).once('close', () => {
      clearTimeout(this.timers.get(opened));
      this.timers.delete(opened);
    });
    socket.resume();
  }

  /** Ends the one that has waited longest, to make room. */
  cutShort(): void {
    const { value: first } = this.timers.keys().next();
    if (first !== undefined) this.end(first);
  }

  endAll(): void {
    for (const opened of [...this.timers.keys()]) this.end(opened);
  }

  private end(opened: OpenSocket): void {
    clearTimeout(this.timers.get(opened));
    this.timers.delete(opened);
    opened.reset();
  }
}
