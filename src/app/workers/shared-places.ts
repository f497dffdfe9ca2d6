/**
 * The primary's side of bounds that hold for all workers together. Each worker has a part of the places, which it uses
 * without a word. Who has used up its part asks: then the others give back what they do not use, and from there on the
 * primary counts each place, until enough are free to be parts again.
 */
import type { PlaceOrder, SharedBound, ToPrimary, ToWorker } from './messages.js';
import { boundKey, partOf } from './share-config.js';

type FromWorker = Extract<ToPrimary, { kind: 'places' }>;
type OrdersMessage = Extract<ToWorker, { kind: 'places' }>;

/** A worker that serves. */
export interface PlaceMember {
  readonly take: (message: FromWorker) => void;
  /** It is gone, and with it the requests that it had. */
  readonly leave: () => void;
}

export interface SharedPlaces {
  /** @param send takes what is to be done, in its order. */
  readonly join: (number: number, send: (message: OrdersMessage) => void) => PlaceMember;
  /** To be called each second or so: places that are unused and not where they were at the start are spread again. */
  readonly look: () => void;
  /** Bounds whose places are not where they were at the start. */
  readonly moved: () => number;
}

/** How long a recall waits for its answers, milliseconds. Whoever asks after that does not wait for the recall. */
export const longestRecallMs = 1_000;

/** Of so many free places parts are made again: each worker's should last for a while. */
const partSpread = 1 / 4;
const leastPart = 8;

interface Member {
  readonly number: number;
  readonly orders: PlaceOrder[];
}

interface Waiting {
  readonly member: Member;
  readonly id: number;
}

/** Where the places of a bound are that are not the parts of the start. */
interface Moved {
  readonly bound: SharedBound;
  /** What each worker has, used or not: nothing, where it is not named. */
  readonly granted: Map<Member, number>;
  free: number;
  /**
   * `spread`: workers keep what gets free. `recalling`: they give back what they do not use. `counted`: each has what
   * it uses, and no more.
   */
  state: 'spread' | 'recalling' | 'counted';
  /** Who has not answered yet, of a recall. */
  readonly awaited: Set<Member>;
  recalledAtMs: number;
  waiting: Waiting[];
}

export function createSharedPlaces(count: number, nowMs: () => number): SharedPlaces {
  const sends = new Map<Member, (message: OrdersMessage) => void>();
  const moved = new Map<string, Moved>();

  const partOfMember = ({ number }: Member, max: number): number => partOf(max, { number, count });

  /** What is known of it, or the parts that all have of it. */
  function open(bound: SharedBound): Moved {
    const key = boundKey(bound);
    const known = moved.get(key);
    if (known !== undefined) return known;
    const granted = new Map([...sends.keys()].map((member) => [member, partOfMember(member, bound.max)]));
    const free = [...granted.values()].reduce((left, part) => left - part, bound.max);
    const opened: Moved = {
      bound,
      granted,
      free,
      state: 'spread',
      awaited: new Set(),
      recalledAtMs: 0,
      waiting: [],
    };
    moved.set(key, opened);
    return opened;
  }

  function recall(places: Moved): void {
    places.state = 'recalling';
    places.recalledAtMs = nowMs();
    for (const member of sends.keys()) {
      places.awaited.add(member);
      member.orders.push({ kind: 'recall', bound: places.bound });
    }
  }

  function ask(member: Member, id: number, bound: SharedBound): void {
    const places = open(bound);
    const isLate = places.state === 'recalling' && nowMs() - places.recalledAtMs > longestRecallMs;
    if (places.free > 0) grant(places, { member, id });
    else if (places.state === 'counted' || isLate) member.orders.push({ kind: 'answer', id, isGranted: false });
    else {
      places.waiting.push({ member, id });
      if (places.state === 'spread') recall(places);
    }
  }

  function grant(places: Moved, { member, id }: Waiting): void {
    places.free -= 1;
    places.granted.set(member, (places.granted.get(member) ?? 0) + 1);
    member.orders.push({ kind: 'answer', id, isGranted: true });
  }

  function takeBack(member: Member, bound: SharedBound, returned: number): void {
    const places = moved.get(boundKey(bound));
    if (places === undefined || places.state === 'spread') {
      // They were on their way back when parts were made: the worker gets them again, since they were counted as its
      // own.
      member.orders.push({ kind: 'grant', bound, count: returned });
      return;
    }
    places.granted.set(member, (places.granted.get(member) ?? 0) - returned);
    free(places, returned);
  }

  /** Adds places that are free: those who wait get them first. */
  function free(places: Moved, more: number): void {
    places.free += more;
    while (places.free > 0) {
      const first = places.waiting.shift();
      if (first === undefined) return;
      grant(places, first);
    }
  }

  /** Where all have answered, who still waits is refused, and it is known of each place who has it. */
  function conclude(places: Moved): void {
    if (places.state === 'recalling' && places.awaited.size === 0) {
      places.state = 'counted';
      for (const { member, id } of places.waiting.splice(0)) {
        member.orders.push({ kind: 'answer', id, isGranted: false });
      }
    }
    if (places.state === 'counted') spread(places);
  }

  /** Makes parts of what is free: those of the start where nobody uses more than its own, and else equal ones. */
  function spread(places: Moved): void {
    const { bound, granted } = places;
    const { max } = bound;
    if (places.free < Math.min(max, Math.max(Math.ceil(max * partSpread), leastPart * count))) return;
    const members = [...sends.keys()];
    const isAsAtStart = members.every((member) => (granted.get(member) ?? 0) <= partOfMember(member, max));
    const all = { count: members.length };
    const spreadOut = places.free;
    members.forEach((member, index) => {
      const has = granted.get(member) ?? 0;
      const more = isAsAtStart ? partOfMember(member, max) - has : partOf(spreadOut, { ...all, number: index + 1 });
      granted.set(member, has + more);
      places.free -= more;
      member.orders.push({ kind: 'grant', bound, count: more });
    });
    places.state = 'spread';
    if (isAsAtStart) moved.delete(boundKey(bound));
  }

  function send(): void {
    for (const [{ orders }, sendTo] of sends) {
      if (orders.length > 0) sendTo({ kind: 'places', orders: orders.splice(0) });
    }
  }

  function take(member: Member, { back, recalled, asks }: FromWorker): void {
    for (const { bound, count: returned } of back) takeBack(member, bound, returned);
    for (const { bound, count: returned } of recalled) {
      moved.get(boundKey(bound))?.awaited.delete(member);
      takeBack(member, bound, returned);
    }
    for (const { bound } of [...back, ...recalled]) {
      const places = moved.get(boundKey(bound));
      if (places !== undefined) conclude(places);
    }
    for (const { id, bound } of asks) ask(member, id, bound);
    send();
  }

  function leave(member: Member): void {
    if (!sends.delete(member)) return;
    for (const places of moved.values()) {
      places.waiting = places.waiting.filter((waiting) => waiting.member !== member);
      places.awaited.delete(member);
      const left = places.granted.get(member) ?? 0;
      places.granted.delete(member);
      free(places, left);
      conclude(places);
    }
    if (sends.size === 0) moved.clear();
    send();
  }

  return {
    join: (number, sendTo) => {
      const member: Member = { number, orders: [] };
      sends.set(member, sendTo);
      for (const { bound, state } of moved.values()) {
        member.orders.push({ kind: 'none', bound, isRecalled: state !== 'spread' });
      }
      send();
      return { take: (message) => take(member, message), leave: () => leave(member) };
    },
    look: () => {
      for (const places of moved.values()) if (places.state === 'spread') recall(places);
      send();
    },
    moved: () => moved.size,
  };
}
