/**
 * Writes what is generated, below the working folder: from the config's schema `config.schema.json`,
 * `docs/configuration.md` and what the chart's values have of the config; from the chart's values the table in its
 * README. Where there is no chart, that is left out. With `--check` it writes nothing, and fails where one of them is
 * not what it would write.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { chartReadme } from './chart-reference.js';
import { chartValuesSchema } from './chart-schema.js';
import { shippedSchema } from './json-schema.js';
import { configReference } from './reference.js';

const chartPath = 'helm/sallyport/values.schema.json';
const readmePath = 'helm/sallyport/README.md';
const chart = contentOf(chartPath);
const readme = contentOf(readmePath);
const values = contentOf('helm/sallyport/values.yaml');
const generated = [
  { path: 'config.schema.json', text: `${JSON.stringify(shippedSchema(), null, 2)}\n` },
  { path: 'docs/configuration.md', text: configReference() },
  ...(chart === null ? [] : [{ path: chartPath, text: chartValuesSchema(chart) }]),
  ...(readme === null || values === null ? [] : [{ path: readmePath, text: chartReadme(readme, values) }]),
];

const stale = generated.filter(({ path, text }) => contentOf(path) !== text);
if (process.argv.includes('--check')) {
  for (const { path } of stale) process.stderr.write(`${path} is not what the schema says; npm run generate\n`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  mkdirSync('docs', { recursive: true });
  for (const { path, text } of stale) writeFileSync(path, text);
}

function contentOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
