import { readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { pathIn, replaceFile, syncFolder } from '../../src/lib/files.js';

t.test('a folder is synced; what is none is refused by the system', async (t) => {
  const folder = t.testdir({});
  await syncFolder(folder);
  const file = join(folder, 'file');
  await writeFile(file, '');
  await t.rejects(syncFolder(file), { code: 'ENOTDIR' });
  await t.rejects(syncFolder(join(folder, 'missing')), { code: 'ENOENT' });
});

t.test('a file takes the place of another one, of a link, and of a draft that was left behind', async (t) => {
  const folder = t.testdir({ old: 'old', 'old.new': 'left behind' });
  const [old, link] = [join(folder, 'old'), join(folder, 'link')];
  await symlink(old, link);
  await replaceFile(link, 'beside');
  t.equal(await readFile(old, 'utf8'), 'old', 'what the link named is as it was');
  await replaceFile(old, 'new', 0o600);
  t.equal(await readFile(old, 'utf8'), 'new');
  t.equal((await stat(old)).mode & 0o777, 0o600);
  await t.rejects(stat(`${old}.new`), { code: 'ENOENT' });
  await t.rejects(replaceFile(join(folder, 'missing', 'x'), ''), { code: 'ENOENT' });
});

t.test('what cannot be put in place leaves no draft', async (t) => {
  const folder = t.testdir({ taken: { file: '' } });
  await t.rejects(replaceFile(join(folder, 'taken'), 'text'), { code: 'EISDIR' });
  t.same(await readdir(folder), ['taken']);
});

t.test('a path is made absolute, and the folder asked for with a relative one only', (t) => {
  const gone = {
    get cwd(): string {
      throw new Error('gone');
    },
  };
  t.equal(pathIn({ cwd: '/etc' }, 'a/../b'), '/etc/b');
  t.equal(pathIn(gone, '/etc/../b'), '/b');
  t.throws(() => pathIn(gone, 'b'), /gone/);
  t.end();
});
