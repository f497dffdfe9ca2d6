import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { decisionFaults, scriptFaults } from '../exploration/faults.js';
import { largePresets, smallPresets } from '../exploration/presets.js';
import { projectDir } from '../support/project-dir.js';
import { readProjectFile } from '../support/source-files.js';
import { codeSpans } from './pages.js';

const page = readProjectFile('docs/guarantees.md');
const presets = [...smallPresets, ...largePresets].map(({ name }) => name);

t.test('docs/guarantees.md names explorations, tests and metrics that there are', (t) => {
  for (const name of codeSpans(page).filter((span) => /^(?:plain|reports|deduplicates), /.test(span))) {
    t.ok(presets.includes(name), name);
  }
  for (const [, path = ''] of page.matchAll(/\]\((\.\.\/[^)#]+)\)/g)) {
    t.ok(existsSync(join(projectDir, 'docs', path)), path);
  }
  const told = ['reservations', 'metrics']
    .map((name) => readFileSync(join(projectDir, `src/adapters/metrics/${name}.ts`), 'utf8'))
    .join('\n');
  for (const name of new Set(page.match(/sallyport_[a-z_]+/g))) t.ok(told.includes(`'${name}'`), name);
  t.end();
});

t.test('it has a row for each exploration, once, and says how many guards were taken out', (t) => {
  for (const name of presets) {
    t.equal(page.split('\n').filter((line) => line.startsWith(`| \`${name}\` |`)).length, 1, name);
  }
  t.ok(
    page.includes(
      `are found: ${decisionFaults.length} of the decision functions and of the proxy's part, ${scriptFaults.length} of the scripts`,
    ),
  );
  t.end();
});
