import type { Log, Timers } from '../../ports/system.js';
import type { RequestRecord } from '../../ports/observability.js';

/**
 * Decides which refusals get a line of their own in the log: a flood of them must neither fill a disk nor bury what
 * matters.
 */
interface RefusalLines {
  /** Whether this request is to have its line; else it was counted, and is told of at the end of the second. */
  readonly admits: (record: RequestRecord) => boolean;
  /** Lines in a second for refusals of one reason and caller, or `null` for all of them. */
  readonly setLimit: (perSecond: number | null) => void;
  /** Tells at once of what was counted so far. */
  readonly flush: () => void;
}

interface RefusalLinesDeps {
  readonly perSecond: number | null;
  readonly log: Pick<Log, 'warn'>;
  readonly timers: Timers;
}

/** Refusals of one reason and caller in this second. */
interface Tally {
  readonly record: RequestRecord;
  count: number;
  unwritten: number;
}

const windowMs = 1_000;

/**
 * Callers told apart in a second: each has a verified subject, so that there are not many. Beyond it they are counted
 * together.
 */
const maxTallies = 1_000;

/**
 * Counts by reason and verified caller, so that no caller hides the refusals of another behind its own. Requests that
 * were forwarded, replayed or reserved, or went on in shadow mode, always have their line.
 */
export function createRefusalLines({ perSecond, log, timers }: RefusalLinesDeps): RefusalLines {
  const tallies = new Map<string, Tally>();
  let limit = perSecond;
  let closeWindow: (() => void) | null = null;

  function admits(record: RequestRecord): boolean {
    if (limit === null || !isRefusal(record)) return true;
    closeWindow ??= timers.after(windowMs, tell);
    const tally = tallyOf(record);
    tally.count += 1;
    if (tally.count <= limit) return true;
    tally.unwritten += 1;
    return false;
  }

  function tallyOf(record: RequestRecord): Tally {
    const reason = String(record.reason);
    // A reason and an issuer's name have no space in them.
    const key = record.subject === null ? reason : `${reason} ${record.issuer ?? ''} ${record.subject}`;
    const known = tallies.get(key);
    if (known !== undefined) return known;
    if (tallies.size < maxTallies) return begin(key, record);
    return tallies.get(reason) ?? begin(reason, { ...record, issuer: null, subject: null });
  }

  function begin(key: string, record: RequestRecord): Tally {
    const tally = { record, count: 0, unwritten: 0 };
    tallies.set(key, tally);
    return tally;
  }

  function tell(): void {
    closeWindow = null;
    for (const {
      record: { reason, issuer, subject },
      unwritten,
    } of tallies.values()) {
      if (unwritten > 0) log.warn('refusals were not logged one by one', { reason, issuer, subject, lines: unwritten });
    }
    tallies.clear();
  }

  return {
    admits,
    setLimit: (next) => {
      limit = next;
    },
    flush: () => {
      closeWindow?.();
      tell();
    },
  };
}

/** Nothing was sent on and nothing reserved: what is left to say of it is that it was, and why. */
export function isRefusal({ decision, reason, upstream_ms: upstreamMs, record }: RequestRecord): boolean {
  return reason !== null && upstreamMs === null && record === null && (decision === 'denied' || decision === 'failed');
}
