import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A vector file of the project. Tests run from the project's root. */
export function readVectors(name: string): unknown {
  return JSON.parse(readFileSync(join('test', 'vectors', name), 'utf8'));
}

/**
 * A file of the public corpora, or `null` where they are not at hand; its tests then run on the project's own vectors
 * alone.
 */
export function readCorpus(name: string): string | null {
  const path = join(process.env['SALLYPORT_CORPORA'] ?? '../shared/corpora', name);
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}
