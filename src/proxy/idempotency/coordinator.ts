import { denial } from '../../decision/denial.js';
import type { Clock, Log, Timers } from '../../ports/system.js';
import type { ReservationParts } from '../../ports/idempotency.js';
import type { UpstreamOperation } from '../upstream/pool/pool.js';
import { ReservedWrite, type ReservedRequest, type ReservedWriteDeps } from './reserved-write.js';
import { createPendingWrites } from './pending-limit.js';
import { createSettlements } from './settlement-queue.js';
import { createBufferBudget } from './body-buffer.js';

/** Bodies of reserved requests that are held at once, together. */
export const maxBufferedBytes = 256 * 1024 * 1024;

/** All reserved requests of a server. */
export interface ReservedWrites {
  readonly start: (request: ReservedRequest) => UpstreamOperation;
  /** Single-use tokens issued before are refused; seconds since the epoch. */
  readonly floorS: () => number | null;
  /** Requests that are not over, with or without their caller. */
  readonly active: () => number;
  /** Settles when nothing is under way any more, or that time is up; milliseconds. */
  readonly idle: (withinMs: number) => Promise<void>;
  /** Ends what is under way, and whatever comes: a write without a response is in doubt from then on. */
  readonly abortAll: () => void;
  /** The end of a drain: ends what is streamed still, of which nothing is left to settle. */
  readonly cutOff: () => void;
  /**
   * How long a drain of `graceMs` goes on before it calls `abortAll`, milliseconds: what is left is enough to tell the
   * store, and once more where that fails.
   */
  readonly lastSettlingMs: (graceMs: number) => number;
  /** Settles what is left, once more. */
  readonly close: () => Promise<void>;
}

const noOperation: UpstreamOperation = { resume: () => undefined, cancel: () => undefined };

/** What of the process the reserved requests of a server use. */
interface ReservedWritesDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
}

export function createReservedWrites(
  parts: ReservationParts,
  { clock, timers, log }: ReservedWritesDeps,
): ReservedWrites {
  const { store, metrics } = parts;
  const pending = createPendingWrites();
  const settlements = createSettlements({ store, clock, timers, log, metrics });
  const deps: ReservedWriteDeps = {
    ...parts,
    clock,
    timers,
    settlements,
    budget: createBufferBudget(maxBufferedBytes),
  };
  const writes = new Set<ReservedWrite>();
  const onIdle = new Set<() => void>();
  let isAborted = false;

  return {
    start: (request) => {
      const leavePending = isAborted ? null : pending.enter(request.preparation.scope);
      if (leavePending === null) {
        request.client.refuse(denial(isAborted ? 'shutting_down' : 'too_many_pending'));
        request.onOver();
        return noOperation;
      }
      const write = new ReservedWrite(deps, request, (ended) => {
        leavePending();
        writes.delete(ended);
        if (writes.size === 0) tellIdle();
        request.onOver();
      });
      writes.add(write);
      write.start();
      return write;
    },
    floorS: store.issuedBeforeFloorS,
    active: () => writes.size,
    idle: (withinMs) =>
      new Promise((resolve) => {
        if (writes.size === 0) {
          resolve();
          return;
        }
        const end = (): void => {
          callOff();
          onIdle.delete(end);
          resolve();
        };
        const callOff = timers.after(withinMs, end);
        onIdle.add(end);
      }),
    abortAll: () => {
      isAborted = true;
      for (const write of writes) write.abort();
    },
    cutOff: () => {
      for (const write of writes) write.cutOff();
    },
    lastSettlingMs: (graceMs) => Math.max(graceMs / 2, graceMs - 2 * parts.settleTimeoutMs),
    close: settlements.close,
  };

  function tellIdle(): void {
    for (const end of onIdle) end();
  }
}
