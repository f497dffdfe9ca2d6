/** How the check speaks of files. */
import { basename, dirname } from 'node:path';

/** `1 test file`, `3 test files`, each with what else differs. */
export function howMany(files, one = '', more = 's') {
  return `${files.length} test file${files.length === 1 ? one : more}`;
}

/** `test/a/{b,c}.test.ts`: one entry for each folder. */
export function inShort(files) {
  const folders = new Map();
  for (const file of files) {
    folders.set(dirname(file), [...(folders.get(dirname(file)) ?? []), basename(file, '.test.ts')]);
  }
  return [...folders]
    .map(([folder, names]) => `${folder}/${names.length === 1 ? names[0] : `{${names.join(',')}}`}.test.ts`)
    .join(' ');
}
