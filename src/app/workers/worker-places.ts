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
interface Allowance {
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
  readonly allowance: Allowance;
  /** `null` where nobody waits any more. */
  resolve: ((isGranted: boolean) => void) | null;
}

/** Finds what this worker has of a bound of one name. */
interface Allowances {
  readonly of: (holder: string | null) => Allowance;
  /** Forgets an allowance that has nothing under way and is what it is without a word from the primary. */
  readonly settle: (allowance: Allowance) => void;
}

export function createWorkerPlaces({ send, timers, atTurnEnd }: WorkerPlacesDeps): WorkerPlaces {
  const bounds = new Map<string, Allowances>();
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
  function askFor(allowance: Allowance): Promise<boolean> {
    last += 1;
    const id = last;
    allowance.asked += 1;
    outgoing.asks.push({ id, bound: allowance.bound });
    sendSoon();
    return new Promise((resolve) => {
      asks.set(id, { allowance, resolve });
    });
  }

  function release(allowance: Allowance): void {
    allowance.held -= 1;
    if (allowance.isRecalled) {
      allowance.granted -= 1;
      const key = boundKey(allowance.bound);
      const returned = outgoing.back.get(key)?.count ?? 0;
      outgoing.back.set(key, { bound: allowance.bound, count: returned + 1 });
      sendSoon();
    }
    bounds.get(allowance.bound.name)?.settle(allowance);
  }

  function follow(order: PlaceOrder): void {
    if (order.kind === 'answer') {
      answer(order.id, order.isGranted);
      return;
    }
    const { bound } = order;
    const allowances = bounds.get(bound.name);
    if (allowances === undefined) return;
    const allowance = allowances.of(bound.holder);
    if (order.kind === 'recall') {
      outgoing.recalled.push({ bound, count: allowance.granted - allowance.held });
      allowance.granted = allowance.held;
      allowance.isRecalled = true;
      sendSoon();
    } else if (order.kind === 'grant') {
      allowance.granted += order.count;
      allowance.isRecalled = false;
      allowances.settle(allowance);
    } else {
      allowance.granted = 0;
      allowance.isRecalled = order.isRecalled;
    }
  }

  function answer(id: number, isGranted: boolean): void {
    const ask = asks.get(id);
    if (ask === undefined) return;
    asks.delete(id);
    const { allowance, resolve } = ask;
    allowance.asked -= 1;
    if (isGranted) {
      allowance.granted += 1;
      allowance.held += 1;
      if (resolve === null) release(allowance);
    } else bounds.get(allowance.bound.name)?.settle(allowance);
    resolve?.(isGranted);
  }

  return {
    slots: (name, max, share) => {
      const mostOf = slotsOfHolder(max);
      const newAllowance = (holder: string | null, most: number): Allowance => {
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
      const all = newAllowance(null, max);
      const byHolder = new Map<string, Allowance>();
      const ofHolder = (holder: string): Allowance => {
        const known = byHolder.get(holder);
        if (known !== undefined) return known;
        const allowance = newAllowance(holder, mostOf(holder));
        byHolder.set(holder, allowance);
        return allowance;
      };
      const settle = ({ bound: { holder }, part, granted, held, isRecalled, asked }: Allowance): void => {
        if (holder !== null && held === 0 && asked === 0 && granted === part && !isRecalled) byHolder.delete(holder);
      };
      bounds.set(name, { of: (holder) => (holder === null ? all : ofHolder(holder)), settle });

      const hold = (own: Allowance | null): Slot =>
        slotOf(() => {
          if (own !== null) release(own);
          release(all);
        });
      /** The holder's first: who has all that it may have takes no place for a moment that others could have. */
      const askInTurn = async (own: Allowance | null): Promise<Slot | null> => {
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
function tryHold(allowance: Allowance): boolean {
  if (allowance.held >= allowance.granted) return false;
  allowance.held += 1;
  return true;
}
