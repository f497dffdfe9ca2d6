import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../../ports/system.js';
import type { CallerConnection } from '../inbound/client-connection.js';
import type { InForce } from '../auth/active-config.js';
import type { BodyPace } from '../inbound/request-body.js';
import type { Recorder } from './access-log-record.js';
import type { Reserving } from '../idempotency/coordinator.js';
import type { Entrance } from './admission-control.js';
import type { Upgrade } from '../websocket/upgrade-request.js';
import type { WebSockets } from '../websocket/connections.js';

/** What every exchange of a server works with. */
export interface ExchangeDeps extends Recorder {
  readonly inForce: () => InForce;
  readonly log: Log;
  readonly enter: Entrance;
  /** `null` where there is no store. */
  readonly reserving: Reserving | null;
  readonly webSockets: WebSockets;
  readonly bodyPace: BodyPace;
  /** Whether every answer closes its connection. */
  readonly isShuttingDown: () => boolean;
}

/** A request as Node hands it over. */
export interface Arrival {
  readonly req: IncomingMessage & {
    /** The target as it came. */
    readonly originalUrl: string | undefined;
    /** Whether more than the head is sent. */
    readonly comesWithBody: () => boolean;
  };
  readonly res: ServerResponse;
  readonly connection: CallerConnection;
  /** Where it asks for another protocol, and Node has left its connection to us. */
  readonly upgrade: Upgrade | null;
}

/**
 * - `waiting`: for the requests before it on its connection
 * - `judging`: no answer yet whether it may go on
 * - `admitted`: it may, and has a slot
 * - `onward`: it is on its way to the receiver, or already there
 * - `answering`: the caller gets the receiver's answer
 * - `answered`: the caller was given the whole answer, or the last of what it gets
 * - `over`: recorded
 */
export type Phase = 'waiting' | 'judging' | 'admitted' | 'onward' | 'answering' | 'answered' | 'over';
