import { setImmediate as nextTurn } from 'node:timers/promises';
import { denial, type Denial } from '../../decision/denial.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { closeCauses } from '../../decision/websocket/close-codes.js';
import type { Clock, Timers } from '../../ports/system.js';
import type { Metrics } from '../../ports/observability.js';
import type { ActiveConfig } from '../auth/active-config.js';
import { createSlots, holderOf, type Slot } from '../exchange/concurrency.js';
import { WebSocket, type Handshake, type WebSocketHost } from './connection.js';

interface WebSocketsDeps {
  /** What is in force now. */
  readonly activeConfig: () => ActiveConfig;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly metrics: Pick<Metrics, 'webSocketClosed'>;
  readonly max: number;
  readonly idleTimeoutMs: number;
}

/** The WebSocket connections of a server. */
export interface WebSockets {
  /** Takes a place for one. Refuses with `websocket_handshake`, `overloaded` and `shutting_down`. */
  readonly take: (handshake: Handshake) => Result<WebSocket, Denial>;
  /** How many are open. */
  readonly count: () => number;
  /** What is in force has changed: those that it no longer allows are closed. */
  readonly reauthorize: () => Promise<void>;
  /** Opens no more, and closes all. */
  readonly drain: () => void;
}

/** Judged in one turn of the event loop: a millisecond or two, so that nobody has to wait for all of them. */
const judgedAtOnce = 32;

export function createWebSockets(deps: WebSocketsDeps): WebSockets {
  const slots = createSlots(deps.max);
  const open = new Set<WebSocket>();
  const places = new Map<WebSocket, Slot>();
  let isDraining = false;
  const host: WebSocketHost = {
    ...deps,
    isDraining: () => isDraining,
    onOpened: (webSocket) => {
      open.add(webSocket);
    },
    onClosed: (webSocket, cause) => {
      open.delete(webSocket);
      places.get(webSocket)?.();
      places.delete(webSocket);
      if (cause !== null) deps.metrics.webSocketClosed(cause.as);
    },
  };
  return {
    take: (handshake) => {
      if (handshake.upgrade === null) return refuse(denial('websocket_handshake'));
      if (isDraining) return refuse(denial('shutting_down'));
      const place = slots.take(holderOf(handshake.admission));
      if (place === null) return refuse(denial('overloaded'));
      const webSocket = new WebSocket(handshake, host);
      places.set(webSocket, place);
      return accept(webSocket);
    },
    count: () => open.size,
    reauthorize: async () => {
      let judged = 0;
      for (const webSocket of [...open]) {
        webSocket.reauthorize();
        judged += 1;
        if (judged % judgedAtOnce === 0) await nextTurn();
      }
    },
    drain: () => {
      isDraining = true;
      for (const webSocket of open) webSocket.close(closeCauses.shutdown);
    },
  };
}
