/**
 * Counts the requests of all connections that were read and are not served yet. One read may bring thousands of small
 * ones, a kilobyte or two each in memory: together they must not take it all.
 */
export class Backlog {
  private readonly max: number;
  private readonly onFull: () => void;
  private count = 0;

  /** `onFull` is told of each that is too much. */
  constructor(max: number, onFull: () => void) {
    this.max = max;
    this.onFull = onFull;
  }

  /** Counts one more; `false` where that is too much. */
  join(): boolean {
    this.count += 1;
    if (this.count <= this.max) return true;
    this.onFull();
    return false;
  }

  leave(count: number): void {
    this.count -= count;
  }
}
