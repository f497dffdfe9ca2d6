import type { ClientNetworks } from '../../../lib/ip-ranges.js';
import type { Clock, Log } from '../../../ports/system.js';

/** A connection, as far as its streams hold places. */
export interface StreamHolder {
  readonly networks: ClientNetworks;
  /** How many streams have a place although all was written by then; `sinceMs` is of the monotonic clock. */
  readonly untaken: (sinceMs: number) => number;
  /** Ends the oldest of these, where there is one. It gives its place back by itself, and at once. */
  readonly endUntaken: (sinceMs: number) => void;
}

/** A stranger was never let through. */
type Kind = 'known' | 'stranger';

/** The places of one connection's streams. */
export class HeldPlaces {
  readonly holder: StreamHolder;
  kind: Kind = 'stranger';
  count = 0;

  constructor(holder: StreamHolder) {
    this.holder = holder;
  }
}

interface Candidate {
  readonly places: HeldPlaces;
  readonly sinceMs: number;
}

/** What may give way, as it was found then; who is to be asked first is the last. */
interface Look {
  readonly atMs: number;
  readonly candidates: Candidate[];
}

/** Of all places, what connections that were never let through may have, and what others may. */
const shareOfKind = 3 / 4;

/** A site that leaves more than that of all places untaken is in the way of others. */
const crowdedShare = 1 / 4;

/**
 * How long a caller with a good credential has for a response where there are too many, and how long a stranger, or a
 * site that is in the way of others; milliseconds.
 */
const graceMs = { known: 1_000, short: 100 };

/**
 * How many requests may wait, at a time, for what nobody knows yet: whether a body follows, or the message of a health
 * check. Each holds its head, for which Node takes up to 110 KiB where it has 230 headers, and a place, while it is
 * none of those in flight yet: all of either kind hold no more than a sixteenth of the places.
 */
export function maxOpenRequests(places: number): number {
  return Math.min(256, Math.floor(places / 16));
}

/** What was found is used for so long before it is looked again, which takes all connections; milliseconds. */
const lookEveryMs = 100;

/** The log tells of it no more often than that, milliseconds. */
const tellEveryMs = 60_000;

/**
 * Places for the streams of all connections of a listener, which bound what they hold. A stream keeps its place until
 * it is closed or gives way. Connections that were never let through leave a quarter of all places to others, and these
 * a quarter to them, as every caller begins as a stranger. Where all are taken, those give way whose response was
 * written and not taken: first those of strangers, of the site that has most, so that nobody shuts others out by taking
 * nothing. Those of callers give way to callers, and to strangers only where callers have more than is theirs: a
 * connection that turns out to be one keeps what it has. No more of them than have to.
 */
export class StreamPlaces {
  private readonly most: number;
  private readonly mostOfKind: number;
  private readonly log: Pick<Log, 'warn'>;
  private readonly clock: Pick<Clock, 'monotonic'>;
  private readonly connections = new Set<HeldPlaces>();
  private readonly counts = { known: 0, stranger: 0 };
  private readonly looks: Record<Kind, Look> = {
    known: { atMs: -Infinity, candidates: [] },
    stranger: { atMs: -Infinity, candidates: [] },
  };
  private toldMs = -Infinity;
  /** Since the log told of it. */
  private refused = 0;
  private gaveWay = 0;

  constructor(most: number, { log, clock }: { log: Pick<Log, 'warn'>; clock: Pick<Clock, 'monotonic'> }) {
    this.most = most;
    this.mostOfKind = Math.ceil(most * shareOfKind);
    this.log = log;
    this.clock = clock;
  }

  taken(): number {
    return this.counts.known + this.counts.stranger;
  }

  /** A connection that may hold some from now on. */
  add(holder: StreamHolder): HeldPlaces {
    const places = new HeldPlaces(holder);
    this.connections.add(places);
    return places;
  }

  /** It is no longer asked to give way. What it holds it gives back by itself. */
  delete(places: HeldPlaces): void {
    this.connections.delete(places);
  }

  /** A request of it was let through for somebody. */
  recognize(places: HeldPlaces): void {
    if (places.kind === 'known') return;
    places.kind = 'known';
    this.counts.stranger -= places.count;
    this.counts.known += places.count;
  }

  /** `false` where there is none. */
  take(places: HeldPlaces): boolean {
    const { kind } = places;
    if (!this.hasRoom(kind)) {
      const before = this.taken();
      const ended = this.givingWayTo(kind).find((other) => this.endOne(other));
      if (ended !== undefined) this.gaveWay += 1;
      const isRefused = ended !== kind && !this.hasRoom(kind);
      if (isRefused) this.refused += 1;
      this.tell(before);
      if (isRefused) return false;
    }
    places.count += 1;
    this.counts[kind] += 1;
    return true;
  }

  give(places: HeldPlaces): void {
    places.count -= 1;
    this.counts[places.kind] -= 1;
  }

  private hasRoom(kind: Kind): boolean {
    return this.taken() < this.most && this.counts[kind] < this.mostOfKind;
  }

  private givingWayTo(kind: Kind): readonly Kind[] {
    if (kind === 'stranger') return this.counts.known > this.mostOfKind ? ['known', 'stranger'] : ['stranger'];
    return this.counts.known < this.mostOfKind ? ['stranger', 'known'] : ['known'];
  }

  /** Whether there was one. */
  private endOne(kind: Kind): boolean {
    const { candidates } = this.latestLook(kind);
    for (let first = candidates.at(-1); first !== undefined; candidates.pop(), first = candidates.at(-1)) {
      const { places, sinceMs } = first;
      const before = this.counts[kind];
      if (places.kind === kind) places.holder.endUntaken(sinceMs);
      if (this.counts[kind] < before) return true;
    }
    return false;
  }

  private latestLook(kind: Kind): Look {
    const nowMs = this.clock.monotonic();
    if (nowMs - this.looks[kind].atMs >= lookEveryMs) {
      this.looks[kind] = { atMs: nowMs, candidates: this.findUntaken(kind, nowMs) };
    }
    return this.looks[kind];
  }

  private findUntaken(kind: Kind, nowMs: number): Candidate[] {
    const ofSite = new Map<string, number>();
    const crowded = this.most * crowdedShare;
    const earliestMs = nowMs - graceMs.short;
    const held = ({ holder: { networks } }: HeldPlaces): number => ofSite.get(networks.site) ?? 0;
    const found = [...this.connections]
      .filter((places) => places.kind === kind)
      .map((places) => ({ places, untaken: places.holder.untaken(earliestMs) }))
      .filter(({ untaken }) => untaken > 0);
    for (const { places, untaken } of found) ofSite.set(places.holder.networks.site, held(places) + untaken);
    return found
      .sort((one, other) => held(one.places) - held(other.places) || one.untaken - other.untaken)
      .map(({ places }) => {
        const hasShortTime = kind === 'stranger' || held(places) > crowded;
        return { places, sinceMs: hasShortTime ? earliestMs : nowMs - graceMs.known };
      });
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
