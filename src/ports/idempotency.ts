/** What reserved writes need from outside: the store, its metrics, and what operators ask of it. Types only. */
import type {
  Reserved,
  Reserve,
  Complete,
  Completed,
  Release,
  Released,
  Mark,
  Marked,
  Resolution,
  Resolved,
  ReservationRecord,
} from '../decision/idempotency/record.js';
import type { ReservationScope } from '../decision/idempotency/scope.js';
import type { ResultSize } from '../decision/limits/store-share.js';
import type { Result } from '../lib/result.js';
import type { Exemplar } from './tracing.js';

/** Why the store gave no reply. */
export interface StoreFailure {
  /**
   * `unreachable`: no connection, or it was lost. `timeout`: no reply in time, or none expected. `refused`: the server
   * or the record says no. `full`: no room. `unfit`: it is not asked, for it may forget.
   */
  readonly kind: 'unreachable' | 'timeout' | 'refused' | 'full' | 'unfit';
  /** For the log; no key, no secret. */
  readonly reason: string;
  /** Whether the command may have reached the store, and have run or still run there. */
  readonly mayHaveRun: boolean;
}

/** What a command needs of a store that several servers hold: all of it, or the part with this. */
export type StorePart = 'all' | 'revocations' | Pick<ReservationScope, 'principal'>;

/** What a reserve learned, and how many replicas confirmed the write. */
export interface ReserveReply {
  readonly reserved: Reserved;
  /** `null` where the store has no replicas to ask. */
  readonly confirmedReplicas: number | null;
}

/** Keeps reservations. Every call ends within its deadline, and never rejects. */
export interface ReservationStore {
  /** Record and token marker together, in one step. */
  readonly reserve: (scope: ReservationScope, command: Reserve) => Promise<Result<ReserveReply, StoreFailure>>;
  readonly complete: (scope: ReservationScope, command: Complete) => Promise<Result<Completed, StoreFailure>>;
  readonly release: (scope: ReservationScope, command: Release) => Promise<Result<Released, StoreFailure>>;
  readonly mark: (scope: ReservationScope, command: Mark) => Promise<Result<Marked, StoreFailure>>;
  readonly show: (scope: ReservationScope) => Promise<Result<ShownRecord | null, StoreFailure>>;
  readonly resolve: (scope: ReservationScope, resolution: Resolution) => Promise<Result<Resolved, StoreFailure>>;
  readonly state: () => StoreState;
  /** Why nothing can be asked now of what holds this; `null` where it can. */
  readonly problemOf: (part: StorePart) => string | null;
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
  /** Counts a result, and tells whether its response is kept with it. */
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
  /** Those that are asked, each said to be a primary; of a store in memory none. */
  readonly servers: readonly StoreServer[];
  /**
   * How often a primary was replaced, restarted or emptied, or its clock stepped, since we started: what it held may be
   * forgotten.
   */
  readonly failovers: number;
}

/** A server of the store, as it was at the last look. */
interface StoreServer {
  /** `host:port`. */
  readonly address: string;
  /** What it says it is, such as `master` or `slave`; `null` while there is no connection. */
  readonly role: string | null;
  /** Replicas that are connected and have caught up; `null` while there is no connection. */
  readonly replicas: number | null;
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
  /** @param exemplar of the request that it is measured of, where that is traced. */
  readonly storeCall: (operation: StoreOperation, durationMs: number, exemplar?: Exemplar) => void;
  /** The write of this record is in doubt from now on. */
  readonly unknownOutcome: (recordId: string) => void;
  /** Too few replicas confirmed a reservation in time. */
  readonly replicaShortfall: () => void;
  /** A response was not kept, for its caller has used up its share of the store. */
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

/** Which records an operator asks for. */
export interface UnsettledQuery {
  /** Without those whose attempt may still be under way. */
  readonly inDoubtOnly: boolean;
  /** Where there are more, the search ends: what it holds is bounded. */
  readonly most: number;
  /** Called now and then while it looks. */
  readonly onProgress: (progress: { readonly keys: number; readonly found: number }) => void;
}

export interface UnsettledList {
  readonly records: readonly UnsettledRecord[];
  /** Whether everything was looked at; not where there are more than were asked for. */
  readonly isWhole: boolean;
  /** Keys that were looked at. */
  readonly keys: number;
  /** Records that could not be read: damaged, of another version, or just then handed to another server. */
  readonly unreadable: number;
}

export interface UnsettledRecord {
  readonly id: string;
  readonly shown: ShownRecord;
}

/**
 * Finds the records that are not settled. There is no list of them, so that it looks at every key of the store, a few
 * at a time.
 */
export interface UnsettledRecords {
  readonly list: (query: UnsettledQuery) => Promise<Result<UnsettledList, StoreFailure>>;
}
