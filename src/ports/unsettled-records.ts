import type { Result } from '../lib/result.js';
import type { ShownRecord, StoreFailure } from './ports.js';

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
