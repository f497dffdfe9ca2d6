import type { Readable } from 'node:stream';
import { denial } from '../../decision/denial.js';
import type { Clock, Log, ReservationParts } from '../../ports.js';
import { createPending } from './pending.js';
import { ReservedRun, type ReservedCaller, type ReservedInput } from './reserved-run.js';
import { createSettlements } from './settlements.js';
import { createBufferBudget, readWhole } from './whole-body.js';

/** Bodies of reserved requests that are held at once, together. */
const maxBufferedBytes = 256 * 1024 * 1024;

/** A request that reserves before it is forwarded. */
export interface ReservedOrder {
  /** What is known before the body is. */
  readonly input: Omit<ReservedInput, 'body'>;
  /** `null` where the request has none. It tells by itself when it breaks. */
  readonly body: Readable | null;
  readonly caller: ReservedCaller;
  readonly onBug: (error: unknown) => void;
  /** Called once, when nothing of it is left here: it may be long after the caller left. */
  readonly onOver: () => void;
}

/** An order under way. */
export interface ReservedHandle {
  /** Lets a streamed answer go on. */
  readonly resume: () => void;
  /** The caller left, or was answered otherwise. What was dispatched goes on. */
  readonly leave: () => void;
}

/** All reserved requests of a server. */
export interface Reserving {
  readonly start: (order: ReservedOrder) => ReservedHandle;
  /** Single-use tokens issued before are refused; seconds since the epoch. */
  readonly floorS: () => number | null;
  /** Requests whose run is not over, with or without their caller. */
  readonly active: () => number;
  /** Settles when nothing is under way any more. */
  readonly idle: () => Promise<void>;
  /** Ends what is under way: a write without an answer is in doubt from then on. */
  readonly breakOff: () => void;
  /** Settles what is left, once more. */
  readonly close: () => Promise<void>;
}

export function createReserving(parts: ReservationParts, { clock, log }: { readonly clock: Clock; readonly log: Log }): Reserving {
  const { store, metrics } = parts;
  const pending = createPending();
  const budget = createBufferBudget(maxBufferedBytes);
  const settlements = createSettlements({ store, clock, log, metrics });
  const runs = new Set<ReservedRun>();
  let onIdle: (() => void)[] = [];

  return {
    start: (order) => {
      const leavePending = pending.enter(order.input.preparation.scope.principal);
      if (leavePending === null) {
        order.caller.refuse(denial('too_many_pending'));
        order.onOver();
        return { resume: () => undefined, leave: () => undefined };
      }
      return startOrder(order, leavePending);
    },
    floorS: store.issuedBeforeFloorS,
    active: () => runs.size,
    idle: () => new Promise((resolve) => {
      if (runs.size === 0) resolve();
      else onIdle.push(resolve);
    }),
    breakOff: () => {
      for (const run of runs) run.breakOff();
    },
    close: settlements.close,
  };

  function startOrder(order: ReservedOrder, leavePending: () => void): ReservedHandle {
    let run: ReservedRun | null = null;
    let giveBody = (): void => undefined;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      giveBody();
      leavePending();
      order.onOver();
      if (run === null || !runs.delete(run) || runs.size > 0) return;
      for (const resolve of onIdle) resolve();
      onIdle = [];
    };
    const begin = (body: Buffer): void => {
      if (isOver) return;
      run = new ReservedRun({ ...parts, settlements, clock }, { ...order.input, body }, order.caller);
      runs.add(run);
      void run.done.then(over);
      run.start().catch((error: unknown) => {
        order.onBug(error);
        over();
      });
    };
    if (order.body === null) begin(Buffer.alloc(0));
    else {
      giveBody = readWhole(order.body, budget, {
        onWhole: begin,
        onOverload: () => {
          order.caller.refuse(denial('overloaded'));
          over();
        },
      });
    }
    return {
      resume: () => run?.resume(),
      leave: () => {
        if (run === null) over();
        else run.callerGone();
      },
    };
  }
}
