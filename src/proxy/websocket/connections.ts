import { setImmediate as nextTurn } from 'node:timers/promises';
import { denial, type Denial } from '../../decision/denial.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { closeCauses } from '../../decision/websocket/close-codes.js';
import type { Clock, Timers } from '../../ports/system.js';
import type { Metrics } from '../../ports/observability.js';
import type { ActiveConfig } from '../auth/active-config.js';
import { holderOf, type Slot, type Slots } from '../exchange/concurrency.js';
import { WebSocket, type Handshake, type WebSocketHost } from './connection.js';

interface WebSocketsDeps {
  /** What is in force now. */
  readonly activeConfig: () => ActiveConfig;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly metrics: Pick<Metrics, 'webSocketClosed'>;
  readonly slots: Slots;
  readonly idleTimeoutMs: number;
}

/** The WebSocket connections of a server. */
export interface WebSockets {
  /**
   * Takes a place for one, at once unless other processes have to be asked. Refuses with `websocket_handshake`,
   * `overloaded` and `shutting_down`.
   */
  readonly take: (handshake: Handshake, onTaken: (taken: Result<WebSocket, Denial>) => void) => void;
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
  function openWith(place: Slot | null, handshake: Handshake): Result<WebSocket, Denial> {
    if (place === null) return refuse(denial('overloaded'));
    if (isDraining) {
      place();
      return refuse(denial('shutting_down'));
    }
    const webSocket = new WebSocket(handshake, host);
    places.set(webSocket, place);
    return accept(webSocket);
  }

  return {
    take: (handshake, onTaken) => {
      if (handshake.upgrade === null) {
        onTaken(refuse(denial('websocket_handshake')));
        return;
      }
      if (isDraining) {
        onTaken(refuse(denial('shutting_down')));
        return;
      }
      const place = deps.slots.take(holderOf(handshake.admission));
      if (!(place instanceof Promise)) onTaken(openWith(place, handshake));
      else place.then((settled) => onTaken(openWith(settled, handshake))).catch(handshake.client.fail);
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
