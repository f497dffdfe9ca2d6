/** What requests and the process are told of in the log, metrics and status: types only. */
import type { Reason, FailureReason } from '../decision/denial.js';
import type { Form } from '../decision/decide/forms.js';
import type { AttemptsMade } from '../decision/egress/attempts.js';
import type { StrippedHeaders } from '../decision/http/stripped-headers.js';
import type { ConnectionEnding } from '../decision/limits/idle-connections.js';
import type { CloseCauseLabel } from '../decision/websocket/close-codes.js';
import type { CertificateState } from '../lib/certificate-validity.js';
import type { KeyLookup } from './auth.js';
import type { TokenSourceStatus } from './tokens.js';
import type { Exemplar } from './tracing.js';

/** One line at the end of each request. Never a token, key, cookie, body or query string. */
export interface RequestRecord {
  readonly request_id: string;
  /** Name of the route, or `none`. */
  readonly route: string;
  readonly method: string;
  /** Without the query; at most 8 KiB; as it came. */
  readonly path: string;
  readonly decision: Outcome;
  readonly reason: Reason | null;
  readonly kind: 'service' | 'session' | null;
  readonly issuer: string | null;
  readonly subject: string | null;
  readonly key_id: string | null;
  /** What the caller was sent; 0 where nothing was. */
  readonly status: number;
  readonly duration_ms: number;
  /** From dispatch to the end of the response; `null` when the upstream was not asked. */
  readonly upstream_ms: number | null;
  /** The reservation's id, where there is one. */
  readonly record: string | null;
  /** Of the trace that the upstream was told of, or that the caller named; `null` where there is none. */
  readonly trace_id: string | null;
  /** Of our own span, where the request is traced. */
  readonly span_id?: string;
  /** What the caller spoke. */
  readonly protocol: Protocol;
  /**
   * How a gRPC call ended, 0 to 16, by what its caller was sent: by us or by the upstream. `null` where that is not a
   * gRPC call, or it ended before its status.
   */
  readonly grpc_status: number | null;
  /** The client's; `null` where its socket has none. */
  readonly client_address: string | null;
  /** As it came, whatever it holds. */
  readonly user_agent: string | null;
  /** The name of the certificate that the caller showed, verified; where it showed one. */
  readonly client_certificate?: string;
  /** On routes in shadow mode: the permissions of a verified token; `null` where they are not known. */
  readonly permissions?: readonly string[] | null;
  /** On them, and where a request ended for want of some: those that the credential lacks, or claims of a session. */
  readonly missing_permissions?: readonly string[] | null;
  /** On the calling side: how often it was sent. */
  readonly attempts?: number;
  /** There: why it was not sent once more although it failed. */
  readonly not_retried?: AttemptsMade['notRetried'];
  /** Which proxy asked, where it forwards the request itself. */
  readonly asked_by?: Form;
}

/** Versions of HTTP that callers speak, as the log names them. */
export type Protocol = 'HTTP/1.1' | 'HTTP/1.0' | 'HTTP/2';

/** How a request ended, as `sallyport_requests_total` counts it. */
export type Outcome = 'forwarded' | 'replayed' | 'denied' | 'failed' | 'shadow';

/** How an attempt to get keys ended. `empty`: with a good set in which no key counts. */
export type JwksRefreshResult = 'ok' | 'empty' | 'failed';

/** How an attempt to get an issuer's metadata ended. `refused`: with a document that is not taken. */
export type DiscoveryRefreshResult = 'ok' | 'failed' | 'refused';

/** How a question about an opaque token ended. `refused`: the issuer does not know this proxy. */
export type IntrospectionResult = 'active' | 'inactive' | 'refused' | 'failed';

/**
 * What became of the look-up of an opaque token. `joined`: the issuer was being asked about it already. `limited`: too
 * many unknown tokens. `open`: the issuer did not answer lately.
 */
export type IntrospectionLookup = 'remembered' | 'asked' | 'joined' | 'limited' | 'open';

/** Connections that are open, and what is under way on them. */
export interface OpenConnections {
  readonly connections: number;
  /** Requests that are not answered yet; of HTTP/2, each is a stream. WebSocket connections count as one. */
  readonly requests: number;
}

/** Client connections by what they speak; those of which that is not known yet are in neither. */
export interface ConnectionsByProtocol {
  readonly http1: OpenConnections;
  readonly http2: OpenConnections;
}

/** Connections to the upstream of the config in force. */
export interface UpstreamConnections extends OpenConnections {
  readonly isHttp2: boolean;
  /** Requests that wait for a connection, or for a stream of one. */
  readonly waiting: number;
}

