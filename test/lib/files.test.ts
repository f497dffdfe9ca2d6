import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { syncFolder } from '../../src/lib/files.js';

t.test('a folder is synced; what is none is refused by the system', async (t) => {
  const folder = t.testdir({});
  await syncFolder(folder);
  const file = join(folder, 'file');
  await writeFile(file, '');
  await t.rejects(syncFolder(file), { code: 'ENOTDIR' });
  await t.rejects(syncFolder(join(folder, 'missing')), { code: 'ENOENT' });
});
