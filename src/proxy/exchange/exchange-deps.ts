import type { Tracer } from '../../ports/tracing.js';
import type { Log } from '../../ports/system.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { ReservedWrites } from '../idempotency/coordinator.js';
import type { BodyTimeouts } from '../inbound/request-body.js';
import type { WebSockets } from '../websocket/connections.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import type { Admission } from '../auth/authorize-request.js';
import type { Plan } from '../idempotency/plan-reservation.js';
import type { Recorder } from './access-log-record.js';
import type { AcquireLease } from './admission-control.js';
import type { GrpcCalls } from './grpc-calls.js';
import type { KnownAddresses } from './known-addresses.js';

/** Says what becomes of a request that was admitted: where it is forwarded, or where it is asked about. */
export type PlanAdmitted = (admission: Admission, activeConfig: ActiveConfig, head: RequestHead) => Plan;

/** What every exchange of a server works with. */
export interface ExchangeDeps extends Recorder {
  /** What is in force now; asked once for each request, when it is decided. */
  readonly activeConfig: () => ActiveConfig;
  readonly log: Log;
  /** `null` where nothing is traced. */
  readonly tracer: Tracer | null;
  readonly acquire: AcquireLease;
  readonly knownAddresses: KnownAddresses;
  /** Says what becomes of a request that was admitted. */
  readonly plan: PlanAdmitted;
  /** `null` where there is no store. */
  readonly reserving: ReservedWrites | null;
  readonly webSockets: WebSockets;
  readonly grpcCalls: GrpcCalls;
  readonly bodyTimeouts: BodyTimeouts;
  /** What a 401 asks for: names and values of headers in turn. */
  readonly challenges: () => readonly string[];
  /** Told how many headers the head of a response of HTTP/2 has. */
  readonly onHeaders: (count: number) => void;
  /** Whether every response closes its connection. */
  readonly isShuttingDown: () => boolean;
}
