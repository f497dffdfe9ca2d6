import { denial } from '../../decision/denial.js';
import { reauthorizeInTurns } from '../exchange/reauthorization.js';
import { takeSettled } from '../maybe-promise.js';
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
   * Takes a place for one, at once unless other processes have to be asked. Refuses the client's request with
   * `websocket_handshake`, `overloaded` and `shutting_down`.
   */
  readonly take: (handshake: Handshake, onTaken: (webSocket: WebSocket) => void) => void;
  /** How many are open. */
  readonly count: () => number;
  /** What is in force has changed: those that it no longer allows are closed. */
  readonly reauthorize: () => Promise<void>;
  /** Opens no more, and closes all. */
  readonly drain: () => void;
}

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
  function openWith(place: Slot | null, handshake: Handshake): WebSocket | null {
    const { client } = handshake;
    if (place === null) {
      client.refuse(denial('overloaded'));
      return null;
    }
    // The client left, or a shutdown came, while other processes were asked for the place.
    if (client.isGone() || isDraining) {
      place();
      client.refuse(denial('shutting_down'));
      return null;
    }
    const webSocket = new WebSocket(handshake, host);
    places.set(webSocket, place);
    return webSocket;
  }

  return {
    take: (handshake, onTaken) => {
      const { client, upgrade, admission } = handshake;
      if (upgrade === null || isDraining) {
        client.refuse(denial(upgrade === null ? 'websocket_handshake' : 'shutting_down'));
        return;
      }
      takeSettled(
        deps.slots.take(holderOf(admission)),
        (place) => {
          const webSocket = openWith(place, handshake);
          if (webSocket !== null) onTaken(webSocket);
        },
        client.fail,
      );
    },
    count: () => open.size,
    reauthorize: () => reauthorizeInTurns(open, (webSocket) => webSocket.reauthorize()),
    drain: () => {
      isDraining = true;
      for (const webSocket of open) webSocket.close(closeCauses.shutdown);
    },
  };
}
