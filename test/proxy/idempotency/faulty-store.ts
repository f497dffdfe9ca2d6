import { refuse, type Result } from '../../../src/lib/result.js';
import type { ReservationStore, StoreFailure, StoreOperation } from '../../../src/ports/idempotency.js';

/** What the inner store would answer, or does once it is asked. */
type Run = () => Promise<Result<unknown, StoreFailure>>;

/** Takes the place of one operation: it may run the real one, before, after or not at all. */
export type Fault = (run: Run) => Promise<Result<unknown, StoreFailure>>;

/** A store that misbehaves on command. */
export interface FaultyStore {
  readonly store: ReservationStore;
  /** Operations asked for, in order. */
  readonly calls: StoreOperation[];
  readonly callsOf: (operation: StoreOperation) => number;
  /** From now on the operation behaves so; `null` is as it should be. */
  readonly behave: (operation: StoreOperation, fault: Fault | null) => void;
  /** Everything behaves so. */
  readonly behaveAll: (fault: Fault | null) => void;
  /** Says that the store failed over; what it forgot then is up to the test. */
  readonly failOver: () => void;
  floorS: number | null;
}

const operations: readonly StoreOperation[] = ['reserve', 'complete', 'release', 'mark'];

/** Not reached: nothing was written. */
export const down: Fault = async () => refuse({ kind: 'unreachable', reason: 'out of reach', mayHaveRun: false });

/** Written, but the answer was lost. */
export const answerLost: Fault = async (run) => {
  await run();
  return timedOut;
};

/** Sent, and lost on its way. */
export const commandLost: Fault = async () => timedOut;

const timedOut = refuse<StoreFailure>({ kind: 'timeout', reason: 'no answer in time', mayHaveRun: true });

/** A fault that stops each call, before it runs, until `open`. */
export interface Gate {
  readonly fault: Fault;
  /** Calls that stand before it. */
  readonly waiting: () => number;
  readonly open: () => void;
}

export function gate(): Gate {
  let waiting = 0;
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    fault: async (run) => {
      waiting += 1;
      await opened;
      waiting -= 1;
      return run();
    },
    waiting: () => waiting,
    open,
  };
}

export function createFaultyStore(inner: ReservationStore): FaultyStore {
  const calls: StoreOperation[] = [];
  const faults = new Map<StoreOperation, Fault>();
  const through = <T>(
    operation: StoreOperation,
    run: () => Promise<Result<T, StoreFailure>>,
  ): Promise<Result<T, StoreFailure>> => {
    calls.push(operation);
    const fault = faults.get(operation);
    // A fault answers with what the operation answered, or with a failure.
    return fault === undefined ? run() : (fault(run) as Promise<Result<T, StoreFailure>>);
  };
  const behave = (operation: StoreOperation, fault: Fault | null): void => {
    if (fault === null) faults.delete(operation);
    else faults.set(operation, fault);
  };
  const listeners: (() => void)[] = [];
  const faulty: FaultyStore = {
    store: {
      ...inner,
      onFailover: (listener) => {
        listeners.push(listener);
      },
      reserve: (scope, command) => through('reserve', () => inner.reserve(scope, command)),
      complete: (scope, command) => through('complete', () => inner.complete(scope, command)),
      release: (scope, command) => through('release', () => inner.release(scope, command)),
      mark: (scope, command) => through('mark', () => inner.mark(scope, command)),
      issuedBeforeFloorS: () => faulty.floorS,
    },
    calls,
    callsOf: (operation) => calls.filter((call) => call === operation).length,
    behave,
    behaveAll: (fault) => {
      for (const operation of operations) behave(operation, fault);
    },
    failOver: () => {
      for (const listener of listeners) listener();
    },
    floorS: null,
  };
  return faulty;
}
