/** The users of an input file in order, numbered: what is planned, sent and journalled one by one. */
import { refuse, type Result } from '../../lib/result.js';
import type { JsonValue } from '../../lib/strict-json.js';
import { boundedFields } from '../losses.js';
import { createDigestSet, type DigestSet } from '../seen-contacts.js';
import type { HashRules } from './password-hash.js';
import { readRow } from './row.js';
import { identitiesOf, type ImportedUser, type RowProblem } from './user.js';

/** One record of the input, as far as its format tells. */
export interface SourceRecord {
  /** Where it begins, from 1. */
  readonly line: number;
  /** Its place among the records, from 1. */
  readonly record: number;
  readonly content: Result<JsonValue, RowProblem>;
  /** Where a row that came back stood in the file that still has its hash. */
  readonly origin?: Origin | null;
  /** Names of what the record says and no call of the Core carries, for each of its users in order. */
  readonly lost?: readonly (readonly string[])[];
}

/** A place among the records of a file, and within that record's `methods`. */
export interface Origin {
  readonly record: number;
  readonly method: number;
}

/** One user to import, or what is wrong with it. */
export interface Unit {
  /** Its place among the users of the file, from 0: the same in each run over the same file. */
  readonly number: number;
  readonly line: number;
  readonly record: number;
  /** Place within the record's `methods`, from 1; 0 where the record is one user. */
  readonly method: number;
  readonly content: Result<ImportedUser, RowProblem>;
  /** What the row says, for the list of rejected rows. */
  readonly rawValue: JsonValue;
  /** Where `--hashes-from` finds its hash, should it come back: in the file at hand, or in the one before that. */
  readonly origin: Origin;
  /** Names of what the row says of this user and no call of the Core carries; of very many the first ones. */
  readonly lost: readonly string[];
}

interface UnitRules {
  readonly hashes: HashRules;
  /** How places in the file are named: a file that is one JSON text may have a single line. */
  readonly place: 'line' | 'user';
}

/** Reads users, and refuses those that came before in the same file. */
export async function* readUnits(
  records: AsyncIterable<SourceRecord>,
  { hashes, place }: UnitRules,
): AsyncGenerator<Unit, void, undefined> {
  const seen = createDigestSet();
  let number = 0;
  for await (const { line, record, content, origin, lost } of records) {
    const at = place === 'line' ? line : record;
    const users = content.ok ? readRow(content.value, hashes) : [{ method: 0, read: content, rawValue: null }];
    for (const { method, read, rawValue } of users) {
      const checked = read.ok ? claimed(read.value, seen, at, place) : read;
      const lostOfUser = boundedFields(lost?.[Math.max(0, method - 1)] ?? []);
      yield {
        number,
        line,
        record,
        method,
        content: checked,
        rawValue,
        origin: origin ?? { record, method },
        lost: lostOfUser,
      };
      number += 1;
    }
  }
}

function claimed(
  user: ImportedUser,
  seen: DigestSet,
  at: number,
  place: UnitRules['place'],
): Result<ImportedUser, RowProblem> {
  const identities = identitiesOf(user);
  const before = identities.map((identity) => seen.find(identity)).find((number) => number !== null) ?? null;
  if (before !== null) {
    const field = user.kind === 'third_party' ? 'thirdParty' : user.kind === 'passwordless' ? 'passwordless' : 'email';
    return refuse({
      field,
      what: `is the same user as in ${place} ${String(before)}`,
      allowed: 'each user of a kind once',
    });
  }
  for (const identity of identities) seen.claim(identity, at);
  return { ok: true, value: user };
}
