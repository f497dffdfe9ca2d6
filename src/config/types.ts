import type { AssertionRules } from '../decision/token/assertion.js';
import type { IdentityHeaders, IssuerRules, Revocations, Route } from '../decision/route/policy.js';
import type { RouteTable } from '../decision/route/route-table.js';
import type { SessionCookie } from '../decision/session/headers.js';
import type { Unmatched } from '../decision/route/shadow-mode.js';
import type { Settings } from './load/setting-names.js';

/** A whole config in force: durations in milliseconds, sizes in bytes, everything checked. */
export interface CompiledConfig {
  /** SHA-256 of the file's bytes, hex: what `/status` and `sallyport_config_info` show. */
  readonly sha256: string;
  readonly listen: ListenSettings;
  readonly admin: HostPort;
  readonly probes: ProbesSettings | null;
  readonly upstream: UpstreamSettings;
  readonly issuers: readonly IssuerSettings[];
  /** Where sessions come from; `null` where no route accepts them. */
  readonly sessions: SessionSettings | null;
  readonly identity: IdentityHeaders;
  /** What verified tokens may take in memory; `null` where none is remembered. */
  readonly tokenCacheBytes: number | null;
  /** `null` where the receiver gets no signed assertion. */
  readonly assertion: AssertionSettings | null;
  /** Where reservations are kept; `null` where no route reserves. */
  readonly store: StoreSettings | null;
  readonly revoked: Revocations;
  readonly shutdown: { readonly delayMs: number; readonly graceMs: number };
  readonly log: LogSettings;
  readonly reload: ReloadSettings;
  readonly routes: readonly Route[];
  /** The routes, arranged for matching. */
  readonly table: RouteTable;
  /** How requests without a route go on, where the file's mode is shadow; `null` where they are refused. */
  readonly unmatched: Unmatched | null;
  /** The same, as the file says it: for telling two configs apart. Some values are secret. */
  readonly settings: Settings;
  /** What `check` would warn of; logged at start. */
  readonly warnings: readonly string[];
}

/** When an edit of the file counts. */
export interface ReloadSettings {
  /** Whether a file without the line that ends a whole one is refused. */
  readonly endMarker: boolean;
  /** For how long an edited file has to stay as it is. */
  readonly leastAgeMs: number;
}

export interface LogSettings extends RequestLineSettings {
  readonly level: LogLevel;
  /** Lines for refusals of one reason and caller in a second; `null` for all of them. */
  readonly refusalsPerSecond: number | null;
}

/** What of a caller stands in the lines of its requests: an operator may have to leave it out. */
export interface RequestLineSettings {
  readonly clientAddress: boolean;
  readonly userAgent: boolean;
}

