import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openInput } from '../../../src/user-import/io/input-file.js';
import { readJsonList } from '../../../src/user-import/io/json-array.js';
import { maxRecordBytes, readCsv, readJsonLines } from '../../../src/user-import/io/records.js';
import { readLines } from '../../../src/adapters/files/lines.js';
import { headerProblem, originOfCells, rowOfCells } from '../../../src/user-import/row/csv.js';
import type { SourceRecord } from '../../../src/user-import/row/rows.js';
import { tempDir } from '../../support/temp-dir.js';

/** The bytes in pieces of a size, so that every border is met. */
async function* pieces(content: string | Buffer, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(content);
  for (let at = 0; at < bytes.length; at += size) yield Buffer.from(bytes.subarray(at, at + size));
}

async function summary(records: AsyncIterable<SourceRecord>): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  for await (const { line, record, content } of records) {
    all.push([line, record, content.ok ? content.value : content.error.what]);
  }
  return all;
}

t.test('lines of any length, in pieces of any size', async (t) => {
  for (const size of [1, 2, 3, 7, 100]) {
    const lines: unknown[] = [];
    for await (const { line, bytes, isEnded, nextAt } of readLines(pieces('ab\r\n\ncdefgh\nxyz\nend', size), 5)) {
      lines.push([line, bytes?.toString() ?? null, isEnded, nextAt]);
    }
    t.same(
      lines,
      [
        [1, 'ab', true, 4],
        [2, '', true, 5],
        [3, null, true, 12],
        [4, 'xyz', true, 16],
        [5, 'end', false, 19],
      ],
      `pieces of ${size}`,
    );
  }
});

t.test('JSON Lines: each line stands for itself', async (t) => {
  const text = Buffer.concat([
    Buffer.from('\ufeff{"a":1}\r\n\n  \n{"a":1,"a":2}\nnot json\n[]\n'),
    Buffer.from([0x7b, 0xff, 0x7d, 0x0a]),
    Buffer.from(`{"long":"${'x'.repeat(maxRecordBytes)}"}\n{"last":true}`),
  ]);
  for (const size of [1, 5, 100_000]) {
    t.same(
      await summary(readJsonLines(pieces(text, size))),
      [
        [1, 1, { a: 1 }],
        [4, 2, 'has a member twice'],
        [5, 3, 'is no JSON'],
        [6, 4, 'is no object'],
        [7, 5, 'is not UTF-8'],
        [8, 6, 'is too long'],
        [9, 7, { last: true }],
      ],
      `pieces of ${size}`,
    );
  }
});

const csvRules = {
  headerProblem: (columns: readonly string[]) => headerProblem(columns, () => null),
  rowOfCells,
  originOfCells,
};

t.test('CSV: a bad row costs one row', async (t) => {
  const text =
    '\ufeffemail, hashingAlgorithm ,record,method\r\na@b.de,bcrypt,7,\n\n"b@b.de","x, ""y""",,\nc@b.de\nd@b.de,"open,\ne@b.de,"x"y,\nf@b.de,,,\n';
  for (const size of [1, 4, 1_000]) {
    t.same(
      await summary(readCsv(pieces(text, size), csvRules)),
      [
        [2, 1, { email: 'a@b.de', hashingAlgorithm: 'bcrypt' }],
        [4, 2, { email: 'b@b.de', hashingAlgorithm: 'x, "y"' }],
        [5, 3, 'has 1 cells'],
        [6, 4, 'has a quote out of place'],
        [7, 5, 'has a quote out of place'],
        [8, 6, { email: 'f@b.de' }],
      ],
      `pieces of ${size}`,
    );
  }
  t.same(
    await summary(readCsv(pieces(Buffer.concat([Buffer.from('email\n'), Buffer.from([0xff, 0x0a])]), 100), csvRules)),
    [[2, 1, 'is not UTF-8']],
  );
  for await (const { origin } of readCsv(pieces('record,method,email\n7,,a@b.de\n', 100), csvRules)) {
    t.same(origin, { record: 7, method: 0 });
  }
  await t.rejects(summary(readCsv(pieces('a@b.de,secret\n', 100), csvRules)), {
    message: /^1: column 1 of the header has no known name/,
  });
  await t.rejects(summary(readCsv(pieces('"email\n', 100), csvRules)), {
    message: /^1: the header has a quote out of place/,
  });
});

t.test('a list within a JSON file, member by member', async (t) => {
  const text =
    '{ "version": {"users": [9]}, "kind": "users", "users" : [\n {"a": "]}\\"", "b": [1, {"c": 2}]},\n{"d":\n3} , 7, {"x" 1}], "more": [{}] }\n';
  for (const size of [1, 3, 1_000]) {
    t.same(
      await summary(readJsonList(pieces(text, size), 'users')),
      [
        [2, 1, { a: ']}"', b: [1, { c: 2 }] }],
        [3, 2, { d: 3 }],
        [4, 3, 'is no object'],
        [4, 4, 'is no JSON'],
      ],
      `pieces of ${size}`,
    );
  }
  const long = `{"users":[{"a":"${'x'.repeat(maxRecordBytes)}"},{"b":1}]}`;
  t.same(await summary(readJsonList(pieces(long, 50_000), 'users')), [
    [1, 1, 'is too long'],
    [1, 2, { b: 1 }],
  ]);
  t.same(await summary(readJsonList(pieces('{"users":[{"a":1},{"b', 5), 'users')), [
    [1, 1, { a: 1 }],
    [1, 3, 'ends before its end'],
  ]);
  t.same(await summary(readJsonList(pieces('{"others":[{"a":1}]}', 5), 'users')), [[1, 1, 'has no list users']]);
  t.same(await summary(readJsonList(pieces('{"users":[]}', 5), 'users')), []);
});

t.test('a file is read as often as asked, with its digest', async (t) => {
  const path = join(tempDir(t), 'users.jsonl');
  const content = Buffer.alloc(600_000, 'line\n');
  writeFileSync(path, content);
  const opened = await openInput(path);
  if (!opened.ok) throw new Error(opened.error);
  t.teardown(() => opened.value.close());
  t.equal(opened.value.bytes, content.length);
  for (let time = 0; time < 2; time += 1) {
    const { chunks, digest, bytesRead } = opened.value.read();
    t.equal(digest(), null, 'not before the end');
    const read: Buffer[] = [];
    for await (const chunk of chunks) read.push(chunk);
    t.ok(Buffer.concat(read).equals(content));
    t.equal(digest(), createHash('sha256').update(content).digest('hex'));
    t.equal(bytesRead(), content.length);
  }
});

t.test('what is no file', async (t) => {
  const dir = tempDir(t);
  mkdirSync(join(dir, 'folder'));
  t.same(await openInput(join(dir, 'none')), { ok: false, error: 'does not exist' });
  t.same(await openInput(join(dir, 'folder')), { ok: false, error: 'is a directory' });
  t.same(await openInput('/dev/null'), { ok: false, error: 'is no regular file: an import reads it twice' });
});
