import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readText, readTextSync, textDigest } from '../../../src/adapters/files/read-file.js';
import type { Result } from '../../../src/lib/result.js';
import { makeFifo } from '../../support/sh.js';
import { tempDir } from '../../support/temp-dir.js';

const maxBytes = 64 * 1024;

/** Both ways of reading have to say the same. */
async function read(t: Test, path: string, limit = maxBytes): Promise<Result<string, string>> {
  const waited = await readText(path, { maxBytes: limit });
  t.same(readTextSync(path, { maxBytes: limit }), waited, 'at once and waited for');
  return waited;
}

t.test('reads text', async (t) => {
  const dir = tempDir(t);
  const rows: { name: string; content: string | Buffer; expected: Result<string, string> }[] = [
    { name: 'empty', content: '', expected: { ok: true, value: '' } },
    { name: 'text', content: 'a: 1\r\n\u00e9\u{1f600}\n', expected: { ok: true, value: 'a: 1\r\n\u00e9\u{1f600}\n' } },
    {
      name: 'a byte order mark is kept for the parser to judge',
      content: '\ufeffa',
      expected: { ok: true, value: '\ufeffa' },
    },
    { name: 'at the limit', content: 'x'.repeat(maxBytes), expected: { ok: true, value: 'x'.repeat(maxBytes) } },
    {
      name: 'above the limit',
      content: 'x'.repeat(maxBytes + 1),
      expected: { ok: false, error: 'is larger than 65536 bytes' },
    },
    { name: 'no UTF-8', content: Buffer.from([0x61, 0xff]), expected: { ok: false, error: 'is not UTF-8 text' } },
    {
      name: 'cut within a character',
      content: Buffer.from('\u00e9').subarray(0, 1),
      expected: { ok: false, error: 'is not UTF-8 text' },
    },
  ];
  for (const { name, content, expected } of rows) {
    const path = join(dir, 'file');
    writeFileSync(path, content);
    t.same(await read(t, path), expected, name);
  }
  t.same(await read(t, join(dir, 'file'), 0), { ok: false, error: 'is larger than 0 bytes' });
  symlinkSync('file', join(dir, 'link'));
  writeFileSync(join(dir, 'file'), 'through a link');
  t.same(await read(t, join(dir, 'link')), { ok: true, value: 'through a link' });
});

t.test('refuses what is no regular file, without waiting for it', async (t) => {
  const dir = tempDir(t);
  mkdirSync(join(dir, 'folder'));
  makeFifo(join(dir, 'fifo'));
  const server = createServer();
  t.teardown(() => server.close());
  await new Promise<void>((resolve) => server.listen(join(dir, 'socket'), resolve));
  symlinkSync('loop', join(dir, 'loop'));
  const rows: { path: string; error: string }[] = [
    { path: join(dir, 'nowhere'), error: 'does not exist' },
    { path: join(dir, 'folder'), error: 'is a directory' },
    { path: join(dir, 'fifo'), error: 'is a FIFO, not a regular file' },
    { path: join(dir, 'socket'), error: 'is a socket, not a regular file' },
    { path: '/dev/zero', error: 'is a device, not a regular file' },
    { path: join(dir, 'loop'), error: 'is a link that leads to itself' },
    { path: join(dir, 'fifo', 'below'), error: 'cannot be read (ENOTDIR)' },
    { path: 'a\0b', error: 'cannot be read (ERR_INVALID_ARG_VALUE)' },
  ];
  for (const { path, error } of rows) t.same(await read(t, path), { ok: false, error }, error);
});

t.test('says that a file may not be read', async (t) => {
  const path = join(tempDir(t), 'closed');
  writeFileSync(path, 'secret');
  chmodSync(path, 0);
  const expected: Result<string, string> =
    process.getuid?.() === 0 ? { ok: true, value: 'secret' } : { ok: false, error: 'may not be read by this user' };
  t.same(await read(t, path), expected);
});

t.test('the digest is that of the bytes', (t) => {
  for (const text of ['', '\ufeffa', '\u00e9']) {
    t.equal(textDigest(text), createHash('sha256').update(Buffer.from(text)).digest('hex'));
  }
  t.end();
});
