import t from 'tap';
import { refuse } from '../../src/lib/result.js';
import { decodeRecord, encodeRecord, headerDifference, type JournalRecord } from '../../src/user-import/journal.js';
import { rowOfCells } from '../../src/user-import/row/csv.js';
import { createLedger } from '../../src/user-import/totals.js';
import { isNotIn, rejectedHeader, rejectedLine, settledRows } from '../../src/user-import/rejected-rows.js';
import type { Unit } from '../../src/user-import/row/rows.js';

const hashes = { dialect: 'seed', accepted: ['2b', '2y'], stripsPrefix: true, original: 'ef' };
const header = { sha256: 'ab', bytes: 7, from: 'csv', core: 'http://127.0.0.1:3567', reading: '', hashes };
const done = (
  number: number,
  outcome: Extract<JournalRecord, { type: 'done' }>['outcome'],
  line = number + 1,
): JournalRecord => ({ type: 'done', number, line, kind: 'bcrypt', outcome });

const records: readonly JournalRecord[] = [
  { type: 'header', header },
  { type: 'run', pid: 7, mark: 'boot 12', atMs: 1 },
  { type: 'run', pid: 7, mark: null, atMs: 1 },
  { type: 'begun', number: 0, atMs: 2 },
  { type: 'user', number: 0, userId: 'u1', existed: true },
  done(0, { result: 'created' }),
  done(1, { result: 'existed', isIn: false, why: 'x' }),
  { type: 'done', number: 2, line: 3, kind: null, outcome: { result: 'rejected', why: 'y' } },
];

t.test('records come back as they were written, one a line', async (t) => {
  for (const record of records) {
    const line = encodeRecord(record);
    t.match(line, /^[^\n]+\n$/);
    t.same(decodeRecord(line.slice(0, -1)), record);
  }
});

t.test('lines that are none of ours', async (t) => {
  const lines = [
    '',
    'x',
    '7',
    'null',
    '{}',
    '{"sallyport":"import","version":2}',
    '{"sallyport":"import","version":1}',
    encodeRecord({ type: 'header', header }).replace('"seed"', '7'),
    encodeRecord({ type: 'header', header }).replace('"ef"', '7'),
    encodeRecord({ type: 'header', header }).replace(/"hashes":.*/, '"hashes":7}'),
    '{"begun":1}',
    '{"done":1,"line":1,"result":"gone"}',
    '{"user":1}',
  ];
  for (const line of lines) t.equal(decodeRecord(line), null, line);
});

t.test('a journal belongs to one file, format, Core and reading', async (t) => {
  t.equal(headerDifference(header, header), null);
  t.match(headerDifference({ ...header, sha256: 'cd' }, header), /^the input has changed/);
  t.match(headerDifference({ ...header, from: 'jsonl' }, header), /--from jsonl$/);
  t.match(headerDifference({ ...header, core: 'http://core' }, header), /http:\/\/core$/);
  t.match(headerDifference({ ...header, reading: 'm=1' }, header), /with m=1$/);
  t.match(headerDifference(header, { ...header, reading: 'm=1' }), /without m=1$/);
  const other = (change: Partial<typeof hashes>): typeof header => ({ ...header, hashes: { ...hashes, ...change } });
  t.match(headerDifference(other({ dialect: 'supertokens' }), header), /with --dialect supertokens$/);
  t.match(headerDifference(header, other({ accepted: ['2b'] })), /with --accept-hash 2b,2y$/);
  t.match(headerDifference(other({ accepted: [] }), header), /without --accept-hash$/);
  t.match(headerDifference(header, other({ stripsPrefix: false })), /with --strip-hash-prefix$/);
  t.match(headerDifference(other({ stripsPrefix: false }), header), /without --strip-hash-prefix$/);
  t.match(headerDifference(header, other({ original: 'cd' })), /^the file of --hashes-from has changed/);
});

t.test('a journal of an older version, which does not say which hashes were taken, is gone on with', async (t) => {
  const old = encodeRecord({ type: 'header', header }).replace(/,"hashes":.*/, '}');
  const record = decodeRecord(old);
  t.same(record, { type: 'header', header: { ...header, hashes: null } });
  if (record?.type !== 'header') return;
  t.equal(headerDifference(record.header, header), null);
  t.match(headerDifference(record.header, { ...header, from: 'jsonl' }), /--from csv$/);
});

t.test('what a journal amounts to', async (t) => {
  const ledger = createLedger();
  for (const record of records) ledger.take(record);
  t.match(ledger.totals(), { created: 1, existed: 1, rejected: 1, notIn: 2, done: 3 });
  t.equal(ledger.doneBelow(), 3);
  t.same(ledger.totals().byKind.get('unreadable'), { created: 0, existed: 0, rejected: 1 });
  t.equal(ledger.hasTaken('bcrypt'), true);
  t.equal(ledger.hasTaken('hosted_scrypt'), false);
  ledger.take(done(1, { result: 'created' }));
  t.equal(ledger.totals().created, 1, 'a line that is there twice counts once');
  ledger.take(done(5, { result: 'created' }));
  t.same([3, 4, 5].map(ledger.isDone), [false, false, true]);
  t.equal(ledger.doneBelow(), 3);
  ledger.take({ type: 'begun', number: 3, atMs: 10 });
  ledger.take({ type: 'begun', number: 3, atMs: 20 });
  t.same(ledger.begun(3), { atMs: 10, userId: null, existed: false }, 'the first time counts');
  ledger.take({ type: 'user', number: 3, userId: 'u3', existed: false });
  t.same(ledger.begun(3), { atMs: 10, userId: 'u3', existed: false });
  ledger.take(done(3, { result: 'created' }));
  t.equal(ledger.begun(3), null);
  const left: Extract<JournalRecord, { type: 'done' }> = {
    type: 'done',
    number: 6,
    line: 7,
    kind: 'hosted_scrypt',
    outcome: { result: 'existed', isIn: false, why: 'left as it was' },
  };
  ledger.take(left);
  t.equal(ledger.hasTaken('hosted_scrypt'), false, 'a user that was left as it was says nothing of hashes');
  ledger.take({ ...left, number: 7, outcome: { result: 'existed', isIn: true, why: '' } });
  t.equal(ledger.hasTaken('hosted_scrypt'), true);
});

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

