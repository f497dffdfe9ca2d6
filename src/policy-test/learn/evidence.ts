/** What was seen of one caller at one operation. */
import { maxTermValues, type LearnTerms } from './terms.js';

/** Whose tokens came: the issuer's name in the config, and the subject. */
export interface Caller {
  readonly issuer: string;
  readonly subject: string;
  /** Places in the tree that it brought. */
  places: number;
}

export interface Evidence {
  /** Requests that the upstream answered with a status below 400. */
  worked: number;
  /** Those that it answered 404, 405, 410 or 501, 401 or 403: it has no such operation, or not for this caller. */
  missed: number;
  /** Those that failed otherwise. */
  failed: number;
  /** Milliseconds since the epoch, of those that worked. */
  firstMs: number;
  lastMs: number;
  /** Days since the epoch on which some worked; up to `maxTermValues`. */
  readonly days: Set<number>;
  /** What every token had; `null` where a line did not say. */
  permissions: readonly string[] | null;
  /** By the segment's place: hashes of the values there; up to `maxTermValues`. */
  readonly values: Map<number, Set<number>>;
  /** The last number in a path, and how often it was the one before, one higher or lower. */
  lastNumber: number;
  steps: number;
  /** How often it was near the one before, and from where to where the numbers go. */
  nearSteps: number;
  lowest: number;
  highest: number;
}

/** Why a caller of an operation is not learnt, in words. */
export const doubtWords = {
  too_few: 'too few requests that worked',
  too_few_days: 'on too few days',
  too_few_values: 'the caller used too few values of a segment',
  mostly_missing: 'most of its requests were answered 401, 403, 404, 405, 410 or 501',
  walked: 'its numbers follow one another: somebody walks through them',
  permissions_unknown: 'the log does not say what its tokens grant',
} as const;

type Doubt = keyof typeof doubtWords;

/** From so many requests on, steps from one number to the next are no accident. */
const minWalk = 4;

/**
 * Who walks with several requests at a time, leaves out numbers, or comes through several proxies with a log each, goes
 * by steps of up to so many. That is told from a few numbers which are near each other anyway by so many requests and
 * values, and by so many numbers from the lowest to the highest.
 */
const farthestStep = 4;
const minLooseWalk = 40;
const minWalkedValues = 30;

const msPerDay = 86_400_000;

/** From one day to the next: else a minute about midnight is two. */
const leastMsPerDay = msPerDay / 2;

const firstFailure = 400;
const missing: ReadonlySet<number> = new Set([401, 403, 404, 405, 410, 501]);

export function hasWorked(status: number): boolean {
  return status > 0 && status < firstFailure;
}

export function noEvidence(): Evidence {
  return {
    worked: 0,
    missed: 0,
    failed: 0,
    firstMs: Infinity,
    lastMs: -Infinity,
    days: new Set(),
    permissions: null,
    values: new Map(),
    lastNumber: NaN,
    steps: 0,
    nearSteps: 0,
    lowest: Infinity,
    highest: -Infinity,
  };
}

interface Seen {
  readonly status: number;
  readonly timeMs: number;
  readonly permissions: readonly string[] | null;
  /** Hashes of values, by the segment's place. */
  readonly values: readonly (readonly [number, number])[];
  /** The last number in the path; NaN where it has none. */
  readonly number: number;
}

/** Adds one request. */
export function witness(evidence: Evidence, { status, timeMs, permissions, values, number }: Seen): void {
  const step = Math.abs(number - evidence.lastNumber);
  if (step === 1) evidence.steps += 1;
  if (step >= 1 && step <= farthestStep) evidence.nearSteps += 1;
  evidence.lastNumber = number;
  if (!Number.isNaN(number)) {
    evidence.lowest = Math.min(evidence.lowest, number);
    evidence.highest = Math.max(evidence.highest, number);
  }
  if (!hasWorked(status)) {
    if (missing.has(status)) evidence.missed += 1;
    else evidence.failed += 1;
    return;
  }
  evidence.permissions = evidence.worked === 0 ? permissions : common(evidence.permissions, permissions);
  evidence.worked += 1;
  evidence.firstMs = Math.min(evidence.firstMs, timeMs);
  evidence.lastMs = Math.max(evidence.lastMs, timeMs);
  addBounded(evidence.days, Math.floor(timeMs / msPerDay));
  for (const [at, hash] of values) addValue(evidence, at, hash);
}

export function addValue({ values }: Evidence, at: number, hash: number): void {
  const known = values.get(at);
  if (known === undefined) values.set(at, new Set([hash]));
  else addBounded(known, hash);
}

export function addBounded(set: Set<number>, value: number): void {
  if (set.size < maxTermValues) set.add(value);
}

/** Adds what was seen under another spelling. */
export function mergeEvidence(into: Evidence, from: Evidence): void {
  if (from.worked > 0) {
    into.permissions = into.worked === 0 ? from.permissions : common(into.permissions, from.permissions);
  }
  into.worked += from.worked;
  into.missed += from.missed;
  into.failed += from.failed;
  into.steps += from.steps;
  into.nearSteps += from.nearSteps;
  into.lowest = Math.min(into.lowest, from.lowest);
  into.highest = Math.max(into.highest, from.highest);
  into.firstMs = Math.min(into.firstMs, from.firstMs);
  into.lastMs = Math.max(into.lastMs, from.lastMs);
  for (const day of from.days) addBounded(into.days, day);
  for (const [at, hashes] of from.values) for (const hash of hashes) addValue(into, at, hash);
}

/** Why this caller is not learnt here; `null` where it is. @param parameters places of the segments that vary. */
export function doubtOf(evidence: Evidence, parameters: readonly number[], terms: LearnTerms): Doubt | null {
  const { worked, missed, firstMs, lastMs, days, values, permissions } = evidence;
  if (isWalk(evidence)) return 'walked';
  if (missed > worked) return 'mostly_missing';
  if (worked < terms.minCount) return 'too_few';
  if (days.size < terms.minDays || lastMs - firstMs < (terms.minDays - 1) * leastMsPerDay) return 'too_few_days';
  if (parameters.some((at) => (values.get(at)?.size ?? 0) < terms.minValues)) return 'too_few_values';
  return permissions === null ? 'permissions_unknown' : null;
}

function isWalk({ worked, missed, failed, steps, nearSteps, lowest, highest, values }: Evidence): boolean {
  const all = worked + missed + failed;
  if (all >= minWalk && steps > all / 2) return true;
  if (all < minLooseWalk || nearSteps <= all / 2 || highest - lowest < minWalkedValues) return false;
  return [...values.values()].some(({ size }) => size >= minWalkedValues);
}

/** What both lists have. Lists that are the same one, as most are, are not looked at. */
export function common(one: readonly string[] | null, other: readonly string[] | null): readonly string[] | null {
  if (one === other || one === null) return one;
  if (other === null) return null;
  const shared = one.filter((permission) => other.includes(permission));
  return shared.length === one.length ? one : shared;
}
