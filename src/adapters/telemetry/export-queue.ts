import type { Clock, Timers } from '../../ports/system.js';
import type { SignalState } from '../../ports/tracing.js';
import type { QueueLimits } from '../../decision/telemetry/otel-variables.js';

/** What became of one export. */
export type ExportOutcome =
  | { readonly kind: 'taken'; readonly rejected: number }
  /** It may be taken later; `afterMs` is what the collector asked for, `null` where it did not. */
  | { readonly kind: 'later'; readonly why: string; readonly afterMs: number | null }
  | { readonly kind: 'failed'; readonly why: string };

interface ExportQueueDeps<Item> {
  readonly signal: SignalState['signal'];
  readonly limits: QueueLimits;
  readonly clock: Clock;
  readonly timers: Timers;
  /** At least 0 and less than 1. */
  readonly random: () => number;
  /** Sends some of them; never rejects. */
  readonly send: (items: readonly Item[]) => Promise<ExportOutcome>;
}

/** How often one batch is offered to a collector that is not there: for some 30 seconds. */
const maxTries = 5;
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;

/**
 * Holds items until they are sent, a batch at a time. What there is no room for is dropped and counted: memory has its
 * bound whatever the collector does, and nobody waits for it.
 */
export class ExportQueue<Item> {
  private readonly deps: ExportQueueDeps<Item>;
  private items: Item[] = [];
  private underWay: Promise<void> | null = null;
  private callOff: () => void = nothing;
  private endPause: () => void = nothing;
  private isClosing = false;
  private exported = 0;
  private dropped = 0;
  private failed = 0;
  private rejected = 0;
  private lastError: string | null = null;

  constructor(deps: ExportQueueDeps<Item>) {
    this.deps = deps;
  }

  add(item: Item): void {
    const { limits, timers } = this.deps;
    if (this.items.length >= limits.maxItems) {
      this.dropped += 1;
      return;
    }
    this.items.push(item);
    if (this.underWay !== null) return;
    if (this.items.length >= limits.maxBatch) this.begin();
    else if (this.items.length === 1) this.callOff = timers.after(limits.delayMs, () => this.begin());
  }

  state(): SignalState {
    const { exported, dropped, failed, rejected, lastError } = this;
    return { signal: this.deps.signal, waiting: this.items.length, exported, dropped, failed, rejected, lastError };
  }

  /** Sends what waits, once each, and counts as failed what is not taken within that time. */
  async close(withinMs: number): Promise<void> {
    this.isClosing = true;
    this.callOff();
    this.endPause();
    const isOver = new Promise<void>((resolve) => {
      this.deps.timers.after(withinMs, resolve);
    });
    const drain = async (): Promise<void> => {
      await this.underWay;
      while (this.items.length > 0) await this.sendBatch();
    };
    await Promise.race([drain(), isOver]);
    this.failed += this.items.length;
    this.items = [];
  }

  private begin(): void {
    this.callOff();
    this.underWay ??= this.sendDue().finally(() => {
      this.underWay = null;
      const { limits, timers } = this.deps;
      if (this.items.length > 0 && !this.isClosing) this.callOff = timers.after(limits.delayMs, () => this.begin());
    });
  }

  /** What has come together, and more as long as whole batches do. */
  private async sendDue(): Promise<void> {
    do await this.sendBatch();
    while (this.items.length >= this.deps.limits.maxBatch && !this.isClosing);
  }

  private async sendBatch(): Promise<void> {
    const batch = this.items.splice(0, this.deps.limits.maxBatch);
    for (let tries = 1; ; tries += 1) {
      const outcome = await this.deps.send(batch);
      if (outcome.kind === 'taken') {
        const rejected = Math.min(batch.length, outcome.rejected);
        this.rejected += rejected;
        this.exported += batch.length - rejected;
        this.lastError = rejected === 0 ? null : 'the collector rejected a part';
        return;
      }
      this.lastError = outcome.why;
      if (outcome.kind === 'failed' || tries === maxTries || this.isClosing) {
        this.failed += batch.length;
        return;
      }
      await this.pause(outcome.afterMs, tries);
    }
  }

  /** Longer each time, and never for as long as the collector likes. */
  private pause(askedMs: number | null, tries: number): Promise<void> {
    const usualMs = firstPauseMs * 2 ** (tries - 1) * (0.5 + this.deps.random());
    return new Promise((resolve) => {
      const callOff = this.deps.timers.after(Math.min(longestPauseMs, askedMs ?? usualMs), resolve);
      this.endPause = () => {
        callOff();
        resolve();
      };
    });
  }
}

function nothing(): void {
  // Nothing is planned.
}
