/** What the inside needs from outside: types only. */
import type { ConnectionEnding } from '../decision/limits/idle-connections.js';
import type { KeyObject } from 'node:crypto';
import type { FailureReason, Reason } from '../decision/denial.js';
import type { Rate } from '../decision/route/policy.js';
import type { RenewedSession } from '../decision/token/principal.js';
import type { LimitKey } from '../decision/route/rate-limit.js';
import type {
  Complete,
  Completed,
  Mark,
  Marked,
  Release,
  Released,
  Reserve,
  Reserved,
  ReservationRecord,
  Resolution,
  Resolved,
} from '../decision/idempotency/record.js';
import type { ReservationScope } from '../decision/idempotency/scope.js';
import type { Result } from '../lib/result.js';
import type { ResultSize } from '../decision/limits/store-share.js';
import type { JsonObject } from '../lib/strict-json.js';
import type { StrippedFields } from '../decision/http/stripped-headers.js';
import type { WebSocketEnding } from '../decision/websocket/close-codes.js';

/** Reads time. */
export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds that never go back; for durations. */
  readonly monotonic: () => number;
}

/** Runs tasks later; none of them keeps the process alive. */
export interface Timers {
  /** Runs the task once, after `delayMs`. The function returned calls it off. */
  readonly after: (delayMs: number, task: () => void) => () => void;
}

/** Reads text files that others write and replace while this runs. */
export interface Files {
  /** The whole text, or why it cannot be had, in words that follow the path. Regular files only. */
  readonly read: (path: string, limits: { readonly maxBytes: number }) => Promise<Result<string, string>>;
  /** SHA-256 of a text's bytes, hex. */
  readonly digest: (text: string) => string;
  /**
   * Who else may read or change the file of a secret, in words that follow a name of it; `null` where nobody who should
   * not.
   */
  readonly exposure: (path: string) => string | null;
  /** Calls back with what the file now holds each time that changes. */
  readonly watch: (
    path: string,
    onChange: (content: Result<string, string>) => void,
    options: WatchOptions,
  ) => FileWatch;
}

export interface WatchOptions {
  /** Digest of the text that the caller already acted on, or `null` when there was none to be had. */
  readonly digest: string | null;
  readonly maxBytes: number;
  /** Milliseconds between two looks. */
  readonly intervalMs?: number;
  /**
   * Milliseconds for which a changed file has to stay as it is before it counts; asked for at each look. None unless
   * given.
   */
  readonly leastAgeMs?: () => number;
}

export interface FileWatch {
  /**
   * Says what the caller acted on since without being called back: the digest of a text, or why there was none. A file
   * that holds something else has changed, though it may be as the watch saw it last.
   */
  readonly loaded: (digest: Result<string, string>) => void;
  readonly close: () => void;
}

/** A watch that can be asked as well. */
export interface AskedWatch extends FileWatch {
  /**
   * What the file holds, changed or not, once that counts; `onWait` is called where it does not yet. What is told here
   * is acted on, and not called back for. `null` once the watch is closed.
   */
  readonly settled: (onWait: () => void) => Promise<Result<string, string> | null>;
}

/** A public key that may verify service tokens: RSA of 2048 to 8192 bits, checked. */
export interface VerificationKey {
  readonly keyId: string;
  readonly key: KeyObject;
}

/** What a look-up of a `kid` says. */
export type KeyLookup =
  | { readonly kind: 'found'; readonly key: VerificationKey }
  /** The issuer's set has no such key: 401. */
  | { readonly kind: 'unknown' }
  /** No usable set, or nobody can tell whether there is such a key: 503, not 401. */
  | { readonly kind: 'unavailable' }
  /** It may be a new key, and too many wait to hear that already: 503. */
  | { readonly kind: 'busy' };