const bad = refuse({ field: 'row', what: 'x', allowed: 'y' });
const unit = (number: number, rawValue: Unit['rawValue'], method = 0): Unit => ({
  number,
  line: number + 1,
  record: number + 1,
  method,
  origin: { record: number + 1, method },
  content: bad,
  rawValue,
  lost: [],
});

t.test('rows that are not in come back in the order of the file, without a hash', async (t) => {
  const units = [
    unit(0, { email: 'a@b.de', passwordHash: '$2a$secret', hashingAlgorithm: 'bcrypt' }),
    unit(1, { email: 'c@d.de' }),
    unit(2, { passwordless: { email: 'e,"f', add: { phoneNumber: '+49' } } }, 2),
    unit(3, { email: '$2a$10$secret', passwordHash: 7 }),
    unit(4, { thirdParty: { thirdPartyId: 'x'.repeat(88), thirdPartyUserId: 7, email: 'a\nb', isVerified: true } }),
    unit(5, null),
  ];
  const rejected = { result: 'rejected', why: 'no, "not"\nso' } as const;
  const there = done(1, { result: 'existed', isIn: true, why: '' });
  const journal = [
    done(3, rejected),
    done(0, rejected),
    done(2, rejected),
    there,
    done(4, rejected),
    done(5, rejected),
  ];
  const lines: string[] = [];
  for await (const row of settledRows(each(units), each(journal))) {
    lines.push(isNotIn(row) ? rejectedLine(row) : 'in\n');
  }
  t.same(lines.join('').split('\n'), [
    '1,1,,"no, ""not"" so",a@b.de,,bcrypt,,,,,,,',
    'in',
    '3,3,2,"no, ""not"" so",,,,"e,""f",,+49,,,,',
    '4,4,,"no, ""not"" so",,,,,,,,,,',
    '5,5,,"no, ""not"" so",,,,,,,,7,,true',
    '6,6,,"no, ""not"" so",,,,,,,,,,',
    '',
  ]);
  t.match(rejectedHeader, /^line,record,method,reason,email,passwordHash,/);
});

t.test('a list of rejected rows holds no hash of any kind, and nothing that a spreadsheet would run', async (t) => {
  const cell = (rawValue: Unit['rawValue'], origin = { record: 1, method: 0 }): string =>
    rejectedLine({ unit: { ...unit(0, rawValue), origin }, outcome: { result: 'rejected', why: 'no' } }).trimEnd();
  const cases: readonly { name: string; email: string; expected: string }[] = [
    { name: 'a contact', email: "o'brien+x@example.com", expected: "o'brien+x@example.com" },
    { name: 'a contact that lacks its @', email: 'ada.example.com', expected: 'ada.example.com' },
    { name: 'as long as may be', email: 'a'.repeat(24), expected: 'a'.repeat(24) },
    { name: 'PBKDF2 in the column of emails', email: 'pbkdf2_sha256$26$c2FsdA$aGFzaA', expected: '' },
    { name: 'crypt', email: '$6$salt$hash', expected: '' },
    { name: 'phpass', email: '$P$BabcdefghijklmnopqrstuvwXYZ0123', expected: '' },
    { name: 'LDAP', email: '{SSHA}aGFzaA==', expected: '' },
    { name: 'hexadecimal', email: '5f4dcc3b5aa765d61d8327deb882cf99', expected: '' },
    { name: 'hexadecimal in pieces', email: '5f4dcc3b5aa765d6 1d8327deb882cf99', expected: '' },
    { name: 'base64url', email: '-_'.repeat(30), expected: '' },
    { name: 'a formula', email: '=1+1', expected: "'=1+1" },
    { name: 'a formula that is an address', email: '=a@example.com', expected: "'=a@example.com" },
    { name: 'a formula with a sign', email: '+a@example.com', expected: "'+a@example.com" },
    { name: 'a formula of old', email: '@SUM(1)', expected: "'@SUM(1)" },
    { name: 'a formula behind a space', email: ' -1+a', expected: "' -1+a" },
    { name: 'a formula behind an apostrophe', email: "'=1", expected: "''=1" },
    { name: 'a phone number', email: '+4930901820', expected: '+4930901820' },
  ];
  for (const { name, email, expected } of cases) {
    t.equal(cell({ email }), `1,1,,no,${expected},,,,,,,,,`, name);
    const cells = new Map([
      ['record', '1'],
      ['email', expected],
    ]);
    if (expected !== '') t.same(rowOfCells(cells), { email }, `${name}, back`);
  }
  t.same(
    rowOfCells(new Map([['email', "'=1"]])),
    { email: "'=1" },
    'a row that never was in such a list is taken as it is',
  );
  t.match(cell({ email: 'x' }, { record: 7, method: 2 }), /^1,7,2,/, 'where its hash is');
});

t.test('a journal that ends early tells of what it has', async (t) => {
  const seen: number[] = [];
  const rows = settledRows(
    each([unit(0, null), unit(1, null), unit(2, null)]),
    each([done(2, { result: 'rejected', why: 'x' })]),
  );
  for await (const row of rows) seen.push(row.unit.number);
  t.same(seen, [2]);
});
