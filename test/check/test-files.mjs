import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, normalize } from 'node:path';

/**
 * The test files that were asked for, files or folders; all of them when none was. Long ones only on demand or by name.
 */
export function findTests(named, long) {
  if (named.length === 0) return testsBelow('test', long);
  return named
    .flatMap((name) => (isFolder(name) ? testsBelow(normalize(name), long) : [normalize(name)]))
    .filter((file) => existsSync(file));
}

/** Where the compiler puts a test file. */
export function compiledPath(file) {
  return join('.build', file.replace(/\.ts$/, '.js'));
}

/** Every file below the folder, sorted, as paths from here. */
export function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

function testsBelow(folder, long) {
  return filesBelow(folder).filter((file) => file.endsWith('.test.ts') && (long || !file.endsWith('.long.test.ts')));
}

function isFolder(path) {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