export interface AssertionSettings extends AssertionRules {
  /** PEM; read again when it changes. */
  readonly keyFile: string;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface HostPort {
  readonly host: string;
  /** 0 to 65535; 0 asks the system for a free one. */
  readonly port: number;
}

export interface ProbesSettings extends HostPort {
  /** Name of a probe to the path that the receiver is asked for. */
  readonly app: Readonly<Record<string, string>>;
}

export interface ListenSettings extends HostPort {
  readonly tls: ListenerTls | null;
  /** Who ends TLS in front of us, or `null`. Requests count as https then. */
  readonly tlsTerminatedBy: string | null;
  /** Addresses or CIDR blocks whose `X-Forwarded-*` count. */
  readonly trustForwarded: readonly string[];
  /** Request line and header section together. */
  readonly maxHeaderBytes: number;
  readonly maxTargetBytes: number;
  readonly headerTimeoutMs: number;
  /** A caller's connection without a request. */
  readonly keepAliveTimeoutMs: number;
  readonly bodyIdleTimeoutMs: number;
  /** Bytes a second of a body that takes long; 0 where none is asked for. */
  readonly bodyMinRate: number;
  readonly maxInFlight: number;
  readonly maxWebSockets: number;
  /** Between bytes of a WebSocket connection, in either direction. */
  readonly webSocketIdleTimeoutMs: number;
  readonly underscoreFields: 'drop' | 'allow' | 'refuse';
  readonly http10: 'refuse' | 'allow';
}

/** Paths of the listener's PEM files; read again when they change. */
export interface ListenerTls {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile: string | null;
  /** Only with `clientCaFile`. */
  readonly clientAuth: 'require' | 'optional';
}

export interface UpstreamSettings {
  /** Origin without path: `http://127.0.0.1:3000`, `https://…`, or `unix:/run/app.sock`. */
  readonly url: string;
  readonly caFile: string | null;
  /** Name that the upstream's certificate has to bear, where it is not the URL's host. */
  readonly serverName: string | null;
  readonly host: 'upstream' | 'preserve';
  /** Whether a request that came without a trace gets a new one. */
  readonly beginsTrace: boolean;
  /** Further fields of callers that it must not get. */
  readonly stripFields: readonly string[];
  /** Fields that it gets although they are removed otherwise. */
  readonly passFields: readonly string[];
  readonly connectTimeoutMs: number;
  /** To the end of the response head. */
  readonly responseTimeoutMs: number;
  /** Between bytes of a stream. */
  readonly idleTimeoutMs: number;
  readonly maxConnections: number;
  /** When a connection may carry another request. */
  readonly reuse: 'always' | 'safe' | 'never';
  /** Whether the receiver is known to read the body of each request, or else to close. */
  readonly readsBodies: boolean;
}

/** Where sessions of users come from. Read once, at start. */
export interface SessionSettings {
  /** The Core's, without a trailing slash. */
  readonly coreUrl: string;
  /** Secret. */
  readonly apiKey: string | null;
  /** Origin of the service that makes the sessions. */
  readonly apiDomain: string;
  /** Empty, or a path that begins with a slash and does not end with one. */
  readonly apiBasePath: string;
  /** Exact `iss`. */
  readonly issuer: string;
  readonly keys: KeySourceSettings;
  /** Whether the Core is asked about every request. */
  readonly checkDatabase: boolean;
  readonly cookie: SessionCookie;
}

/** Where reservations are kept. Read once, at start. */
export type StoreSettings = { readonly kind: 'memory' } | RedisStoreSettings;

export interface RedisStoreSettings {
  readonly kind: 'redis';
  readonly topology: RedisTopology;
  readonly username: string | null;
  /** Read again at each connect. */
  readonly passwordFile: string | null;
  /** `null` is plaintext. */
  readonly tls: { readonly caFile: string | null; readonly serverName: string | null } | null;
  /** First part of every key. */
  readonly prefix: string;
  /** Replicas that have to confirm a reservation, or a revocation. */
  readonly replicas: number;
  readonly reserveTimeoutMs: number;
  readonly settleTimeoutMs: number;
  /** Whether protected routes are served before it was read what is revoked. */
  readonly startsWithoutRevocations: boolean;
  /** Bytes of kept results of one caller; `null` is a quarter of what the server may hold. */
  readonly keptPerCaller: number | null;
  /** What is asked of the settings with which Redis could forget. */
  readonly durability: 'verified' | 'unverified' | 'none';
}

/** One server, the primary that Sentinels name, or a Cluster. */
export type RedisTopology =
  | { readonly kind: 'single'; readonly host: string; readonly port: number; readonly database: number }
  | { readonly kind: 'sentinel'; readonly name: string; readonly nodes: readonly RedisPlace[] }
  | { readonly kind: 'cluster'; readonly nodes: readonly RedisPlace[] };

export interface RedisPlace {
  readonly host: string;
  readonly port: number;
}

/** One issuer: its rules for tokens and where its keys come from. */
export interface IssuerSettings {
  readonly rules: IssuerRules;
  readonly keys: KeySourceSettings;
}

export interface KeySourceSettings {
  readonly source: { readonly kind: 'url'; readonly url: string } | { readonly kind: 'file'; readonly path: string };
  readonly caFile: string | null;
  readonly minAgeMs: number;
  readonly maxAgeMs: number;
  /** `null` leaves it to what the answer says: 5 minutes under `must-revalidate`, else an hour. */
  readonly maxStaleMs: number | null;
  readonly cooldownMs: number;
  readonly timeoutMs: number;
  readonly maxBytes: number;
}
