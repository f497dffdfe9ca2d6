/** What the primary and its workers say to each other: types only. */
import type { RefusedRequest } from '../../admin/console/refusals.js';
import type { Readiness } from '../../admin/readiness.js';
import type { Page } from '../../admin/server.js';
import type { Counts, Status } from '../../admin/status.js';
import type { MetricsData } from '../../adapters/metrics/merge.js';
import type { Traffic } from '../../ports/observability.js';
import type { TlsMaterial } from '../../proxy/inbound/listener.js';
import type { ConfigTexts } from '../config/load-complete.js';
import type { StartFailure } from '../start-failure.js';
import type { DoubtfulWrite } from '../store/doubtful-writes.js';
import type { Share } from './share-config.js';

/** What a worker is told before it does anything. */
export interface StartOrder extends Share {
  /** As problems and logs name the config, and the folder that its paths start from. */
  readonly configName: string;
  readonly folder: string;
  /** The config that the proxy was started with: what counts at start only is opened by it. */
  readonly first: ConfigTexts;
  /** The one that is in force by now; `null` where it is the first. */
  readonly current: ConfigTexts | null;
  readonly tls: TlsMaterial | null;
}

/** What a worker counted so far. */
export interface Numbers {
  readonly metrics: MetricsData;
  readonly counts: Counts;
  readonly traffic: Traffic;
}

/** Listeners that are drained in turn: the workload may need its calling side to answer callers. */
export type DrainedPart = 'proxy' | 'others';

/** What the primary asks of a worker, and what it is answered. */
export interface WorkerCalls {
  /** Builds everything; why it cannot, or `null` once it serves what it is handed. */
  readonly start: { readonly given: StartOrder; readonly answer: StartFailure | null };
  /** Loads another config as far as it goes without being in force: why it cannot be. */
  readonly prepare: { readonly given: ConfigTexts; readonly answer: string | null };
  /** Puts it in force, or forgets it; why that failed. */
  readonly conclude: { readonly given: boolean; readonly answer: string | null };
  /** Shows other certificates from now on; whether they fit. */
  readonly tls: { readonly given: TlsMaterial; readonly answer: boolean };
  readonly numbers: { readonly given: null; readonly answer: Numbers };
  readonly readiness: { readonly given: null; readonly answer: Readiness };
  readonly status: { readonly given: null; readonly answer: Status };
  /** Refusals that came after the one of this number. */
  readonly refusals: { readonly given: number; readonly answer: readonly RefusedRequest[] };
  /** The oldest writes in doubt, so many at most. */
  readonly inDoubt: { readonly given: number; readonly answer: readonly DoubtfulWrite[] };
  /** A page as a proxy of one process would show it; `null` where it has none of that path. */
  readonly page: { readonly given: { readonly path: string; readonly query: string }; readonly answer: Page | null };
  /** Every response closes its connection from now on; how many requests are under way. */
  readonly announce: { readonly given: null; readonly answer: number };
  readonly drain: { readonly given: { readonly part: DrainedPart; readonly graceMs: number }; readonly answer: null };
  /** Closes what is left, and ends after the answer. */
  readonly close: { readonly given: null; readonly answer: Numbers };
}

export type CallName = keyof WorkerCalls;

/** Asks whether a request of a caller may go on: by its rate, or by how many are under way. */
export type CountAsk =
  | {
      readonly id: number;
      readonly principal: string;
      readonly scope: string;
      readonly perSecond: number;
      readonly burst: number;
    }
  | { readonly id: number; readonly name: string; readonly max: number };

/** A bound of a listener that holds for all workers together; with a holder, what that one may have of it. */
export interface SharedBound {
  readonly name: string;
  readonly holder: string | null;
  /** Places that there are. */
  readonly max: number;
}

/** Places of a bound that a worker has no more. */
export interface PlacesBack {
  readonly bound: SharedBound;
  readonly count: number;
}

/** What a worker is to do about places, in this order. */
export type PlaceOrder =
  /** Give back what is unused, say so, and from now on what gets free. */
  | { readonly kind: 'recall'; readonly bound: SharedBound }
  /** These are the worker's too, who keeps what gets free. */
  | { readonly kind: 'grant'; readonly bound: SharedBound; readonly count: number }
  /** To a worker that begins: others have what would be its part. */
  | { readonly kind: 'none'; readonly bound: SharedBound; readonly isRecalled: boolean }
  /** To an ask by its number: the place is the worker's, or there is none. */
  | { readonly kind: 'answer'; readonly id: number; readonly isGranted: boolean };

export type ToWorker =
  | { readonly kind: 'call'; readonly id: number; readonly name: CallName; readonly given: unknown }
  /** Comes with the handle of a connection. */
  | { readonly kind: 'connection'; readonly id: number; readonly listener: number }
  /**
   * Answers to asks by their number: milliseconds to wait for a rate; for a place in flight, 0 where there is one and 1
   * where there is none.
   */
  | { readonly kind: 'counted'; readonly answers: readonly (readonly [id: number, answer: number])[] }
  | { readonly kind: 'places'; readonly orders: readonly PlaceOrder[] };

export type ToPrimary =
  | { readonly kind: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly reason: string }
  /** The connection is the worker's. */
  | { readonly kind: 'took'; readonly id: number }
  /** `left` names flights that gave a place back. */
  | { readonly kind: 'count'; readonly asks: readonly CountAsk[]; readonly left: readonly string[] }
  | {
      readonly kind: 'places';
      readonly back: readonly PlacesBack[];
      /** Answers to recalls. */
      readonly recalled: readonly PlacesBack[];
      readonly asks: readonly { readonly id: number; readonly bound: SharedBound }[];
    };
