import { performance } from 'node:perf_hooks';

/** How many frames of a kind a peer may send. */
export interface FrameRate {
  /** So many at once. */
  readonly most: number;
  /** So many more each second. */
  readonly perSecond: number;
}

/** Counts what a peer may do now and then, but not without end. */
export class FrameRateLimiter {
  private readonly rate: FrameRate;
  private left: number;
  private countedMs = performance.now();

  constructor(rate: FrameRate) {
    this.rate = rate;
    this.left = rate.most;
  }

  /** Takes one. `false` where there is none left. */
  take(): boolean {
    this.fill();
    this.left -= 1;
    return this.left >= 0;
  }

  /** Whether the next one would be too many. */
  isUsedUp(): boolean {
    this.fill();
    return this.left < 1;
  }

  private fill(): void {
    const nowMs = performance.now();
    const { most, perSecond } = this.rate;
    this.left = Math.min(most, Math.max(0, this.left) + ((nowMs - this.countedMs) / 1000) * perSecond);
    this.countedMs = nowMs;
  }
}
