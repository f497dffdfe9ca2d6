/** docs/performance.md: what a full proxy takes, measured again, and the chart's limit over all of it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { measureMemory } from './capacity.js';

t.setTimeout(580_000);

t.test('a proxy that is full in each way stays near the page’s figure and below the chart’s limit', async (t) => {
  const page = readFileSync(join(projectDir, 'docs/performance.md'), 'utf8');
  for (const [name, mib] of await measureMemory(t)) {
    const documented = Number(
      page
        .split('\n')
        .find((line) => line.startsWith(`| ${name} |`))
        ?.split('|')[2]
        ?.replace('MiB', ''),
    );
    t.ok(mib < documented * 1.3, `${name}: ${mib.toFixed(0)} MiB, the page says ${String(documented)}`);
    t.ok(mib < 640, name);
  }
});
