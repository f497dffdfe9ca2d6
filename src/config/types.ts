/** The types of the compiled config: those of the sections follow from what each compiles to. */
import type { AssertionRules } from '../decision/token/assertion.js';
import type { IssuerRules } from '../decision/route/policy.js';
import type { Algorithm, KeyRules } from '../decision/token/profiles.js';
import type { SessionCookie } from '../decision/session/headers.js';
import type { Settings } from './load/setting-names.js';
import type { CompiledSections } from './sections/index.js';
import type { CompiledListen } from './sections/listeners/listen.js';
import type { CompiledUpstream } from './sections/upstream.js';

/** A whole config in force: durations in milliseconds, sizes in bytes, everything checked. */
export interface CompiledConfig extends Immutable<CompiledSections> {
  /** SHA-256 of the file's bytes, hex: what `/status` and `sallyport_config_info` show. */
  readonly sha256: string;
  /** The same, as the file says it: for telling two configs apart. Some values are secret. */
  readonly settings: Settings;
  /**
   * False where it has the calling side alone, or is only asked for decisions: `upstream` and the place in `listen`
   * then stand for nothing, and neither is opened. Of the calling side alone, so do `issuers` and `routes`.
   */
  readonly servesCallers: boolean;
  /** What `check` would warn of; logged at start. */
  readonly warnings: readonly string[];
}

/** Maps and lists that cannot be written to; the rest as it is. */
type Immutable<T> = { readonly [Key in keyof T]: Unwritable<T[Key]> };
type Unwritable<T> = T extends (infer Item)[] ? readonly Item[] : T extends Plain ? Immutable<T> : T;
type Plain = Readonly<Record<string, unknown>>;

export type ListenSettings = Immutable<CompiledListen>;
export type UpstreamSettings = Immutable<CompiledUpstream>;
export type DecideSettings = CompiledConfig['decide'][number];
export type EgressSettings = NonNullable<CompiledConfig['egress']>;
export type TargetSettings = EgressSettings['targets'][number];
export type SocketPlace = NonNullable<EgressSettings['socket']>;
export type ListenerTls = NonNullable<ListenSettings['tls']>;
export type ProbesSettings = NonNullable<CompiledConfig['probes']>;
export type TelemetrySection = CompiledConfig['telemetry'];
export type LogSettings = CompiledConfig['log'];
export type LogLevel = LogSettings['level'];

/** What of a caller stands in the lines of its requests: an operator may have to leave it out. */
export type RequestLineSettings = Pick<LogSettings, 'clientAddress' | 'userAgent'>;

export interface HostPort {
  readonly host: string;
  /** 0 to 65535; 0 asks the system for a free one. */
  readonly port: number;
}

