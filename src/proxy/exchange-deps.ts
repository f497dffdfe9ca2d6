import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../ports.js';
import type { CallerConnection } from './caller-connection.js';
import type { InForce } from './in-force.js';
import type { Recorder } from './request-record.js';
import type { Reserving } from './reserving/reserving.js';
import type { Slots } from './slots.js';

/** What every exchange of a server works with. */
export interface ExchangeDeps extends Recorder {
  readonly inForce: () => InForce;
  readonly log: Log;
  readonly slots: Slots;
  /** `null` where there is no store. */
  readonly reserving: Reserving | null;
  readonly bodyIdleTimeoutMs: number;
  /** Whether every answer closes its connection. */
  readonly isShuttingDown: () => boolean;
}

/** A request as Node hands it over. */
export interface Arrival {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly connection: CallerConnection;
}
