import type { Revocations } from '../../decision/route/policy.js';
import {
  emptyRevocationList,
  revocationRules,
  mergeStored,
  withoutExpired,
  type RevocationList,
  type StoredRevocations,
  type MergeResult,
} from '../../decision/revocation/local-list.js';
import type { Clock, Log, Timers } from '../../ports/system.js';
import type { StoreFailure } from '../../ports/idempotency.js';
import type { RevocationSubscription, RevocationSource, RevocationsState } from '../../ports/revocations.js';

interface RevocationPollerDeps {
  readonly source: RevocationSource;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly timers: Timers;
  readonly log: Log;
  /** Whether protected routes wait until they were read once. */
  readonly areRequired: boolean;
  /** More is revoked than before. */
  readonly onRevoked: () => void;
}

/** Keeps this process at what is revoked through the store. */
export interface RevocationPoller {
  /** What is revoked now; the same array as long as that is the same. */
  readonly rules: () => readonly Revocations[];
  /** Whether they were read once, or need not be. */
  readonly areKnown: () => boolean;
  readonly state: () => RevocationsState;
  /** Begins to look, again and again. */
  readonly start: () => void;
  readonly close: () => void;
}

/**
 * Pause between two looks, milliseconds, news or not: two of them and a reply fit into the second that
 * docs/contract.md 9 gives.
 */
const lookEveryMs = 400;
/** Before the first list is there, milliseconds: readiness waits for it. */
const firstLooksEveryMs = 100;
/** Least time between two looks, milliseconds, however much news there is. */
const leastPauseMs = 20;
/**
 * The whole list is read at least as often, milliseconds: a store whose version was left as it was may hold something
 * else.
 */
const wholeEveryMs = 30_000;
/** A look that is older says nothing of now, milliseconds. */
const staleAfterMs = 2_000;
/** Ids that are logged at once. */
const mostTold = 10;

export function createRevocationPoller({
  source,
  clock,
  timers,
  log,
  areRequired,
  onRevoked,
}: RevocationPollerDeps): RevocationPoller {
  const startedAtMs = clock.monotonic();
  let list: RevocationList = emptyRevocationList;
  let rules: readonly Revocations[] = [];
  let version: string | null = null;
  let seenAtMs: number | null = null;
  let wholeAtMs = -Infinity;
  let lookedAtMs = -Infinity;
  let problem: string | null = null;
  let isToldStale = false;
  let notInForce = 0;
  let lost: readonly string[] = [];
  let isLooking = false;
  let isAskedAgain = false;
  let closed = false;
  let news: RevocationSubscription | null = null;
  let stopTimer = (): void => undefined;

  return {
    rules: () => rules,
    areKnown: () => !areRequired || seenAtMs !== null,
    state: () => ({
      isLoaded: seenAtMs !== null,
      areRequired,
      isStale: isStale(),
      ageMs: ageMs(),
      problem,
      hasNews: news?.isOpen() ?? false,
      held: [...withoutExpired(list, clock.monotonic()).held.values()],
      notInForce,
      lost,
    }),
    start: () => {
      news = source.follow(hear);
      void look();
    },
    close: () => {
      closed = true;
      stopTimer();
      news?.close();
    },
  };

  function hear(): void {
    if (isLooking) isAskedAgain = true;
    else schedule(Math.max(0, lookedAtMs + leastPauseMs - clock.monotonic()));
  }

  function schedule(delayMs: number): void {
    stopTimer();
    if (!closed) stopTimer = timers.after(delayMs, () => void look());
  }

  async function look(): Promise<void> {
    isLooking = true;
    isAskedAgain = false;
    lookedAtMs = clock.monotonic();
    news?.refresh();
    const isWhole = lookedAtMs - wholeAtMs >= wholeEveryMs;
    const outcome = await source.load(isWhole ? null : version);
    isLooking = false;
    if (isClosed()) return;
    drop();
    if (outcome.ok) see(outcome.value);
    else miss(outcome.error);
    schedule(hasNews() ? leastPauseMs : seenAtMs === null ? firstLooksEveryMs : lookEveryMs);
  }

  function see(stored: StoredRevocations | null): void {
    const isFirst = seenAtMs === null;
    seenAtMs = lookedAtMs;
    problem = null;
    if (isToldStale) log.info('revocations are read from the store again');
    isToldStale = false;
    if (stored === null) return;
    wholeAtMs = lookedAtMs;
    version = stored.version;
    // Counted from the reply: counted from the question, a revocation would end early where the reply took long.
    const taken = mergeStored(list, stored, clock.monotonic());
    list = taken.list;
    tell(stored, taken, isFirst);
    if (taken.added.length + taken.undone.length > 0) rules = revocationRules(list);
    if (taken.added.length > 0) onRevoked();
  }

  function miss({ reason }: StoreFailure): void {
    problem = reason;
    if (isToldStale || !isStale()) return;
    isToldStale = true;
    log.error(`revocations cannot be read from the store: ${consequence()}`, { reason });
  }

  function consequence(): string {
    if (seenAtMs !== null) return 'what was known holds on, new ones are not seen';
    return areRequired
      ? 'protected routes answer 503 until they are'
      : 'callers that are revoked there are let in until they are';
  }

  /** Drops what is over, whether the store is there or not. */
  function drop(): void {
    const left = withoutExpired(list, clock.monotonic());
    if (left === list) return;
    list = left;
    lost = lost.filter((id) => list.held.has(id));
    rules = revocationRules(list);
  }

  function tell(
    stored: StoredRevocations,
    { added, undone, lost: nowLost, refused }: MergeResult,
    isFirst: boolean,
  ): void {
    if (isFirst || added.length + undone.length > 0) {
      const held = list.held.size;
      log.info('revocations were read from the store', {
        held,
        added: some(added.map(({ id }) => id)),
        undone: some(undone),
      });
    }
    const unread = stored.unreadable.length + refused;
    if (unread > notInForce) {
      const fields = { count: unread, records: some(stored.unreadable) };
      log.error('the store holds revocations that are not in force here: they cannot be read, or are too many', fields);
    }
    notInForce = unread;
    if (nowLost.length > lost.length) {
      const fields = { count: nowLost.length, ids: some(nowLost) };
      log.error(
        'the store has lost revocations: they hold here, and a proxy that starts now does not know them',
        fields,
      );
    }
    lost = nowLost;
  }

  function ageMs(): number {
    return Math.max(0, clock.monotonic() - (seenAtMs ?? startedAtMs));
  }

  function isStale(): boolean {
    return ageMs() > staleAfterMs;
  }

  /** Whether there was news while the store was asked. */
  function hasNews(): boolean {
    return isAskedAgain;
  }

  function isClosed(): boolean {
    return closed;
  }
}

function some(ids: readonly string[]): readonly string[] {
  return ids.slice(0, mostTold);
}
