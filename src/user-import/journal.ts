/** What the journal beside the input says, line by line, and what follows from it. No hash, code or key is in it. */
import { accept, refuse, type Result } from '../lib/result.js';
import { userKinds, type UserKind } from './row/user.js';

/** What a journal belongs to. A run with other values would number or mean its users differently. */
export interface JournalHeader {
  readonly sha256: string;
  readonly bytes: number;
  readonly from: string;
  /** Where the Core is, without what could be secret. */
  readonly core: string;
  /** What else decides how a row is read, in words. */
  readonly reading: string;
  /** Which hashes it may have; `null` where the journal is of an older version, which did not write that down. */
  readonly hashes: HashReading | null;
}

/** What decides which hash a row has, and whether it is taken. */
export interface HashReading {
  readonly dialect: string;
  /** Identifiers that are taken beside those of every Core, in one order. */
  readonly accepted: readonly string[];
  readonly stripsPrefix: boolean;
  /** SHA-256 of the file of `--hashes-from`, hex; `null` without one. */
  readonly original: string | null;
}

/** Whether a row is in the Core, and how it got there. */
export type Outcome =
  | { readonly result: 'created' }
  /** The user was there before. `isIn` tells whether the Core holds what the row says. */
  | { readonly result: 'existed'; readonly isIn: boolean; readonly why: string }
  | { readonly result: 'rejected'; readonly why: string };

export type JournalRecord =
  | { readonly type: 'header'; readonly header: JournalHeader }
  /** A process began to write; `mark` tells it from one that has its number later. */
  | { readonly type: 'run'; readonly pid: number; readonly mark: string | null; readonly atMs: number }
  /** Synced before the first call that may create the user: from here on the Core may have it from us. */
  | { readonly type: 'begun'; readonly number: number; readonly atMs: number }
  /** The Core's id of a passwordless user whose other contact is still missing. */
  | { readonly type: 'user'; readonly number: number; readonly userId: string; readonly existed: boolean }
  | DoneRecord;

export interface DoneRecord {
  readonly type: 'done';
  readonly number: number;
  readonly line: number;
  readonly kind: UserKind | null;
  readonly outcome: Outcome;
  /** Names of fields that the row says and the Core does not have. */
  readonly lost?: readonly string[];
}

const journalVersion = 1;

/** One line, with its end. */
export function encodeRecord(record: JournalRecord): string {
  return `${JSON.stringify(wireOf(record))}\n`;
}

/** Reads a line; `null` where it is none of ours. */
export function decodeRecord(line: string): JournalRecord | null {
  const wire = parse(line);
  if (wire === null) return null;
  const { sallyport, begun, user, done, run } = wire;
  if (sallyport === 'import' && wire['version'] === journalVersion) return headerOf(wire);
  if (isNumber(begun) && isNumber(wire['at'])) return { type: 'begun', number: begun, atMs: wire['at'] };
  if (isNumber(user) && isText(wire['id'])) {
    return { type: 'user', number: user, userId: wire['id'], existed: wire['existed'] === true };
  }
  if (isNumber(run) && isNumber(wire['at'])) {
    return { type: 'run', pid: run, mark: isText(wire['mark']) ? wire['mark'] : null, atMs: wire['at'] };
  }
  return isNumber(done) && isNumber(wire['line']) ? doneOf(done, wire['line'], wire) : null;
}

/** Says in which way a journal belongs to another import; `null` where it belongs to this one. */
export function headerDifference(written: JournalHeader, expected: JournalHeader): string | null {
  if (written.sha256 !== expected.sha256) {
    return 'the input has changed since the journal was begun; remove the journal to begin again';
  }
  if (written.from !== expected.from) return `the journal was begun with --from ${written.from}`;
  if (written.core !== expected.core) return `the journal was begun with the Core at ${written.core}`;
  if (written.reading !== expected.reading) {
    return written.reading === ''
      ? `the journal was begun without ${expected.reading}`
      : `the journal was begun with ${written.reading}`;
  }
  return written.hashes === null || expected.hashes === null ? null : hashesDifference(written.hashes, expected.hashes);
}

function hashesDifference(written: HashReading, expected: HashReading): string | null {
  if (written.original !== expected.original) {
    return 'the file of --hashes-from has changed since the journal was begun; remove the journal to begin again';
  }
  if (written.dialect !== expected.dialect) return `the journal was begun with --dialect ${written.dialect}`;
  const accepted = written.accepted.join();
  if (accepted !== expected.accepted.join()) {
    return `the journal was begun ${accepted === '' ? 'without --accept-hash' : `with --accept-hash ${accepted}`}`;
  }
  if (written.stripsPrefix !== expected.stripsPrefix) {
    return `the journal was begun ${written.stripsPrefix ? 'with' : 'without'} --strip-hash-prefix`;
  }
  return null;
}

function wireOf(record: JournalRecord): object {
  switch (record.type) {
    case 'header':
      return { sallyport: 'import', version: journalVersion, ...record.header };
    case 'run':
      return { run: record.pid, mark: record.mark, at: record.atMs };
    case 'begun':
      return { begun: record.number, at: record.atMs };
    case 'user':
      return { user: record.number, id: record.userId, existed: record.existed };
    case 'done':
      return {
        done: record.number,
        line: record.line,
        kind: record.kind,
        ...record.outcome,
        ...(record.lost === undefined ? {} : { lost: record.lost }),
      };
  }
}

type Wire = Readonly<Record<string, unknown>>;

function parse(line: string): Wire | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Wire) : null;
  } catch {
    return null;
  }
}

function headerOf({ sha256, bytes, from, core, reading, hashes = null }: Wire): JournalRecord | null {
  if (!isText(sha256) || !isNumber(bytes) || !isText(from) || !isText(core) || !isText(reading)) return null;
  if (hashes !== null && !isHashReading(hashes)) return null;
  return { type: 'header', header: { sha256, bytes, from, core, reading, hashes } };
}

function isHashReading(value: unknown): value is HashReading {
  if (typeof value !== 'object' || value === null) return false;
  const { dialect, accepted, stripsPrefix, original } = value as Wire;
  const namesAll = Array.isArray(accepted) && accepted.every(isText);
  return isText(dialect) && namesAll && typeof stripsPrefix === 'boolean' && (original === null || isText(original));
}

function doneOf(number: number, line: number, wire: Wire): JournalRecord | null {
  const kind = userKinds.find((name) => name === wire['kind']) ?? null;
  const outcome = outcomeOf(wire);
  const { lost } = wire;
  const isNamed = Array.isArray(lost) && lost.every(isText);
  return outcome.ok ? { type: 'done', number, line, kind, outcome: outcome.value, ...(isNamed ? { lost } : {}) } : null;
}

function outcomeOf({ result, why, isIn }: Wire): Result<Outcome, null> {
  if (result === 'created') return accept({ result });
  if (result === 'rejected' && isText(why)) return accept({ result, why });
  if (result === 'existed' && typeof isIn === 'boolean' && isText(why)) return accept({ result, isIn, why });
  return refuse(null);
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
