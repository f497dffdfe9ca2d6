import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readPassword } from '../../../../src/adapters/redis/client/connection.js';
import { makeFifo } from '../../../support/sh.js';
import { tempDir } from '../../../support/temp-dir.js';

t.test('a password is the file without its last line end', (t) => {
  const path = join(tempDir(t), 'password');
  for (const { text, expected } of [
    { text: 'secret', expected: 'secret' },
    { text: 'secret\n', expected: 'secret' },
    { text: 'secret\r\n', expected: 'secret' },
    { text: 'secret\n\n', expected: 'secret\n' },
    { text: 'sec\nret', expected: 'sec\nret' },
    { text: ' sécret ', expected: ' sécret ' },
    { text: '', expected: '' },
    { text: 'x'.repeat(4_096), expected: 'x'.repeat(4_096) },
    { text: 'x'.repeat(4_097), expected: null },
  ]) {
    writeFileSync(path, text);
    t.equal(readPassword(path), expected, JSON.stringify(text.slice(0, 20)));
  }
  t.end();
});

t.test('what is no regular file gives no password, and holds up nothing', (t) => {
  const dir = tempDir(t);
  t.equal(readPassword(join(dir, 'missing')), null);
  mkdirSync(join(dir, 'folder'));
  t.equal(readPassword(join(dir, 'folder')), null);
  t.equal(readPassword(makeFifo(join(dir, 'fifo'))), null);
  t.end();
});

t.test('a password that is read for each connection leaves no file open', (t) => {
  const path = join(tempDir(t), 'password');
  writeFileSync(path, 'secret');
  // The lowest number that is free is taken.
  const freeDescriptor = (): number => {
    const file = openSync(path, 'r');
    closeSync(file);
    return file;
  };
  const before = freeDescriptor();
  for (let i = 0; i < 10; i += 1) readPassword(path);
  t.ok(freeDescriptor() < before + 10);
  t.end();
});