/** Who asks for a key, and is ready to wait until it may be fetched. */
export interface KeyAsker {
  /** Of the client; empty where there is none. */
  readonly address: () => string;
  /** Whether its connection has shown a good credential before. */
  readonly isKnown: () => boolean;
  /** Whether nobody waits for the answer any more. */
  readonly isGone: () => boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * How long a look-up may wait. `now`: not at all, and nothing is fetched. `fetch`: for a fetch that is under way or
 * allowed now. Somebody who asks: until one that began after they came is over, for 10 s at most.
 */
export type KeyPatience = 'now' | 'fetch' | KeyAsker;

/** The keys of one issuer. */
export interface KeySource {
  /** Answers at once where the key is known, else as soon as `patience` allows, which is `fetch` unless given. */
  readonly find: (keyId: string, patience?: KeyPatience) => KeyLookup | Promise<KeyLookup>;
  /** What operators see. */
  readonly state: () => KeySourceState;
}

/** One issuer's keys, as `/status`, `/readyz` and metrics show them. */
export interface KeySourceState {
  readonly issuer: string;
  /**
   * Whether a key can be had now: a set with an accepted key was loaded and is past its lifetime by no more than
   * `max_stale`.
   */
  readonly usable: boolean;
  /** Whether the last attempt failed, a set without keys waits to be confirmed, or the set is past its age. */
  readonly stale: boolean;
  /** Milliseconds since the set was fetched, or `null` before the first. */
  readonly ageMs: number | null;
  /** Milliseconds for which the set serves if its source stays away, 0 or more; `null` before the first. */
  readonly servesForMs: number | null;
  /**
   * How much of the time past their lifetime is over for which the keys serve: 0 within their lifetime, 1 at its end;
   * `null` before the first.
   */
  readonly stalePart: number | null;
  readonly keys: readonly { readonly keyId: string; readonly ageMs: number; readonly accepted: boolean }[];
  /** Keys that left with a fetch, the last one first, 20 at most. `ageMs`: since then. */
  readonly withdrawn: readonly { readonly keyId: string; readonly ageMs: number }[];
  /** Whether the issuer says that no key counts: once so far, or again when it was asked again, so that none does. */
  readonly emptySet: 'unconfirmed' | 'confirmed' | null;
  /** Why the last attempt failed, in words, or `null`. */
  readonly lastError: string | null;
  /** Requests that wait for a fetch. */
  readonly waiting: number;
}

/** What the SDK of the Core says of a session that it vouches for. */
export interface VouchedSession {
  readonly userId: string;
  /** The access token's payload, the new one where there is a new one. */
  readonly claims: JsonObject;
  /** Where the Core made a new access token. */
  readonly renewed: Pick<RenewedSession, 'accessToken' | 'frontToken'> | null;
}

/**
 * Why the SDK does not vouch for a session. `refresh`: its access token is worth no more. `refused`: the session is
 * none any more. `unavailable`: nobody could tell, for the Core was not reached or had no time.
 */
export type SessionRefusal = 'refresh' | 'refused' | 'unavailable';

/** Verifies sessions of users with the SDK of the Core. Every call ends within its deadline, and never rejects. */
export interface SessionVerifier {
  /** `asksCore` is whether more than the token is needed to tell. */
  readonly verify: (accessToken: string, asksCore: boolean) => Promise<Result<VouchedSession, SessionRefusal>>;
}

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
  /** From dispatch to the end of the answer; `null` when the receiver was not asked. */
  readonly upstream_ms: number | null;
  /** The reservation's id, where there is one. */
  readonly record: string | null;
  /** Of the trace that the receiver was told of, or that the caller named; `null` where there is none. */
  readonly trace_id: string | null;
  /** The client's; `null` where its socket has none. */
  readonly client_address: string | null;
  /** As it came, whatever it holds. */
  readonly user_agent: string | null;
  /** On routes in shadow mode: the permissions of a verified token; `null` where they are not known. */
  readonly permissions?: readonly string[] | null;
  /** On them, and where a request ended for want of some: those that the credential lacks, or claims of a session. */
  readonly missing_permissions?: readonly string[] | null;
}

