/** The rows that are worth a word after a run, found by reading input and journal side by side. */
import type { JsonValue } from '../lib/strict-json.js';
import { isJsonObject, type JsonObject } from '../lib/strict-json.js';
import { asText, originColumns, userColumns } from './row/csv.js';
import type { JournalRecord, Outcome } from './journal.js';
import { createLedger } from './totals.js';
import type { Unit } from './row/rows.js';

export interface SettledRow {
  readonly unit: Unit;
  readonly outcome: Exclude<Outcome, { readonly result: 'created' }>;
}

/**
 * Yields the rows that were rejected or existed already, in the order of the file. The journal is nearly in that order,
 * so that no more than a window of it is held.
 */
export async function* settledRows(
  units: AsyncIterable<Unit>,
  journal: AsyncIterable<JournalRecord>,
): AsyncGenerator<SettledRow, void, undefined> {
  const ledger = createLedger();
  const held = new Map<number, SettledRow['outcome']>();
  const records = journal[Symbol.asyncIterator]();
  let isAtEnd = false;
  try {
    for await (const unit of units) {
      while (!isAtEnd && ledger.doneBelow() <= unit.number) {
        const next = await records.next();
        isAtEnd = next.done === true;
        if (next.done === true) break;
        ledger.take(next.value);
        if (next.value.type === 'done' && next.value.outcome.result !== 'created') {
          held.set(next.value.number, next.value.outcome);
        }
      }
      const outcome = held.get(unit.number);
      held.delete(unit.number);
      if (outcome !== undefined) yield { unit, outcome };
    }
  } finally {
    await records.return?.();
  }
}

/** Whether the Core lacks what the row says. */
export function isNotIn({ outcome }: SettledRow): boolean {
  return outcome.result === 'rejected' || !outcome.isIn;
}

/** First line of the list of rows that are not in. */
export const rejectedHeader = `${[...originColumns, ...userColumns].join(',')}\n`;

/** A row as CSV that can be mended and imported: everything but its hash, which no report holds. */
export function rejectedLine({ unit, outcome }: SettledRow): string {
  const origin = [
    String(unit.line),
    String(unit.origin.record),
    unit.origin.method === 0 ? '' : String(unit.origin.method),
    outcome.why,
  ];
  const cells = userColumns.map((column) => asText(shown(column, cellOf(unit.rawValue, column))));
  return `${[...origin, ...cells].map(quoted).join(',')}\n`;
}

function cellOf(rawValue: JsonValue, column: string): string {
  const value = column
    .split('.')
    .reduce<JsonValue | undefined>((at, name) => (isJsonObject(at) ? at[name] : undefined), rawValue);
  if (column === 'passwordHash') return '';
  if (column === 'passwordless.add' && isJsonObject(value)) return textOf(addedOf(value));
  return textOf(value);
}

function addedOf(added: JsonObject): JsonValue | undefined {
  return added['phoneNumber'] ?? added['email'];
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string'
    ? value
    : typeof value === 'boolean' || typeof value === 'number'
      ? String(value)
      : '';
}

/** What a name of an algorithm, a contact without its @, or a number has at most. */
const maxPlainLength = 24;

const freeColumns: readonly string[] = ['thirdParty.thirdPartyId', 'thirdParty.thirdPartyUserId'];

/** What stands in the wrong column may be a hash, or a part of one, of whatever kind: no contact has that form. */
function shown(column: string, cell: string): string {
  const isFormatted = /\$[\w=,.-]*\$|\$(?:2|argon2|f_scrypt)|^\{[\w@.-]+\}|[\w+/=-]{60,}/.test(cell);
  const isLong =
    !freeColumns.includes(column) && !cell.includes('@') && cell.replace(/\s/g, '').length > maxPlainLength;
  return isFormatted || isLong || /\p{C}/u.test(cell) ? '' : cell;
}

function quoted(cell: string): string {
  const line = cell.replace(/[\r\n]+/g, ' ');
  return /[",]|^\s|\s$/.test(line) ? `"${line.replaceAll('"', '""')}"` : line;
}
