/** JSON Lines and CSV: a record is a line. */
import { parse } from 'csv-parse/sync';
import { accept, refuse, type Result } from '../../lib/result.js';
import { defaultMaxDepth, parseStrictJson, type JsonProblem, type JsonValue } from '../../lib/strict-json.js';
import type { ReturnedRecord } from '../row/rejoin-hashes.js';
import type { SourceRecord } from '../row/rows.js';
import type { RowProblem } from '../row/user.js';
import { readLines, type TextLine } from '../../adapters/files/lines.js';

/** A row of 32 users takes a tenth of it. */
export const maxRecordBytes = 64 * 1024;

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

const jsonProblems: Readonly<Record<JsonProblem, string>> = {
  encoding: 'is not UTF-8',
  too_deep: 'is nested too deep',
  syntax: 'is no JSON',
  not_an_object: 'is no object',
  duplicate_member: 'has a member twice',
  not_representable: 'has a broken character or number',
};

/** Reads one JSON object a line. Empty lines are passed over. */
export async function* readJsonLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<SourceRecord, void, undefined> {
  let record = 0;
  for await (const text of readLines(chunks, maxRecordBytes)) {
    const bytes = withoutMark(text);
    if (bytes !== null && isBlank(bytes)) continue;
    record += 1;
    yield { line: text.line, record, content: bytes === null ? refuse(tooLong) : jsonOf(bytes) };
  }
}

/** One JSON object as bytes. */
export function jsonOf(bytes: Uint8Array): Result<JsonValue, RowProblem> {
  const parsed = parseStrictJson(bytes, { maxDepth: defaultMaxDepth });
  return parsed.ok ? parsed : refuse({ field: 'row', what: jsonProblems[parsed.error], allowed: 'one JSON object' });
}

interface CsvRules {
  /** Says what is wrong with the names of the columns. */
  readonly headerProblem: (columns: readonly string[]) => string | null;
  readonly rowOfCells: (cells: ReadonlyMap<string, string>) => JsonValue;
  readonly originOfCells: (cells: ReadonlyMap<string, string>) => ReturnedRecord['origin'];
}

/** A header that cannot be: no row behind it can be understood. */
export class UnreadableInput extends Error {}

/**
 * Reads CSV with a header (RFC 4180). No column may hold a line break, so that a quote which is never closed costs one
 * row. Throws `UnreadableInput` for a bad header.
 */
export async function* readCsv(
  chunks: AsyncIterable<Buffer>,
  rules: CsvRules,
): AsyncGenerator<ReturnedRecord, void, undefined> {
  let columns: readonly string[] | null = null;
  let record = 0;
  for await (const text of readLines(chunks, maxRecordBytes)) {
    const bytes = withoutMark(text);
    if (bytes !== null && isBlank(bytes)) continue;
    const cells = bytes === null ? refuse(tooLong) : cellsOf(bytes);
    if (columns === null) {
      columns = cells.ok ? cells.value.map((name) => name.trim()) : [];
      const problem = cells.ok
        ? rules.headerProblem(columns)
        : `the header ${cells.error.what}; allowed: names of columns between commas`;
      if (problem !== null) throw new UnreadableInput(`${String(text.line)}: ${problem}`);
      continue;
    }
    record += 1;
    const named = cells.ok ? namedCells(columns, cells.value) : cells;
    const at = { line: text.line, record };
    if (named.ok) {
      yield { ...at, content: accept(rules.rowOfCells(named.value)), origin: rules.originOfCells(named.value) };
    } else yield { ...at, content: named, origin: null };
  }
}

function namedCells(
  columns: readonly string[],
  cells: readonly string[],
): Result<ReadonlyMap<string, string>, RowProblem> {
  if (cells.length === columns.length) {
    return accept(new Map(columns.map((column, index) => [column, cells[index] ?? ''])));
  }
  return refuse({
    field: 'row',
    what: `has ${String(cells.length)} cells`,
    allowed: `${String(columns.length)}, as the header`,
  });
}

function cellsOf(bytes: Uint8Array): Result<readonly string[], RowProblem> {
  const text = decode(bytes);
  if (text === null) return refuse({ field: 'row', what: 'is not UTF-8', allowed: 'UTF-8 text' });
  if (!text.includes('"')) return accept(text.split(','));
  try {
    const [cells = []] = parse(text, { relax_column_count: true });
    return accept(cells);
  } catch {
    const allowed = 'quotes around a whole cell, a quote inside as two, no line break within a cell';
    return refuse({ field: 'row', what: 'has a quote out of place', allowed });
  }
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** What is said of a record that was not kept. */
export const tooLong: RowProblem = {
  field: 'row',
  what: 'is too long',
  allowed: `at most ${String(maxRecordBytes)} bytes`,
};

/** Spreadsheets begin a file with a byte order mark. */
function withoutMark({ line, bytes }: TextLine): Buffer | null {
  return line === 1 && bytes?.subarray(0, 3).equals(byteOrderMark) === true ? bytes.subarray(3) : bytes;
}

function isBlank(bytes: Buffer): boolean {
  return bytes.length === 0 || /^[ \t]*$/.test(bytes.toString('latin1'));
}