/** How a request ended, as `sallyport_requests_total` counts it. */
export type Outcome = 'forwarded' | 'replayed' | 'denied' | 'failed' | 'shadow';

/** Where events of the process go. `fields` never hold a secret. */
export interface Log {
  readonly debug: (message: string, fields?: LogFields) => void;
  readonly info: (message: string, fields?: LogFields) => void;
  readonly warn: (message: string, fields?: LogFields) => void;
  readonly error: (message: string, fields?: LogFields) => void;
}

export type LogFields = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** How an attempt to get keys ended. `empty`: with a good set in which no key counts. */
export type JwksRefreshResult = 'ok' | 'empty' | 'failed';

/** Counts and measures. */
export interface Metrics {
  /**
   * `status` is what the caller was sent, 0 where nothing was; `overheadMs` is the time spent here, without the
   * receiver.
   */
  readonly request: (route: string, outcome: Outcome, status: number, durationMs: number, overheadMs: number) => void;
  /** A request that was refused. */
  readonly denial: (route: string, reason: Reason) => void;
  /** A request that something broke, here or at either end. */
  readonly failure: (route: string, reason: FailureReason) => void;
  /** A request that went on in shadow mode and would have been refused. */
  readonly shadowDenial: (route: string, reason: Reason) => void;
  readonly strippedFields: (stripped: StrippedFields) => void;
  readonly jwksRefresh: (issuer: string, result: JwksRefreshResult) => void;
  /** A request waited for a key, or found no place to wait. */
  readonly jwksWait: (issuer: string, result: KeyLookup['kind']) => void;
  readonly configReload: (result: 'ok' | 'failed') => void;
  readonly webSocketClosed: (ending: WebSocketEnding) => void;
  /** A caller's connection was ended, since there were too many or too much waited on it. */
  readonly connectionEnded: (ending: ConnectionEnding) => void;
}

/** Counts requests of callers in this process. */
export interface RateCounter {
  /** Milliseconds that the caller has to wait; 0 where its request is counted and may go on. */
  readonly take: (key: LimitKey, rate: Rate) => number;
}

/** Counts them together with other proxies. It ends within its deadline, and never rejects. */
export interface SharedRateCounter {
  readonly take: (key: LimitKey, rate: Rate) => Promise<Result<number, StoreFailure>>;
}

/** Accepted service tokens since the start: those that were remembered, and those that had to be verified. */
export interface TokenLookups {
  hits: number;
  misses: number;
}

export interface TokenCacheState extends Readonly<TokenLookups> {
  /** Memory that the tokens remembered now take, about. */
  readonly bytes: number;
}

/** How limits are counted, for `/status` and metrics. */
export interface LimitsState {
  /** Whether some limit is one for all proxies, and whether it is counted so now. */
  readonly shared: boolean;
  readonly isShared: boolean;
  /** Why each process counts by itself what should be shared; `null` where none does. */
  readonly problem: string | null;
}

/** Why the store gave no answer. */
export interface StoreFailure {
  /**
   * `unreachable`: no connection, or it was lost. `timeout`: no answer in time, or none expected. `refused`: the server
   * or the record says no. `full`: no room. `unfit`: it is not asked, for it may forget.
   */
  readonly kind: 'unreachable' | 'timeout' | 'refused' | 'full' | 'unfit';
  /** For the log; no key, no secret. */
  readonly reason: string;
  /** Whether the command may have reached the store, and have run or still run there. */
  readonly mayHaveRun: boolean;
}

/** What a reserve learned, and how many replicas confirmed the write. */
export interface ReserveAnswer {
  readonly reserved: Reserved;
  /** `null` where the store has no replicas to ask. */
  readonly confirmedReplicas: number | null;
}

