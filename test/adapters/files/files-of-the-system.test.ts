import t from 'tap';
import { readText, readTextSync } from '../../../src/adapters/files/read-file.js';
import { sizelessFile } from '../../support/linux.js';

t.test('reads files that claim to be empty', async (t) => {
  const expected = { ok: true, value: 'Linux\n' };
  t.same(await readText(sizelessFile, { maxBytes: 1024 }), expected);
  t.same(readTextSync(sizelessFile, { maxBytes: 1024 }), expected);
});
