import { performance } from 'node:perf_hooks';

/**
 * One time limit that is set and lifted many times a second. The timer below is left alone as long as it fires early
 * enough, and looks then what is left: two timers for each request would cost more than its decision.
 */
export class Deadline {
  private readonly onDue: () => void;
  private timer: NodeJS.Timeout | null = null;
  /** Times of the monotonic clock, milliseconds. `Infinity` where no limit is set, or no timer runs. */
  private dueMs = Infinity;
  private firesMs = Infinity;

  constructor(onDue: () => void) {
    this.onDue = onDue;
  }

  /**
   * From now on that long, whatever was left of the limit before.
   *
   * @returns the time now, of the monotonic clock, in milliseconds.
   */
  set(limitMs: number): number {
    const nowMs = performance.now();
    this.dueMs = nowMs + limitMs;
    if (this.firesMs > this.dueMs) this.arm(nowMs);
    return nowMs;
  }

  clear(): void {
    this.dueMs = Infinity;
  }

  /** Whether the limit has passed, although the timer may be late. */
  isDue(): boolean {
    return performance.now() >= this.dueMs;
  }

  /** Lifts it for good. */
  end(): void {
    this.dueMs = Infinity;
    this.firesMs = Infinity;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private arm(nowMs: number): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.firesMs = this.dueMs;
    this.timer = setTimeout(this.onTimer, Math.ceil(this.dueMs - nowMs));
  }

  private readonly onTimer = (): void => {
    this.timer = null;
    this.firesMs = Infinity;
    if (this.dueMs === Infinity) return;
    const nowMs = performance.now();
    if (nowMs < this.dueMs) {
      this.arm(nowMs);
      return;
    }
    this.dueMs = Infinity;
    this.onDue();
  };
}