/** Keeps reservations. Every call ends within its deadline, and never rejects. */
export interface ReservationStore {
  /** Record and token marker together, in one step. */
  readonly reserve: (scope: ReservationScope, command: Reserve) => Promise<Result<ReserveAnswer, StoreFailure>>;
  readonly complete: (scope: ReservationScope, command: Complete) => Promise<Result<Completed, StoreFailure>>;
  readonly release: (scope: ReservationScope, command: Release) => Promise<Result<Released, StoreFailure>>;
  readonly mark: (scope: ReservationScope, command: Mark) => Promise<Result<Marked, StoreFailure>>;
  readonly show: (scope: ReservationScope) => Promise<Result<ShownRecord | null, StoreFailure>>;
  readonly resolve: (scope: ReservationScope, resolution: Resolution) => Promise<Result<Resolved, StoreFailure>>;
  readonly state: () => StoreState;
  /**
   * Single-use tokens issued before are refused: a fail-over may have lost their markers. Seconds since the epoch, by
   * our clock: an issuer's may be ahead by its skew.
   */
  readonly issuedBeforeFloorS: () => number | null;
  /**
   * Calls back after each fail-over that is noticed: what was written shortly before may be forgotten. `null` where
   * there can be none.
   */
  readonly onFailover: ((listener: () => void) => void) | null;
  readonly close: () => Promise<void>;
}

/**
 * What one caller's results may take of a store that others share. It guards the store's memory: what cannot be counted
 * is kept.
 */
export interface StoreShare {
  /** Counts a result, and tells whether its answer is kept with it. */
  readonly keeps: (principal: string, size: ResultSize) => Promise<boolean>;
  /**
   * Whether the caller has so much kept that no further write begins. Costs nothing for one that is within its share.
   */
  readonly isUsedUp: (principal: string) => Promise<boolean>;
}

/** A record as an operator sees it, and the store's time in milliseconds. */
export interface ShownRecord {
  readonly record: ReservationRecord;
  readonly nowMs: number;
}

/** The store's health, for `/status`, `/readyz` and metrics. */
export interface StoreState {
  readonly kind: 'memory' | 'redis';
  readonly up: boolean;
  /** Why it takes no reservations, and what to do about it, in words; `null` where it does. */
  readonly problem: string | null;
  /** Replicas of the primary that has the fewest; `null` where there are none to have. */
  readonly connectedReplicas: number | null;
  /**
   * How often a primary was replaced, restarted or emptied, or its clock stepped, since we started: what it held may be
   * forgotten.
   */
  readonly failovers: number;
}

/** How reservations went, as `sallyport_reservations_total` counts them. */
export type ReservationResult =
  | 'acquired'
  | 'replayed'
  | 'in_progress'
  | 'mismatch'
  | 'unknown'
  | 'token_replayed'
  | 'unavailable'
  | 'released'
  | 'completed'
  | 'tombstone'
  | 'repaired'
  | 'fenced';

/** Calls of the store, as `sallyport_store_duration_seconds` names them. */
export type StoreOperation = 'reserve' | 'complete' | 'release' | 'mark';

/** Counts what becomes of reservations. */
export interface ReservationMetrics {
  readonly reservation: (result: ReservationResult) => void;
  readonly storeCall: (operation: StoreOperation, durationMs: number) => void;
  /** The write of this record is in doubt from now on. */
  readonly unknownOutcome: (recordId: string) => void;
  /** Too few replicas confirmed a reservation in time. */
  readonly replicaShortfall: () => void;
  /** An answer was not kept, for its caller has used up its share of the store. */
  readonly shareExceeded: () => void;
  /** So many settlements were offered to the store once more after a fail-over. */
  readonly offeredAgain: (count: number) => void;
}

/** What reserving routes need: the store, and what is asked of it. */
export interface ReservationParts {
  readonly store: ReservationStore;
  readonly metrics: ReservationMetrics;
  /** `null` where the store is nobody else's. */
  readonly share: StoreShare | null;
  /** Replicas that have to confirm a reservation before the write is dispatched. */
  readonly replicas: number;
  readonly settleTimeoutMs: number;
}