export interface AssertionSettings extends AssertionRules {
  /** PEM; read again when it changes. */
  readonly keyFile: string;
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

/** A place to connect to. */
export interface RedisPlace {
  readonly host: string;
  readonly port: number;
}

/** One issuer: its rules for tokens and where its keys come from. */
export interface IssuerSettings {
  readonly rules: IssuerRules;
  readonly keys: KeySourceSettings;
  /** `null` where it has no opaque tokens. */
  readonly introspection: IntrospectionSettings | null;
  /** Whether the config may name places of its keys that are reached in plaintext. */
  readonly allowsHttp: boolean;
}

/** How an issuer is asked about its opaque tokens. */
export interface IntrospectionSettings {
  /** `null` where its metadata says so. */
  readonly url: string | null;
  /** PEM; taken up when it changes. */
  readonly caFile: string | null;
  readonly clientId: string;
  readonly auth: ClientAuth;
  /** The only form of responses that is taken. */
  readonly answer: 'json' | 'jwt';
  readonly rules: OpaqueTokenRules;
  readonly maxAgeMs: number;
  readonly maxNegativeAgeMs: number;
  /** For one question as a whole. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Questions about tokens that were not active before, and are not now. */
  readonly unknownPerSecond: number;
  readonly unknownPerAddress: number;
}

/** Which opaque tokens are an issuer's, and what its responses have to say of them besides `IssuerRules`. */
export interface OpaqueTokenRules {
  /** Empty where every opaque token may be its. */
  readonly tokenPrefix: string;
  readonly requiresAudience: boolean;
  readonly requiresTokenId: boolean;
}

/** How this proxy proves to an issuer who it is: RFC 6749 §2.3.1, RFC 7523 §2.2, RFC 8705 §2.1. */
export type ClientAuth =
  | { readonly method: 'client_secret_basic' | 'client_secret_post'; readonly secretFile: string }
  | {
      readonly method: 'private_key_jwt';
      readonly keyFile: string;
      readonly keyId: string | null;
      /** `null` leaves it to the key. */
      readonly algorithm: Algorithm | null;
      /** `aud` of the assertions: the issuer. */
      readonly audience: string;
    }
  | { readonly method: 'tls_client_auth'; readonly certFile: string; readonly keyFile: string };

/** Where an issuer's keys are. */
export type KeyPlace =
  { readonly kind: 'url'; readonly url: string } | { readonly kind: 'file'; readonly path: string } | DiscoveryPlace;

/** A document that names the place of the keys (OpenID Connect Discovery §4, RFC 8414 §3). */
export interface DiscoveryPlace {
  readonly kind: 'discovery';
  /** Where the document is. */
  readonly url: string;
  /** Where else it may be, on the same origin: asked where the response to the first says that there is none. */
  readonly otherUrl: string | null;
  /** What the document's `issuer` has to be, to the letter. */
  readonly issuer: string;
  /** Origins, as `URL.origin` writes them, at one of which its `jwks_uri` has to be. */
  readonly keyOrigins: ReadonlySet<string>;
  /**
   * Origins, all of https, that get the token of `tokenFile`: that of the document, and those that the config names for
   * keys. The issuer's own is none because it issues: a managed cluster's is a public address, which is not to see what
   * lets into the cluster.
   */
  readonly tokenOrigins: ReadonlySet<string>;
}

export interface KeySourceSettings {
  readonly source: KeyPlace;
  /** Which keys of the set count, and for which algorithm. */
  readonly rules: KeyRules;
  /** PEM; read again for each fetch. */
  readonly caFile: string | null;
  /** Bearer token that is sent with each fetch, over https only; read again for each. */
  readonly tokenFile: string | null;
  readonly minAgeMs: number;
  readonly maxAgeMs: number;
  /** `null` leaves it to what the response says: 5 minutes under `must-revalidate`, else an hour. */
  readonly maxStaleMs: number | null;
  readonly cooldownMs: number;
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/** Where tokens of the calling side come from. */
export type TokenSourceSettings = CoreTokenSettings | OAuthTokenSettings | FileTokenSettings;

/** Tokens that a Core mints. */
export interface CoreTokenSettings {
  readonly kind: 'core';
  /** Its name in the config. */
  readonly name: string;
  /** A curl config file: where the Core is, and its key. Taken up when it changes. */
  readonly curlConfigFile: string;
  /** The API domain, which becomes `iss`. */
  readonly issuer: string;
  readonly claims: {
    readonly aud: string;
    readonly sub: string;
    readonly source: string;
    readonly token_type: string;
    readonly permissions: readonly string[];
  };
  /** Whole seconds. */
  readonly validityS: number;
  /** Whether each request gets a token of its own, with a `jti`. */
  readonly singleUse: boolean;
  /** Whether they are bound to a key of this process, with a proof for each attempt (RFC 9449). */
  readonly dpop: boolean;
  /** Whether the Core's key may travel in the clear to another machine. */
  readonly allowHttp: boolean;
  /** Whether the Core may have a public address. */
  readonly allowPublicCore: boolean;
}

/** Tokens that an authorization server issues (RFC 6749 §4.4, RFC 8693, RFC 7523). */
export interface OAuthTokenSettings {
  readonly kind: 'oauth';
  readonly name: string;
  readonly issuer: string;
  /** Where tokens are asked for; `null` where its metadata says so. */
  readonly tokenUrl: string | null;
  /** Where its metadata may be, in the order in which they are asked. */
  readonly metadataUrls: readonly string[];
  /** PEM; taken up when it changes. */
  readonly caFile: string | null;
  readonly clientId: string;
  readonly auth: ClientAuth;
  /** `exchange` and `jwt_bearer` are made with the caller's own token. */
  readonly grant: 'client_credentials' | 'exchange' | 'jwt_bearer';
  /** As they stand in the request; `null` leaves them out. */
  readonly scope: string | null;
  readonly audience: string | null;
  readonly resource: string | null;
  /** Whether they are bound to a key of this process, with a proof for each attempt (RFC 9449). */
  readonly dpop: boolean;
  /** For one request as a whole. */
  readonly timeoutMs: number;
}

/** A token that something else writes to a file. */
interface FileTokenSettings {
  readonly kind: 'file';
  readonly name: string;
  /** Read again, at most each second. */
  readonly path: string;
}
