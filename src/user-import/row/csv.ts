/** CSV as rows: the members of the JSON forms are columns, those inside one another with a dot between. */
import type { JsonObject, JsonValue } from '../../lib/strict-json.js';

/** Columns that say something of a user. */
export const userColumns = [
  'email',
  'passwordHash',
  'hashingAlgorithm',
  'passwordless.email',
  'passwordless.phoneNumber',
  'passwordless.add',
  'thirdParty.thirdPartyId',
  'thirdParty.thirdPartyUserId',
  'thirdParty.email',
  'thirdParty.isVerified',
] as const;

/**
 * Columns of a list of rejected rows, which say where a row came from and why it came back. Only such a list has the
 * two in the middle.
 */
export const originColumns = ['line', 'record', 'method', 'reason'] as const;

const nestedAdded = ['passwordless.add.email', 'passwordless.add.phoneNumber'];

/** Finds the name that was probably meant. */
type NearestName = (name: string, names: readonly string[]) => string | null;

/** Says what is wrong with a header line; `null` where nothing is. */
export function headerProblem(columns: readonly string[], nearest: NearestName): string | null {
  const isReturned = columns.includes('record') && columns.includes('method');
  const known: readonly string[] = [...userColumns, ...nestedAdded, ...(isReturned ? originColumns : [])];
  const unknown = columns.findIndex((column) => !known.includes(column));
  if (unknown >= 0) {
    const lists = isReturned
      ? ''
      : `; in a list of rejected rows also ${originColumns.join(', ')}, of which record and method have to be there`;
    const allowed = `allowed: ${userColumns.join(', ')}${isReturned ? `, ${originColumns.join(', ')}` : lists}`;
    return `column ${String(unknown + 1)} of the header has no known name${shownName(columns, unknown, known, nearest)}; ${allowed}`;
  }
  const twice = columns.find((column, index) => columns.indexOf(column) !== index);
  if (twice !== undefined) return `the column ${twice} is there twice; allowed: each once`;
  const added = columns.filter((column) => column === 'passwordless.add' || nestedAdded.includes(column));
  if (added.length > 1 && added.includes('passwordless.add')) {
    return `the columns ${added.join(' and ')} say the same, and one would be lost; allowed: passwordless.add, or those with a further dot`;
  }
  const names = columns.filter((column) => !(originColumns as readonly string[]).includes(column));
  return names.length === 0 ? `the header has no column of users; allowed: ${userColumns.join(', ')}` : null;
}

/**
 * The name, unless it may be no name: a file without a header has a user where the names should be, whose secrets are
 * not repeated.
 */
function shownName(columns: readonly string[], index: number, known: readonly string[], nearest: NearestName): string {
  const name = columns[index] ?? '';
  const meant = nearest(name, known);
  const isHeader = meant !== null || columns.some((column) => known.includes(column));
  if (!isHeader || !/^[A-Za-z][A-Za-z0-9_. -]{0,39}$/.test(name)) return '';
  return `: "${name}"${meant === null ? '' : `; did you mean ${meant}?`}`;
}

/** What a spreadsheet would take for a formula, perhaps behind apostrophes. A phone number is one that does nothing. */
const formula = /^[\s']*(?:[=\-@]|\+(?!\d+$))/;

/** A cell of a list of rejected rows: an apostrophe in front makes a spreadsheet show what it would run. */
export function asText(cell: string): string {
  return formula.test(cell) ? `'${cell}` : cell;
}

/** The cell as it was before. */
function fromText(cell: string): string {
  return cell.startsWith("'") && formula.test(cell) ? cell.slice(1) : cell;
}

/** The row as JSON would have it. Empty cells are absent; a row of several kinds is several users. */
export function rowOfCells(cells: ReadonlyMap<string, string>): JsonValue {
  const isReturned = originOfCells(cells) !== null;
  const plain = [...cells].map(([column, cell]) => [column, isReturned ? fromText(cell) : cell] as const);
  const filled = plain.filter(
    ([column, cell]) => cell !== '' && !(originColumns as readonly string[]).includes(column),
  );
  const password = Object.fromEntries(filled.filter(([column]) => !column.includes('.')));
  const users: JsonObject[] = Object.keys(password).length === 0 ? [] : [password];
  for (const kind of ['passwordless', 'thirdParty']) {
    const members = filled
      .filter(([column]) => column.startsWith(`${kind}.`))
      .map(([column, cell]) => [column.slice(kind.length + 1), cell] as const);
    if (members.length > 0) users.push({ [kind]: nested(members) });
  }
  const [only] = users;
  return users.length > 1 ? { methods: users } : (only ?? {});
}

/** Where a returned row stood in the file that it came from; `null` where it does not say. */
export function originOfCells(
  cells: ReadonlyMap<string, string>,
): { readonly record: number; readonly method: number } | null {
  const [record, method] = [cells.get('record') ?? '', cells.get('method') ?? ''];
  return /^[1-9]\d{0,9}$/.test(record) && /^\d{0,3}$/.test(method)
    ? { record: Number(record), method: Number(method) }
    : null;
}

function nested(members: readonly (readonly [string, string])[]): JsonObject {
  const plain = members
    .filter(([name]) => !name.includes('.'))
    .map(([name, cell]) => [name, name === 'isVerified' ? truth(cell) : cell] as const);
  const added = members
    .filter(([name]) => name.startsWith('add.'))
    .map(([name, cell]) => [name.slice('add.'.length), cell] as const);
  return { ...Object.fromEntries(plain), ...(added.length === 0 ? {} : { add: Object.fromEntries(added) }) };
}

/** Spreadsheets write `TRUE`. */
function truth(cell: string): JsonValue {
  const word = cell.toLowerCase();
  return word === 'true' ? true : word === 'false' ? false : cell;
}
