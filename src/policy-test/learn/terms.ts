/** What counts as enough, and how much is held at most. */

/** When a caller of an operation is learnt. */
export interface LearnTerms {
  /** Requests of the caller there that the upstream answered with a status below 400. */
  readonly minCount: number;
  /** Days (UTC) on which such requests came. */
  readonly minDays: number;
  /** Different values at a segment before it becomes `{id}`, of all callers together and of each one. */
  readonly minValues: number;
}

export const defaultTerms: LearnTerms = { minCount: 10, minDays: 2, minValues: 3 };

/** The largest `minValues` and `minDays`: values and days beyond are not told apart. */
export const maxTermValues = 64;

/** Bounds of memory. What is beyond them is not learnt, and counted. */
export interface LearnCaps {
  /** Bytes of a line: the longest path, escaped, takes some 50 KiB. */
  readonly lineBytes: number;
  /** Places in the tree of paths. */
  readonly places: number;
  /** Of them, those that one caller brings: nobody crowds out the paths of others. */
  readonly placesOfCaller: number;
  /** Words at one place that are told apart. */
  readonly words: number;
  /** Pairs of an operation and a caller. */
  readonly pairs: number;
  readonly callers: number;
  readonly permissionSets: number;
}

export const defaultCaps: LearnCaps = {
  lineBytes: 128 * 1024,
  places: 100_000,
  placesOfCaller: 10_000,
  words: 1_000,
  pairs: 100_000,
  callers: 10_000,
  permissionSets: 10_000,
};

/** Words at one place of a path, used by several callers or very many of them: then they are values, such as slugs. */
export const slugTerms = { words: 20, wordsOfCaller: 5, callers: 2, wordsOfOneCaller: 100 } as const;
