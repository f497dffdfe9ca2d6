import { accept, refuse, type Result } from '../../lib/result.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/strict-json.js';
import { readEmail } from './contacts.js';
import type { Origin, SourceRecord } from './rows.js';
import type { RowProblem } from './user.js';

/** A record that came back as rejected knows where in the first file it stood. */
export interface ReturnedRecord extends SourceRecord {
  /** Its place among the records there, and within that record's `methods`. */
  readonly origin: Origin | null;
}

/**
 * Gives returned rows the hashes of the file they came from, which no report holds. Both are read side by side, so
 * returned rows have to be in the order in which they were listed. A hash that was filled in stays, and nobody gets
 * that of another.
 */
export async function* withOriginalHashes(
  returned: AsyncIterable<ReturnedRecord>,
  original: AsyncIterable<SourceRecord>,
): AsyncGenerator<SourceRecord, void, undefined> {
  const records = original[Symbol.asyncIterator]();
  let current: SourceRecord | null = null;
  for await (const record of returned) {
    const { origin, content } = record;
    if (origin === null || !content.ok || !lacksHash(content.value)) {
      yield record;
      continue;
    }
    while (current === null || current.record < origin.record) {
      const next = await records.next();
      if (next.done === true) break;
      current = next.value;
    }
    const user =
      current?.record === origin.record && current.content.ok ? userOf(current.content.value, origin.method) : null;
    yield user === null ? record : { ...record, content: withHash(content.value, user) };
  }
}

const ofAnother: RowProblem = {
  field: 'passwordHash',
  what: 'is missing, and the row of the first file that this one names is another user with another email address',
  allowed: 'the file that the list was made of, or a hash that is filled in',
};

/** An address that was none had to be mended, so that it differs; any other has to be the same. */
function withHash(row: JsonObject, { email, passwordHash }: JsonObject): Result<JsonValue, RowProblem> {
  if (typeof passwordHash !== 'string') return accept(row);
  const mended = row['email'];
  const isSame =
    typeof email === 'string' && typeof mended === 'string' && mended.toLowerCase() === email.toLowerCase();
  return isSame || !readEmail(email, 'email').ok ? accept({ ...row, passwordHash }) : refuse(ofAnother);
}

function lacksHash(row: JsonValue): row is JsonObject {
  return isJsonObject(row) && row['email'] !== undefined && row['passwordHash'] === undefined;
}

function userOf(row: JsonValue, method: number): JsonObject | null {
  const methods = isJsonObject(row) ? row['methods'] : undefined;
  const user = method > 0 && Array.isArray(methods) ? (methods[method - 1] as JsonValue | undefined) : row;
  return isJsonObject(user) ? user : null;
}
