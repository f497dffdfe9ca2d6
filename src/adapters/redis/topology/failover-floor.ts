import type { SeenState } from '../scripts/failover-floor.js';

/** Why what a store held may be forgotten. */
export type FailoverCause =
  /** Another primary, or the same one started again. */
  | { readonly kind: 'replaced' }
  /** It was emptied, or an older state was put back, while it ran. */
  | { readonly kind: 'emptied' }
  /** Its clock stepped, by so many milliseconds: what was to last may have ended early. */
  | { readonly kind: 'clock'; readonly stepMs: number };

/**
 * What a primary does not say: what it remembers, where that was never read, or for some time now what became of that.
 */
export type Untold = 'past' | 'present';

/** What a server's clock said. `fromMs` and `toMs`, monotonic, are when it was asked and when it had answered. */
interface ClockReading {
  readonly serverMs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** One look at a primary. */
export interface FloorLook {
  readonly place: string;
  /** Names this run of the server and this history of its data. */
  readonly identity: string;
  /** Names what the store remembers it by; in a Cluster that changes with the slots that the primary serves. */
  readonly tag: string;
  /** Wall clock, milliseconds. */
  readonly nowMs: number;
}

/**
 * Notices that a primary was replaced, restarted or emptied, or that its clock stepped, and refuses for a time what it
 * may have forgotten.
 */
export interface FailoverFloor {
  /** Whoever is primary there now. To be called before what the store remembers is read. */
  readonly see: (look: FloorLook) => void;
  /** What the store itself remembers, and its clock. */
  readonly read: (look: FloorLook, state: SeenState, asked: Pick<ClockReading, 'fromMs' | 'toMs'>) => void;
  /**
   * The clock of the server, as a call that it answered says. A step counts before the reply does, which may rest on
   * what ended early.
   */
  readonly time: (look: Pick<FloorLook, 'place' | 'identity' | 'nowMs'>, reading: ClockReading) => void;
  /**
   * What the clock of the server has to say at that monotonic time, whole milliseconds; `null` where it was not read
   * yet.
   */
  readonly expectedMs: (place: string, monotonicMs: number) => number | null;
  /** What is to be told of since the last time. */
  readonly news: (place: string) => readonly FailoverCause[];
  /**
   * It does not say what it remembers. Where that was never read, it is as if there was nothing. Says what to tell of
   * it, each thing once.
   */
  readonly refused: (look: FloorLook) => Untold | null;
  /** No primary is there any more: one that comes back missed what was written meanwhile. */
  readonly leave: (place: string) => void;
  /**
   * From now on a primary in a place where none was is a replacement: all that there were at the start have been seen.
   */
  readonly settle: () => void;
  /** Milliseconds since the epoch, for the store to remember; 0 where there is nothing. */
  readonly atMs: () => number;
  /** Seconds since the epoch: single-use tokens issued before are refused. */
  readonly issuedBeforeS: (nowMs: number) => number | null;
  readonly failovers: () => number;
}

/** What a clock may be off between two looks and still be said not to have stepped, milliseconds. */
const longestSlewMs = 1_000;

/**
 * A reading so old is replaced by that of a call: between clocks that drift the difference grows. Looks come sooner,
 * where they are answered.
 */
const oldMs = 10_000;

/**
 * After so many refusals in a row it is none of the moment, as a server that is full or a slot that a Cluster hands
 * over makes them.
 */
const lastingRefusals = 3;

interface Place {
  identity: string;
  tag: string;
  /** `null` before anything was read. */
  epoch: string | null;
  /** As last read; the same again is no news. */
  readAtMs: number;
  clock: ClockReading | null;
  /**
   * Before it stepped last: calls that were under way when that was noticed may have seen this one still. `untilMs`:
   * monotonic.
   */
  clockBefore: { readonly reading: ClockReading; readonly untilMs: number } | null;
  /** Whether nothing was read yet. */
  isNew: boolean;
  /** In a row, after what was read last. */
  refusals: number;
  news: FailoverCause[];
}

/**
 * @param lastsMs how long a token issued before may still be presented: the longest lifetime, and the skew of clocks.
 *   Asked each time: issuers change while the process runs.
 */
export function createFailoverFloor(lastsMs: () => number): FailoverFloor {
  const places = new Map<string, Place>();
  let settled = false;
  let failovers = 0;
  let floorMs = 0;

  return {
    see: ({ place, identity, tag, nowMs }) => {
      const known = places.get(place);
      if (known?.identity === identity && known.tag === tag) return;
      const isSame = known?.identity === identity;
      const { clock, clockBefore } = isSame ? known : { clock: null, clockBefore: null };
      const next: Place = {
        identity,
        tag,
        epoch: null,
        readAtMs: 0,
        clock,
        clockBefore,
        isNew: true,
        refusals: 0,
        news: known?.news ?? [],
      };
      places.set(place, next);
      if (settled && !isSame) tell(next, { kind: 'replaced' }, nowMs);
    },
    read: ({ place, nowMs }, state, { fromMs, toMs }) => {
      const known = places.get(place);
      if (known === undefined) return;
      compare(known, { serverMs: state.serverMs, fromMs, toMs }, nowMs, 0);
      // Whoever sees a replaced primary first writes a new epoch: that is the same event. Later it is one that nobody
      // saw coming.
      if (!known.isNew && state.epoch !== known.epoch) tell(known, { kind: 'emptied' }, nowMs);
      known.isNew = false;
      known.refusals = 0;
      known.epoch = state.epoch;
      if (state.atMs === known.readAtMs) return;
      known.readAtMs = state.atMs;
      // Nothing is noticed in the future, whatever the clock of another proxy says.
      floorMs = Math.max(floorMs, Math.min(state.atMs, nowMs));
    },
    time: ({ place, identity, nowMs }, reading) => {
      const known = places.get(place);
      if (known?.identity === identity) compare(known, reading, nowMs, oldMs);
    },
    expectedMs: (place, monotonicMs) => {
      const clock = places.get(place)?.clock ?? null;
      return clock === null ? null : Math.round(clock.serverMs + monotonicMs - clock.toMs);
    },
    news: (place) => places.get(place)?.news.splice(0) ?? [],
    refused: ({ place, nowMs }) => {
      const known = places.get(place);
      if (known === undefined) return null;
      known.refusals += 1;
      if (!known.isNew) return known.refusals === lastingRefusals ? 'present' : null;
      if (known.refusals > 1) return null;
      floorMs = Math.max(floorMs, nowMs);
      return 'past';
    },
    leave: (place) => {
      places.delete(place);
    },
    settle: () => {
      settled = true;
    },
    atMs: () => floorMs,
    issuedBeforeS: (nowMs) => (floorMs > 0 && nowMs < floorMs + lastsMs() ? Math.ceil(floorMs / 1000) : null),
    failovers: () => failovers,
  };

  /**
   * Tells of a step since the reading that is known. Without one, a reading that is `afterMs` old gives way to this
   * one.
   */
  function compare(place: Place, reading: ClockReading, nowMs: number, afterMs: number): void {
    const { clock, clockBefore } = place;
    const stepMs = clock === null ? 0 : stepOf(clock, reading);
    if (clock === null || stepMs === 0) {
      if (clock === null || reading.fromMs - clock.toMs >= afterMs) place.clock = reading;
      return;
    }
    // Asked before the step was noticed, and answered before there was one: it is told of already, and this reply
    // comes before the floor of it.
    if (clockBefore !== null && reading.fromMs < clockBefore.untilMs && stepOf(clockBefore.reading, reading) === 0) {
      return;
    }
    place.clock = reading;
    place.clockBefore = { reading: clock, untilMs: reading.toMs };
    tell(place, { kind: 'clock', stepMs }, nowMs);
  }

  function tell(place: Place, cause: FailoverCause, nowMs: number): void {
    failovers += 1;
    floorMs = Math.max(floorMs, nowMs);
    place.news.push(cause);
  }
}

/**
 * By how much a server's clock has stepped between two readings, against our own that never goes back; 0 where it may
 * have gone on as it should. When exactly it was read is not known: the reply took some time.
 */
export function stepOf(before: ClockReading, after: ClockReading): number {
  const elapsedMs = after.serverMs - before.serverMs;
  const leastMs = after.fromMs - before.toMs - longestSlewMs;
  const mostMs = after.toMs - before.fromMs + longestSlewMs;
  if (elapsedMs > mostMs) return elapsedMs - (mostMs - longestSlewMs);
  return elapsedMs < leastMs ? elapsedMs - (leastMs + longestSlewMs) : 0;
}
