/** What rows say and the Core does not get to know: counted by field, so that nothing is lost without a word. */

/**
 * Where the Core has to be told of a third-party user's verified email (driver interface 4.0), and does not read it
 * before.
 */
export const firstVersionOfIsVerified = '4.0';

/**
 * The field that counts where a third-party user's email is verified in the row, and not in the Core, or the other way
 * round.
 */
export const isVerifiedField = 'thirdParty.isVerified';

/** Distinct names that are kept: what a file makes up beyond them counts as one. */
const maxFields = 100;
const otherFields = 'other members';

/** Names of members may be what should have been their value. */
export function fieldName(name: string): string {
  return /^\w{1,32}$/.test(name) ? name : otherFields;
}

/** Names of one row, as many as are kept of a whole file: its line of the journal is read again. */
export function boundedFields(names: readonly string[]): readonly string[] {
  return names.length <= maxFields ? names : [...names.slice(0, maxFields), otherFields];
}

export interface Loss {
  /** Users that lack it. */
  readonly users: number;
  /** Line of the first of them. */
  readonly line: number;
}

interface Losses {
  /** Counts a user of this line. */
  readonly add: (fields: readonly string[], line: number) => void;
  /** By field, in the order in which they were met. */
  readonly byField: () => ReadonlyMap<string, Loss>;
}

export function createLosses(): Losses {
  const found = new Map<string, Loss>();
  return {
    add: (fields, line) => {
      const counted = new Set<string>();
      for (const name of fields) {
        const field = found.has(name) || found.size < maxFields ? name : otherFields;
        if (counted.has(field)) continue;
        counted.add(field);
        const before = found.get(field) ?? { users: 0, line };
        // Several users are under way at once: the first that is done need not be the first of the file.
        found.set(field, { users: before.users + 1, line: Math.min(before.line, line) });
      }
    },
    byField: () => new Map(found),
  };
}
