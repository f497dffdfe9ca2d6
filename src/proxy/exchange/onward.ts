import type { RequestHead } from '../../decision/http/request-head.js';
import type { Caller } from './caller.js';
import type { Course } from './request-timing.js';
import type { Arrival, ExchangeDeps } from './exchange-deps.js';
import { Forward } from './stream-response.js';
import type { InForce } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';
import type { Slot } from './concurrency.js';
import type { Switchable } from '../websocket/upgrade-request.js';
import type { WebSocket } from '../websocket/connection.js';

/** An admitted request, and who is to hear of it. */
export interface Admitted {
  readonly arrival: Arrival;
  readonly head: RequestHead;
  readonly inForce: InForce;
  readonly deps: ExchangeDeps;
  readonly caller: Caller;
  readonly answer: Switchable;
  readonly course: Course;
  readonly seat: Slot | null;
}

/**
 * How it goes to the receiver: as a request or, where it asks for that, as the opening handshake of a WebSocket
 * connection; `null` where there is no place for one, and the caller was told so.
 */
export function onwardOf(admission: Admission, admitted: Admitted): Forward | WebSocket | null {
  const {
    arrival: {
      connection: { peer },
      upgrade,
    },
    head,
    inForce,
    deps,
    caller,
    answer,
    course,
    seat,
  } = admitted;
  if (admission.fields.upgrade === null) return new Forward(admission, inForce, caller);
  const taken = deps.webSockets.take({ admission, head, peer, inForce, upgrade, answer, caller, course, seat });
  if (taken.ok) return taken.value;
  caller.refuse(taken.error);
  return null;
}
