import type { Lane } from './node-connection.js';

/** Lends lanes to one user at a time: what waits for replicas blocks its connection. */
export interface LanePool {
  /** `null` where none came free in time: then nothing was sent. */
  readonly take: (limitMs: number) => Promise<Lane | null>;
  readonly give: (lane: Lane) => void;
  /** Lends what has become usable to those who wait. */
  readonly offer: () => void;
  readonly lanes: () => readonly Lane[];
  readonly close: () => void;
}

interface Waiter {
  readonly settle: (lane: Lane | null) => void;
}

/** Lanes that are opened at once, and the most that there are: each is a connection that the server holds. */
const firstLanes = 4;
const mostLanes = 16;

export function createLanePool(open: () => Lane, isUsable: (lane: Lane) => boolean): LanePool {
  const lanes = Array.from({ length: firstLanes }, open);
  const lent = new Set<Lane>();
  const waiters = new Set<Waiter>();

  return {
    take: async (limitMs) => {
      const lane = free();
      if (lane !== undefined) {
        lent.add(lane);
        return lane;
      }
      if (lanes.length < mostLanes) lanes.push(open());
      return wait(limitMs);
    },
    give: (lane) => {
      lent.delete(lane);
      offer();
    },
    offer,
    lanes: () => lanes,
    close: () => {
      for (const waiter of waiters) waiter.settle(null);
      for (const lane of lanes) lane.close();
    },
  };

  function free(): Lane | undefined {
    return lanes.find((lane) => !lent.has(lane) && isUsable(lane));
  }

  function wait(limitMs: number): Promise<Lane | null> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => waiter.settle(null), limitMs);
      const waiter: Waiter = {
        settle: (lane) => {
          clearTimeout(timer);
          waiters.delete(waiter);
          resolve(lane);
        },
      };
      waiters.add(waiter);
    });
  }

  function offer(): void {
    for (const waiter of waiters) {
      const lane = free();
      if (lane === undefined) return;
      lent.add(lane);
      waiter.settle(lane);
    }
  }
}
