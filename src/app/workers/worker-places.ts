/** A worker's side of bounds that hold for all workers together: it asks where its own part is used up. */
import type { Timers } from '../../ports/system.js';
import { slotOf, slotsOfHolder, type Slot, type Slots } from '../../proxy/exchange/concurrency.js';
import type { PlaceOrder, PlacesBack, SharedBound, ToPrimary, ToWorker } from './messages.js';
import { boundKey, partOf, type Share } from './share-config.js';

type ToPrimaryMessage = Extract<ToPrimary, { kind: 'places' }>;
type OrdersMessage = Extract<ToWorker, { kind: 'places' }>;

export interface WorkerPlaces {
  /** `max` slots that are those of all workers. */
  readonly slots: (name: string, max: number, share: Share) => Slots;
  readonly onOrders: (message: OrdersMessage) => void;
}

interface WorkerPlacesDeps {
  /** Called at most once for each turn. */
  readonly send: (message: ToPrimaryMessage) => void;
  readonly timers: Timers;
  /** Runs it at the end of this turn of the event loop. */
  readonly atTurnEnd: (task: () => void) => void;
}

/** How long an ask waits for its answer, milliseconds; then it is refused. */
export const longestAskMs = 1_000;

/** What this worker has of a bound. */
interface Quota {
  readonly bound: SharedBound;
  /** What it has as long as the primary says nothing else. */
  readonly part: number;
  granted: number;
  /** At most what is granted. */
  held: number;
  /** Whether the primary counts each place: what gets free is not kept. */
  isRecalled: boolean;
  /** Asks that are not answered. */
  asked: number;
}

interface Ask {
  readonly quota: Quota;
  /** `null` where nobody waits any more. */
  resolve: ((isGranted: boolean) => void) | null;
}

/** Finds what this worker has of a bound of one name. */
interface Quotas {
  readonly of: (holder: string | null) => Quota;
  /** Forgets a quota that has nothing under way and is what it is without a word from the primary. */
  readonly forgetIfUnused: (quota: Quota) => void;
}

export function createWorkerPlaces({ send, timers, atTurnEnd }: WorkerPlacesDeps): WorkerPlaces {
  const bounds = new Map<string, Quotas>();
  const asks = new Map<number, Ask>();
  let last = 0;
  let outgoing: { back: Map<string, PlacesBack>; recalled: PlacesBack[]; asks: ToPrimaryMessage['asks'][number][] } = {
    back: new Map(),
    recalled: [],
    asks: [],
  };
  let isSending = false;

  function sendSoon(): void {
    if (isSending) return;
    isSending = true;
    atTurnEnd(() => {
      isSending = false;
      const { back, recalled, asks: asked } = outgoing;
      outgoing = { back: new Map(), recalled: [], asks: [] };
      send({ kind: 'places', back: [...back.values()], recalled, asks: asked });
      if (asked.length > 0) timers.after(longestAskMs, () => asked.forEach(({ id }) => expire(id)));
    });
  }

  /** Nobody waits for it any more: where it is granted late, it is given back. */
  function expire(id: number): void {
    const ask = asks.get(id);
    ask?.resolve?.(false);
    if (ask !== undefined) ask.resolve = null;
  }

  /** Resolves with whether there is a place; it is held then. */
  function askFor(quota: Quota): Promise<boolean> {
    last += 1;
    const id = last;
    quota.asked += 1;
    outgoing.asks.push({ id, bound: quota.bound });
    sendSoon();
    return new Promise((resolve) => {
      asks.set(id, { quota, resolve });
    });
  }

  function release(quota: Quota): void {
    quota.held -= 1;
    if (quota.isRecalled) {
      quota.granted -= 1;
      const key = boundKey(quota.bound);
      const returned = outgoing.back.get(key)?.count ?? 0;
      outgoing.back.set(key, { bound: quota.bound, count: returned + 1 });
      sendSoon();
    }
    bounds.get(quota.bound.name)?.forgetIfUnused(quota);
  }

  function follow(order: PlaceOrder): void {
    if (order.kind === 'answer') {
      answer(order.id, order.isGranted);
      return;
    }
    const { bound } = order;
    const quotas = bounds.get(bound.name);
    if (quotas === undefined) return;
    const quota = quotas.of(bound.holder);
    if (order.kind === 'recall') {
      outgoing.recalled.push({ bound, count: quota.granted - quota.held });
      quota.granted = quota.held;
      quota.isRecalled = true;
      sendSoon();
    } else if (order.kind === 'grant') {
      quota.granted += order.count;
      quota.isRecalled = false;
      quotas.forgetIfUnused(quota);
    } else {
      quota.granted = 0;
      quota.isRecalled = order.isRecalled;
    }
  }

  function answer(id: number, isGranted: boolean): void {
    const ask = asks.get(id);
    if (ask === undefined) return;
    asks.delete(id);
    const { quota, resolve } = ask;
    quota.asked -= 1;
    if (isGranted) {
      quota.granted += 1;
      quota.held += 1;
      if (resolve === null) release(quota);
    } else bounds.get(quota.bound.name)?.forgetIfUnused(quota);
    resolve?.(isGranted);
  }

  return {
    slots: (name, max, share) => {
      const mostOf = slotsOfHolder(max);
      const newQuota = (holder: string | null, most: number): Quota => {
        const part = partOf(most, share);
        return {
          bound: { name, holder, max: most },
          part,
          granted: part,
          held: 0,
          isRecalled: false,
          asked: 0,
        };
      };
      const all = newQuota(null, max);
      const byHolder = new Map<string, Quota>();
      const ofHolder = (holder: string): Quota => {
        const known = byHolder.get(holder);
        if (known !== undefined) return known;
        const quota = newQuota(holder, mostOf(holder));
        byHolder.set(holder, quota);
        return quota;
      };
      const forgetIfUnused = ({ bound: { holder }, part, granted, held, isRecalled, asked }: Quota): void => {
        if (holder !== null && held === 0 && asked === 0 && granted === part && !isRecalled) byHolder.delete(holder);
      };
      bounds.set(name, { of: (holder) => (holder === null ? all : ofHolder(holder)), forgetIfUnused });

      const hold = (own: Quota | null): Slot =>
        slotOf(() => {
          if (own !== null) release(own);
          release(all);
        });
      /** The holder's first: who has all that it may have takes no place for a moment that others could have. */
      const askInTurn = async (own: Quota | null): Promise<Slot | null> => {
        if (own !== null && !(tryHold(own) || (await askFor(own)))) return null;
        if (tryHold(all) || (await askFor(all))) return hold(own);
        if (own !== null) release(own);
        return null;
      };
      return {
        take: (holder) => {
          const own = mostOf(holder) >= max ? null : ofHolder(holder);
          if (all.held >= all.granted || (own !== null && own.held >= own.granted)) return askInTurn(own);
          all.held += 1;
          if (own !== null) own.held += 1;
          return hold(own);
        },
        taken: () => all.held,
      };
    },
    onOrders: ({ orders }) => {
      for (const order of orders) follow(order);
    },
  };
}

/** Takes a place of those that the worker has, if one is unused. */
function tryHold(quota: Quota): boolean {
  if (quota.held >= quota.granted) return false;
  quota.held += 1;
  return true;
}
