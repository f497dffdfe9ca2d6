import type { ClientNetworks } from '../../../lib/ip-ranges.js';
import type { Clock, Log } from '../../../ports/system.js';

/** A connection, as far as its streams hold places. */
export interface StreamHolder {
  readonly networks: ClientNetworks;
  /** Whether a request of it was let through for somebody. */
  readonly hasAuthenticated: () => boolean;
  /** How many streams have a place although all was written by then; `sinceMs` is of the monotonic clock. */
  readonly untaken: (sinceMs: number) => number;
  /** Ends these, each of which gives its place back by itself, and at once. */
  readonly endUntaken: (sinceMs: number) => void;
}

/** What connections that were never let through leave to others, of all places. */
const keptShare = 1 / 4;

/** How many are ended at once, of all places: to choose takes a look at all connections. */
const endedShare = 1 / 16;

/** How long a caller with a good credential has for a response where there are too many, milliseconds. */
const graceMs = 1_000;

/** Where none could give way, it is not looked again for so long, milliseconds. */
const restMs = 100;

/** The log tells of it no more often than that, milliseconds. */
const tellEveryMs = 60_000;

/**
 * Places for the streams of all connections of a listener, which bound what they hold. A stream keeps its place until
 * it is closed. Where all are taken, those give way whose response was written and not taken: first those of
 * connections that were never let through, among them those of the site that has most, so that nobody shuts others out
 * by taking nothing.
 */
export class StreamPlaces {
  private readonly most: number;
  private readonly log: Pick<Log, 'warn'>;
  private readonly clock: Pick<Clock, 'monotonic'>;
  private readonly holders = new Set<StreamHolder>();
  private count = 0;
  private lookedInVainMs = -Infinity;
  private toldMs = -Infinity;
  /** Since the log told of it. */
  private refused = 0;
  private gaveWay = 0;

  constructor(most: number, { log, clock }: { log: Pick<Log, 'warn'>; clock: Pick<Clock, 'monotonic'> }) {
    this.most = most;
    this.log = log;
    this.clock = clock;
  }

  taken(): number {
    return this.count;
  }

  add(holder: StreamHolder): void {
    this.holders.add(holder);
  }

  delete(holder: StreamHolder): void {
    this.holders.delete(holder);
  }

  /** `false` where there is none. */
  take(holder: StreamHolder): boolean {
    const most = holder.hasAuthenticated() ? this.most : Math.ceil(this.most * (1 - keptShare));
    if (this.count >= most) {
      this.makeRoom();
      if (this.count >= most) this.refused += 1;
      this.tell();
      if (this.count >= most) return false;
    }
    this.count += 1;
    return true;
  }

  give(): void {
    this.count -= 1;
  }

  private makeRoom(): void {
    const nowMs = this.clock.monotonic();
    if (nowMs - this.lookedInVainMs < restMs) return;
    const before = this.count;
    const wanted = Math.ceil(this.most * endedShare);
    for (const { holder, sinceMs } of this.candidates(nowMs)) {
      if (before - this.count >= wanted) break;
      holder.endUntaken(sinceMs);
    }
    this.gaveWay += before - this.count;
    if (this.count === before) this.lookedInVainMs = nowMs;
  }

  private candidates(nowMs: number): readonly { readonly holder: StreamHolder; readonly sinceMs: number }[] {
    const ofSite = new Map<string, number>();
    const found = [...this.holders]
      .map((holder) => {
        const isKnown = holder.hasAuthenticated();
        const sinceMs = isKnown ? nowMs - graceMs : nowMs;
        return { holder, isKnown, sinceMs, untaken: holder.untaken(sinceMs) };
      })
      .filter(({ untaken }) => untaken > 0);
    const held = ({ networks }: StreamHolder): number => ofSite.get(networks.site) ?? 0;
    for (const { holder, untaken } of found) ofSite.set(holder.networks.site, held(holder) + untaken);
    return found.sort(
      (one, other) =>
        Number(one.isKnown) - Number(other.isKnown) ||
        held(other.holder) - held(one.holder) ||
        other.untaken - one.untaken,
    );
  }

  private tell(): void {
    const nowMs = this.clock.monotonic();
    if (nowMs - this.toldMs < tellEveryMs) return;
    this.toldMs = nowMs;
    const { refused, gaveWay } = this;
    this.log.warn('streams of HTTP/2 were refused, or ended since nobody took their responses: there were too many', {
      streams: this.count,
      refused,
      gave_way: gaveWay,
    });
    this.refused = 0;
    this.gaveWay = 0;
  }
}
