import { denial } from '../../decision/denial.js';
import type { Clock, Log, Timers } from '../../ports/system.js';
import type { ReservationParts } from '../../ports/idempotency.js';
import type { UpstreamOperation } from '../upstream/pool/pool.js';
import { Order, type OrderDeps, type ReservedOrder } from './order.js';
import { createPending } from './pending-limit.js';
import { createSettlements } from './settlement-queue.js';
import { createBufferBudget } from './body-buffer.js';

/** Bodies of reserved requests that are held at once, together. */
export const maxBufferedBytes = 256 * 1024 * 1024;

/** All reserved requests of a server. */
export interface Reserving {
  readonly start: (order: ReservedOrder) => UpstreamOperation;
  /** Single-use tokens issued before are refused; seconds since the epoch. */
  readonly floorS: () => number | null;
  /** Requests that are not over, with or without their caller. */
  readonly active: () => number;
  /** Settles when nothing is under way any more. */
  readonly idle: () => Promise<void>;
  /** Ends what is under way, and whatever comes: a write without an answer is in doubt from then on. */
  readonly breakOff: () => void;
  /** Settles what is left, once more. */
  readonly close: () => Promise<void>;
}

const noOperation: UpstreamOperation = { resume: () => undefined, cancel: () => undefined };

/** What of the process the reserved requests of a server use. */
export interface ReservingDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
}

export function createReserving(parts: ReservationParts, { clock, timers, log }: ReservingDeps): Reserving {
  const { store, metrics } = parts;
  const pending = createPending();
  const settlements = createSettlements({ store, clock, timers, log, metrics });
  const deps: OrderDeps = { ...parts, clock, timers, settlements, budget: createBufferBudget(maxBufferedBytes) };
  const orders = new Set<Order>();
  let onIdle: (() => void)[] = [];
  let isBrokenOff = false;

  return {
    start: (request) => {
      const leavePending = isBrokenOff ? null : pending.enter(request.preparation.scope);
      if (leavePending === null) {
        request.client.refuse(denial(isBrokenOff ? 'shutting_down' : 'too_many_pending'));
        request.onOver();
        return noOperation;
      }
      const order = new Order(deps, request, () => {
        leavePending();
        orders.delete(order);
        if (orders.size === 0) tellIdle();
      });
      orders.add(order);
      order.start();
      return order;
    },
    floorS: store.issuedBeforeFloorS,
    active: () => orders.size,
    idle: () =>
      new Promise((resolve) => {
        if (orders.size === 0) resolve();
        else onIdle.push(resolve);
      }),
    breakOff: () => {
      isBrokenOff = true;
      for (const order of orders) order.breakOff();
    },
    close: settlements.close,
  };

  function tellIdle(): void {
    for (const resolve of onIdle) resolve();
    onIdle = [];
  }
}
