/**
 * What a file of the project loads, by the imports that stand in it. What is imported for its types alone is not
 * loaded.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const importOrExport = /^(?:import|export)(?! type\b)[^;'"]*['"]([^'"]+)['"];|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm;

const known = new Map();

/**
 * The project's files that a file imports (`files`), and the packages and modules of Node.js (`packages`), as they are
 * written.
 */
export function importsOf(file) {
  if (!known.has(file)) known.set(file, readImports(file));
  return known.get(file);
}

function readImports(file) {
  const named = [...readFileSync(file, 'utf8').matchAll(importOrExport)].map(([, atTop, later]) => atTop ?? later);
  const [ours, packages] = [
    named.filter((name) => name.startsWith('.')),
    named.filter((name) => !name.startsWith('.')),
  ];
  const files = ours
    .map((name) => normalize(join(dirname(file), name.replace(/\.js$/, '.ts'))))
    .filter((path) => existsSync(path));
  return { files, packages };
}

/** The files that a file loads, itself included, each found through those that `follow` accepts. */
export function loadedBy(file, follow = () => true) {
  const found = new Set([file]);
  for (const one of found) for (const next of importsOf(one).files) if (follow(next)) found.add(next);
  return found;
}
