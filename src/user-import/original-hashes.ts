import type { JsonValue } from '../decision/strict-json.js';
import { isJsonObject } from '../decision/strict-json.js';
import type { SourceRecord } from './units.js';

/** A record that came back as rejected knows where in the first file it stood. */
export interface ReturnedRecord extends SourceRecord {
  /** Its place among the records there, and within that record's `methods`. */
  readonly origin: { readonly record: number; readonly method: number } | null;
}

/**
 * Gives returned rows the hashes of the file they came from, which no report holds. Both are read side by side, so returned
 * rows have to be in the order in which they were listed. A hash that was filled in stays.
 */
export async function* withOriginalHashes(
  returned: AsyncIterable<ReturnedRecord>, original: AsyncIterable<SourceRecord>,
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
    const hash = current?.record === origin.record && current.content.ok ? hashOf(current.content.value, origin.method) : null;
    yield hash === null || !isJsonObject(content.value) ? record : { ...record, content: { ok: true, value: { ...content.value, passwordHash: hash } } };
  }
}

function lacksHash(row: JsonValue): boolean {
  return isJsonObject(row) && row['email'] !== undefined && row['passwordHash'] === undefined;
}

function hashOf(row: JsonValue, method: number): string | null {
  const methods = isJsonObject(row) ? row['methods'] : undefined;
  const user = method > 0 && Array.isArray(methods) ? (methods[method - 1] as JsonValue | undefined) : row;
  const hash = isJsonObject(user) ? user['passwordHash'] : undefined;
  return typeof hash === 'string' ? hash : null;
}
