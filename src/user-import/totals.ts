import type { DoneRecord, JournalRecord } from './journal.js';
import { createLosses, type Loss } from './losses.js';
import { userKinds, type UserKind } from './row/user.js';

/** What is known of a user that may be in the Core from an earlier try. */
export interface Begun {
  readonly atMs: number;
  /** Set once a passwordless user is there and its other contact is not. */
  readonly userId: string | null;
  /** Whether that user was there before us. */
  readonly existed: boolean;
}

export interface Tally {
  readonly created: number;
  readonly existed: number;
  readonly rejected: number;
}

export interface Totals extends Tally {
  /** Rows that are not in the Core as they are: rejected, or an existing user left as it was. */
  readonly notIn: number;
  readonly done: number;
  readonly byKind: ReadonlyMap<UserKind | 'unreadable', Tally>;
  /** What users that are in lack of what their rows say, by field. */
  readonly lost: ReadonlyMap<string, Loss>;
}

/** What the journal's lines amount to. */
export interface Ledger {
  readonly take: (record: JournalRecord) => void;
  readonly isDone: (number: number) => boolean;
  /** Every user below this number is done. */
  readonly doneBelow: () => number;
  readonly begun: (number: number) => Begun | null;
  readonly totals: () => Totals;
  /** Whether the Core took a user of this kind. */
  readonly hasTaken: (kind: UserKind) => boolean;
}

const nothing: Tally = { created: 0, existed: 0, rejected: 0 };

/**
 * Keeps the numbers that are done as one bound and the few above it: users are taken in order within a window, so that
 * a journal of a million users costs no more memory than one of a thousand.
 */
export function createLedger(): Ledger {
  let bound = 0;
  let notIn = 0;
  const above = new Set<number>();
  const begun = new Map<number, Begun>();
  const byKind = new Map<UserKind | 'unreadable', Tally>();
  const taken = new Set<UserKind>();
  const losses = createLosses();

  /** The first time counts: a user that joined after it may be ours. */
  function begin(number: number, atMs: number): void {
    if (!begun.has(number)) begun.set(number, { atMs, userId: null, existed: false });
  }

  function finish({ number, line, kind, outcome, lost = [] }: DoneRecord): void {
    // A line may be there twice, where a full disk made its first writing uncertain.
    if (number < bound || above.has(number)) return;
    above.add(number);
    while (above.delete(bound)) bound += 1;
    begun.delete(number);
    const tally = byKind.get(kind ?? 'unreadable') ?? nothing;
    byKind.set(kind ?? 'unreadable', { ...tally, [outcome.result]: tally[outcome.result] + 1 });
    const isIn = outcome.result === 'created' || (outcome.result === 'existed' && outcome.isIn);
    if (kind !== null && isIn) taken.add(kind);
    if (isIn) losses.add(lost, line);
    else notIn += 1;
  }

  return {
    take: (record) => {
      if (record.type === 'begun') begin(record.number, record.atMs);
      else if (record.type === 'user') {
        begun.set(record.number, {
          atMs: begun.get(record.number)?.atMs ?? 0,
          userId: record.userId,
          existed: record.existed,
        });
      } else if (record.type === 'done') finish(record);
    },
    isDone: (number) => number < bound || above.has(number),
    doneBelow: () => bound,
    begun: (number) => begun.get(number) ?? null,
    hasTaken: (kind) => taken.has(kind),
    totals: () => ({
      ...sumOf([...byKind.values()]),
      notIn,
      done: bound + above.size,
      byKind: new Map(byKind),
      lost: losses.byField(),
    }),
  };
}

/** Kinds in the order in which they are shown. */
export const talliedKinds: readonly (UserKind | 'unreadable')[] = [...userKinds, 'unreadable'];

function sumOf(tallies: readonly Tally[]): Tally {
  const sum = (name: keyof Tally): number => tallies.reduce((total, tally) => total + tally[name], 0);
  return { created: sum('created'), existed: sum('existed'), rejected: sum('rejected') };
}
