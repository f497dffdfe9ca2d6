/** What is needed from outside of revocations that proxies share: types only. */
import type { Result } from '../lib/result.js';
import type { StoredRevocations } from '../decision/revocation/local-list.js';
import type { NewRevocation, Revocation, RevocationUndo } from '../decision/revocation/record.js';
import type { StoreFailure } from './idempotency.js';

/** What a proxy asks of the revocations in the store. Every call ends within its deadline, and never rejects. */
export interface RevocationSource {
  /**
   * What the store holds now.
   *
   * @param known the version that was taken in; the reply is `null` where the store still holds that one.
   */
  readonly load: (known: string | null) => Promise<Result<StoredRevocations | null, StoreFailure>>;
  /**
   * Calls back when the store may hold another version, until it is closed. News may be lost: `load` has to be asked
   * all the same.
   */
  readonly follow: (onNews: () => void) => RevocationSubscription;
}

export interface RevocationSubscription {
  /** Follows the store to where it is now. Costs nothing while it is where it was. */
  readonly refresh: () => void;
  /** Whether news would come now. */
  readonly isOpen: () => boolean;
  readonly close: () => void;
}

/** What an operator does to the revocations in the store. */
export interface RevocationStore extends RevocationSource {
  /**
   * Refuses with `full` where there is no room.
   *
   * @param replicas that are waited for, within the deadline; 0, unless given, asks none. What fewer confirmed is
   *   written all the same.
   */
  readonly revoke: (
    revocation: NewRevocation,
    holdsMs: number,
    replicas?: number,
  ) => Promise<Result<WrittenRevocation, StoreFailure>>;
  readonly undo: (
    id: string,
    by: Pick<RevocationUndo, 'reason' | 'author'>,
    replicas?: number,
  ) => Promise<Result<UndoneRevocation, StoreFailure>>;
  /** Whether the store would pass news on; it does so once. */
  readonly announce: () => Promise<Result<boolean, StoreFailure>>;
}

/** What became of a write, besides what it wrote. */
export interface RevocationWrite {
  /** Whether the store passed the news on. Else proxies learn of it when they ask next. */
  readonly isAnnounced: boolean;
  /** Replicas that have it; `null` where none were asked. A fail-over to another one forgets it. */
  readonly confirmedReplicas: number | null;
}

export interface WrittenRevocation extends RevocationWrite {
  readonly createdAtMs: number;
  readonly endsAtMs: number;
}

export interface UndoneRevocation extends RevocationWrite {
  /**
   * `unknown`: the store holds no such revocation; that it is undone is written down all the same. `already`: that
   * stands there.
   */
  readonly found: 'undone' | 'unknown' | 'already';
}

/** How revocations through the store stand, for `/status`, `/readyz` and metrics. */
export interface RevocationsState {
  /** Whether the store was ever read. */
  readonly isLoaded: boolean;
  /** Whether protected routes wait for that. */
  readonly areRequired: boolean;
  /** Whether the last successful look is longer ago than it should be. */
  readonly isStale: boolean;
  /** Since the last successful look, or since the start. */
  readonly ageMs: number;
  /** Why the last look failed; `null` where it did not. */
  readonly problem: string | null;
  /** Whether news of changes would come at once. */
  readonly hasNews: boolean;
  readonly held: readonly Revocation[];
  /** Records of the store that are not in force here: they cannot be read, or there is no room. */
  readonly notInForce: number;
  /** Ids that are held here, and that the store has lost. */
  readonly lost: readonly string[];
}
