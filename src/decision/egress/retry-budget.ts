/** Retries that a target always has room for, however few its requests are. */
const most = 10;

/**
 * Limits retries to a part of all requests to one target: while every request fails, the target gets that part more,
 * and not several times as many. Pure but for what it counts.
 */
export class RetryBudget {
  private readonly part: number;
  private left = most;

  /** @param part of a retry that each request allows for: 0.1 where one of ten may be repeated; 0 to 1. */
  constructor(part: number) {
    this.part = part;
  }

  /** A request came. */
  onRequest(): void {
    this.left = Math.min(most, this.left + this.part);
  }

  /** Whether there is room for one retry more. */
  hasRoom(): boolean {
    return this.left >= 1;
  }

  /** One is sent. */
  take(): void {
    this.left = Math.max(0, this.left - 1);
  }
}
