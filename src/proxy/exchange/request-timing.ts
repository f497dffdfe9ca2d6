import type { Reason } from '../../decision/denial.js';
import type { ShadowPass } from '../../decision/route/shadow-mode.js';
import type { Clock } from '../../ports/system.js';

/** What is learnt of a request on its way, for its record. Times are of the monotonic clock, in milliseconds. */
export class Course {
  startedMs = NaN;
  /** Why it ended early, or `null`. */
  reason: Reason | null = null;
  /** Permissions, or claims of a session, for want of which it ended; `null` where it was not for that. */
  missing: readonly string[] | null = null;
  /** Why it would have ended, where shadow mode let it go on. */
  shadow: ShadowPass | null = null;
  /** Id of the reservation, where there is one. */
  record: string | null = null;
  /** Whether the answer was one that was kept. */
  isReplayed = false;
  /** When the receiver was asked, or `null`. */
  askedMs: number | null = null;
  /** When its answer was complete or given up, or `null`. */
  answeredMs: number | null = null;
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Its turn has come: it may have waited long behind others. */
  begin(): void {
    this.startedMs = this.clock.monotonic();
  }

  asked(): void {
    this.askedMs = this.clock.monotonic();
  }

  answered(): void {
    this.answeredMs ??= this.clock.monotonic();
  }
}