/** Counts and measures. */
export interface Metrics {
  /**
   * `status` is what the caller was sent, 0 where nothing was; `overheadMs` is the time spent here, without the
   * upstream.
   *
   * @param exemplar of the request, where it is traced.
   */
  readonly request: (
    route: string,
    outcome: Outcome,
    status: number,
    durationMs: number,
    overheadMs: number,
    exemplar?: Exemplar,
  ) => void;
  /** A proxy asked about a request. */
  readonly decided: (form: Form, outcome: Outcome) => void;
  /** A request that was refused. */
  readonly denial: (route: string, reason: Reason) => void;
  /** A request that something broke, here or at either end. */
  readonly failure: (route: string, reason: FailureReason) => void;
  /** A request that went on in shadow mode and would have been refused. */
  readonly shadowDenial: (route: string, reason: Reason) => void;
  /** A gRPC call ended; `status` is 0 to 16. */
  readonly grpcCall: (route: string, status: number) => void;
  readonly strippedHeaders: (stripped: StrippedHeaders) => void;
  readonly jwksRefresh: (issuer: string, result: JwksRefreshResult) => void;
  readonly discoveryRefresh: (issuer: string, result: DiscoveryRefreshResult) => void;
  /** A request waited for a key, or found no place to wait. */
  readonly jwksWait: (issuer: string, result: KeyLookup['kind']) => void;
  /** The issuer was asked about an opaque token. */
  readonly introspection: (issuer: string, result: IntrospectionResult) => void;
  /** An opaque token was looked up: whether the issuer had to be asked, or was not asked though nothing is known. */
  readonly introspectionLookup: (issuer: string, result: IntrospectionLookup) => void;
  readonly configReload: (result: 'ok' | 'failed') => void;
  readonly webSocketClosed: (ending: CloseCauseLabel) => void;
  /** A client connection was ended, since there were too many or too much waited on it. */
  readonly connectionEnded: (ending: ConnectionEnding) => void;
}

/** What was counted of one route since it came; a rate is the difference of two of them. */
export interface RouteTraffic {
  /** Name of the route, or `none`. */
  readonly route: string;
  readonly requests: Readonly<Record<Outcome, number>>;
  /** By reason; those that did not occur are left out. */
  readonly denials: Readonly<Partial<Record<Reason, number>>>;
  readonly failures: Readonly<Partial<Record<Reason, number>>>;
  readonly shadow_denials: Readonly<Partial<Record<Reason, number>>>;
  /** How many took at most so many seconds as `Traffic.duration_bounds` says; the last number counts them all. */
  readonly duration: readonly number[];
  /** Likewise the time spent here, without the upstream, by `Traffic.overhead_bounds`. */
  readonly overhead: readonly number[];
}

/** What was counted of requests. Bounds are seconds, rising. */
export interface Traffic {
  readonly duration_bounds: readonly number[];
  readonly overhead_bounds: readonly number[];
  readonly routes: readonly RouteTraffic[];
}

/**
 * Certificates whose end somebody has to see coming: what callers are shown, who vouches for callers, upstream and
 * store, and what an issuer, by its name in the config, is shown by whoever asks about tokens (RFC 8705 §2).
 */
export type CertificateName =
  'listener' | 'client_ca' | 'upstream_ca' | 'store_ca' | `introspection:${string}` | `target:${string}`;

/** How it stands with a certificate in use, for the log, `/status` and metrics. */
export interface CertificateStatus {
  readonly certificate: CertificateName;
  /** RFC 3339. */
  readonly validFrom: string;
  readonly validTo: string;
  /** The same, in seconds since the epoch. */
  readonly notBeforeS: number;
  readonly notAfterS: number;
  /** Whole days; below 0 once it has expired. */
  readonly daysLeft: number;
  readonly state: CertificateState;
}

/** How it stands with a listener on which a proxy asks for decisions, for `/status`. */
export interface DecideState {
  readonly form: Form;
  readonly trust: readonly string[];
  readonly connections: number;
  readonly inFlight: number;
}

/** How it stands with the calling side, for `/status` and metrics. */
export interface EgressState {
  /** Bytes of bodies that are held to be sent again. */
  readonly heldBytes: number;
  readonly targets: readonly EgressTargetState[];
  readonly tokens: readonly (TokenSourceStatus & { readonly name: string })[];
}

interface EgressTargetState {
  readonly name: string;
  readonly prefix: string;
  readonly url: string;
  /** Name of the token that its requests bear. */
  readonly token: string | null;
  readonly connections: number;
  /** Requests under way, and those that wait for a connection. */
  readonly active: number;
  readonly waiting: number;
}
