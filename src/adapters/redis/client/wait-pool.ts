import type { NodeConnection } from './node-connection.js';

/** Lends connections to one user at a time: what waits for replicas blocks its connection. */
export interface WaitPool {
  /** `null` where none came free in time: then nothing was sent. */
  readonly take: (limitMs: number) => Promise<NodeConnection | null>;
  readonly give: (connection: NodeConnection) => void;
  /** Lends what has become usable to those who wait. */
  readonly offer: () => void;
  readonly connections: () => readonly NodeConnection[];
  readonly close: () => void;
}

interface Waiter {
  readonly settle: (connection: NodeConnection | null) => void;
}

/** Connections that are opened at once, and the most that there are: each is a connection that the server holds. */
const firstConnections = 4;
const mostConnections = 16;

export function createWaitPool(
  open: () => NodeConnection,
  isUsable: (connection: NodeConnection) => boolean,
): WaitPool {
  const connections = Array.from({ length: firstConnections }, open);
  const lent = new Set<NodeConnection>();
  const waiters = new Set<Waiter>();

  return {
    take: async (limitMs) => {
      const connection = free();
      if (connection !== undefined) {
        lent.add(connection);
        return connection;
      }
      if (connections.length < mostConnections) connections.push(open());
      return wait(limitMs);
    },
    give: (connection) => {
      lent.delete(connection);
      offer();
    },
    offer,
    connections: () => connections,
    close: () => {
      for (const waiter of waiters) waiter.settle(null);
      for (const connection of connections) connection.close();
    },
  };

  function free(): NodeConnection | undefined {
    return connections.find((connection) => !lent.has(connection) && isUsable(connection));
  }

  function wait(limitMs: number): Promise<NodeConnection | null> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => waiter.settle(null), limitMs);
      const waiter: Waiter = {
        settle: (connection) => {
          clearTimeout(timer);
          waiters.delete(waiter);
          resolve(connection);
        },
      };
      waiters.add(waiter);
    });
  }

  function offer(): void {
    for (const waiter of waiters) {
      const connection = free();
      if (connection === undefined) return;
      lent.add(connection);
      waiter.settle(connection);
    }
  }
}
