/**
 * Writes what is generated from the config's schema: `config.schema.json` and `docs/configuration.md`. With `--check` it
 * writes nothing, and fails where one of them is not what it would write.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { shippedSchema } from './json-schema.js';
import { configReference } from './reference.js';

const generated = [
  { path: 'config.schema.json', text: `${JSON.stringify(shippedSchema(), null, 2)}\n` },
  { path: 'docs/configuration.md', text: configReference() },
];

// This file is `dist/config/generate.js`.
const projectRoot = new URL('../../', import.meta.url);

const stale = generated.filter(({ path, text }) => contentOf(path) !== text);
if (process.argv.includes('--check')) {
  for (const { path } of stale) process.stderr.write(`${path} is not what the schema says; npm run generate\n`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  mkdirSync(new URL('docs/', projectRoot), { recursive: true });
  for (const { path, text } of stale) writeFileSync(new URL(path, projectRoot), text);
}

function contentOf(path: string): string | null {
  try {
    return readFileSync(new URL(path, projectRoot), 'utf8');
  } catch {
    return null;
  }
}
