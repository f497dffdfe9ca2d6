/**
 * Counts what a connection may do without being of use to anybody: so much at once, and some more with time and with
 * each request that is served. Pure but for what it counts.
 */
export class TokenBucket {
  private left: number;
  private readonly most: number;
  private readonly perSecond: number;
  private sinceMs: number;

  /**
   * @param most how much at once.
   * @param perSecond how much more each second.
   * @param nowMs of the monotonic clock.
   */
  constructor(most: number, perSecond: number, nowMs: number) {
    this.most = most;
    this.left = most;
    this.perSecond = perSecond;
    this.sinceMs = nowMs;
  }

  /** Takes from it; `false` where nothing was left. */
  take(amount: number, nowMs: number): boolean {
    if (this.left < amount) {
      this.left = Math.min(this.most, this.left + ((nowMs - this.sinceMs) / 1_000) * this.perSecond);
      this.sinceMs = nowMs;
    }
    this.left -= amount;
    return this.left >= 0;
  }

  /** Something of use was done. */
  give(amount: number): void {
    this.left = Math.min(this.most, this.left + amount);
  }
}
