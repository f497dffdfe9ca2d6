import type { ClientNetworks } from '../../../lib/ip-ranges.js';
import type { Clock, Log } from '../../../ports/system.js';

/** A connection, as far as its streams hold places. */
export interface StreamHolder {
  readonly networks: ClientNetworks;
  /** Whether a request of it was let through for somebody. */
  readonly hasAuthenticated: () => boolean;
  /** How many streams have a place although all was written by then; `sinceMs` is of the monotonic clock. */
  readonly untaken: (sinceMs: number) => number;
  /** Ends so many of these at most, the oldest first. Each gives its place back by itself, and at once. */
  readonly endUntaken: (sinceMs: number, atMost: number) => void;
}

/** A stranger was never let through. */
type Kind = 'known' | 'stranger';

interface Candidate {
  readonly holder: StreamHolder;
  readonly kind: Kind;
  readonly sinceMs: number;
}

/** What connections that were never let through leave to others, of all places. */
const keptShare = 1 / 4;

/** How many of strangers are ended at once, of all places: to choose takes a look at all connections. */
const endedShare = 1 / 16;

/** How long callers with a good credential, and strangers, have for a response where there are too many; ms. */
const graceMs = { known: 1_000, stranger: 100 };

/** Where none could give way, it is not looked again for so long, milliseconds. */
const restMs = 100;

/** The log tells of it no more often than that, milliseconds. */
const tellEveryMs = 60_000;

/**
 * Places for the streams of all connections of a listener, which bound what they hold. A stream keeps its place until
 * it is closed or gives way. Where all are taken, those give way whose response was written and not taken: first those
 * of connections that were never let through, among them those of the site that has most, so that nobody shuts others
 * out by taking nothing. Those of others give way to others only, and no more of them than have to.
 */
export class StreamPlaces {
  private readonly most: number;
  private readonly log: Pick<Log, 'warn'>;
  private readonly clock: Pick<Clock, 'monotonic'>;
  private readonly holders = new Set<StreamHolder>();
  private count = 0;
  private readonly lookedInVainMs = { known: -Infinity, stranger: -Infinity };
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
    const whom = kindOf(holder);
    const most = whom === 'known' ? this.most : Math.ceil(this.most * (1 - keptShare));
    if (this.count >= most) {
      const before = this.count;
      this.makeRoom(whom, most);
      if (this.count >= most) this.refused += 1;
      this.tell(before);
      if (this.count >= most) return false;
    }
    this.count += 1;
    return true;
  }

  give(): void {
    this.count -= 1;
  }

  /** For one of this kind, which may have a place where fewer than `most` are taken. */
  private makeRoom(whom: Kind, most: number): void {
    const nowMs = this.clock.monotonic();
    if (nowMs - this.lookedInVainMs[whom] < restMs) return;
    const before = this.count;
    const wanted = Math.ceil(this.most * endedShare);
    for (const { holder, kind, sinceMs } of this.candidates(whom, nowMs)) {
      const left = kind === 'known' ? most - 1 : before - wanted;
      if (this.count <= left) break;
      holder.endUntaken(sinceMs, this.count - left);
    }
    this.gaveWay += before - this.count;
    if (this.count === before) this.lookedInVainMs[whom] = nowMs;
  }

  /** Those that may give way to one of this kind. */
  private candidates(whom: Kind, nowMs: number): readonly Candidate[] {
    const ofSite = new Map<string, number>();
    const found = [...this.holders]
      .map((holder) => {
        const kind = kindOf(holder);
        const sinceMs = nowMs - graceMs[kind];
        const mayGiveWay = kind === 'stranger' || whom === 'known';
        return { holder, kind, sinceMs, untaken: mayGiveWay ? holder.untaken(sinceMs) : 0 };
      })
      .filter(({ untaken }) => untaken > 0);
    const held = ({ networks }: StreamHolder): number => ofSite.get(networks.site) ?? 0;
    for (const { holder, untaken } of found) ofSite.set(holder.networks.site, held(holder) + untaken);
    return found.sort(
      (one, other) =>
        Number(one.kind === 'known') - Number(other.kind === 'known') ||
        held(other.holder) - held(one.holder) ||
        other.untaken - one.untaken,
    );
  }

  private tell(streams: number): void {
    const nowMs = this.clock.monotonic();
    if (nowMs - this.toldMs < tellEveryMs) return;
    this.toldMs = nowMs;
    const { refused, gaveWay } = this;
    this.log.warn('streams of HTTP/2 were refused, or ended since nobody took their responses: there were too many', {
      streams,
      refused,
      gave_way: gaveWay,
    });
    this.refused = 0;
    this.gaveWay = 0;
  }
}

function kindOf(holder: StreamHolder): Kind {
  return holder.hasAuthenticated() ? 'known' : 'stranger';
}
