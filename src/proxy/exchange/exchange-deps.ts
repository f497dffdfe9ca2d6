import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../../ports/system.js';
import type { CallerConnection } from '../inbound/client-connection.js';
import type { InForce } from '../auth/active-config.js';
import type { BodyPace } from '../inbound/request-body.js';
import type { Recorder } from './access-log-record.js';
import type { ReservedWrites } from '../idempotency/coordinator.js';
import type { AcquireLease } from './admission-control.js';
import type { Upgrade } from '../websocket/upgrade-request.js';
import type { WebSockets } from '../websocket/connections.js';

/** What every exchange of a server works with. */
export interface ExchangeDeps extends Recorder {
  /** What is in force now; asked once for each request, when it is decided. */
  readonly inForce: () => InForce;
  readonly log: Log;
  readonly acquire: AcquireLease;
  /** `null` where there is no store. */
  readonly reserving: ReservedWrites | null;
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

/** A response that is complete before any of it is sent. */
export interface WholeResponse {
  readonly status: number;
  /** Names and values in turn. */
  readonly fields: string[];
  readonly body: Buffer;
  /** Whether it was kept from an earlier request. */
  readonly isReplayed: boolean;
}
