/** Which test files are asked of a mutant. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';

/** What each compiled file imports of ours, by its path below `.build`. */
export function importsOf(compiled) {
  return new Map(
    compiled.map((file) => {
      const path = normalize(file).replace(/^\.build\//, '');
      const named = [...readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?['"](\.[^'"]+)['"]/g)].map(
        ([, name]) => normalize(join(dirname(path), name)),
      );
      return [path, named];
    }),
  );
}

/**
 * The test files that load it, the nearest first: that of its name, then those of its folder; others where it has
 * neither. No long ones.
 */
export function testsOf(file, imports) {
  const path = file.replace(/\.ts$/, '.js');
  const own = path.replace(/^src/, 'test').replace(/\.js$/, '.test.js');
  const distances = new Map([[path, 0]]);
  for (const at of distances.keys()) {
    for (const [importer, named] of imports) {
      if (named.includes(at) && !distances.has(importer)) distances.set(importer, (distances.get(at) ?? 0) + 1);
    }
  }
  const isNear = (test) =>
    dirname(test) === dirname(own) || (dirname(own) === 'test/adapters/memory' && dirname(test) === 'test/adapters');
  const rank = (test) => (test === own ? 0 : distances.get(test));
  const all = [...distances.keys()].filter(
    (test) =>
      test.endsWith('.test.js') &&
      !test.includes('.long.') &&
      /^test\/(lib|decision|proxy|admin|adapters|config|policy-test)\//.test(test),
  );
  const near = all.filter(isNear);
  return (near.length > 0 ? near : all).sort((a, b) => rank(a) - rank(b) || basename(a).localeCompare(basename(b)));
}

/** Changes when one of these tests, or what it is made of, does. */
export function digestOfTests(tests, imports) {
  const files = new Set(tests);
  for (const file of files) {
    for (const named of imports.get(file) ?? []) if (named.startsWith('test/')) files.add(named);
  }
  const hash = createHash('sha256');
  for (const file of [...files].filter((one) => imports.has(one)).sort()) {
    hash.update(file).update(readFileSync(join('.build', file)));
  }
  return hash.digest('hex').slice(0, 12);
}
