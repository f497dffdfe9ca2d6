import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createMetrics } from '../src/adapters/metrics/metrics.js';
import { responseOf, reasons } from '../src/decision/denial.js';
import { projectDir } from './support/project-dir.js';

const operations = readFileSync(join(projectDir, 'docs/operations.md'), 'utf8');

function rowsBetween(start: string, end: string): readonly (readonly string[])[] {
  const text = operations.slice(operations.indexOf(start), operations.indexOf(end));
  return text
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

t.test('every reason has a row with its status, what happened and what to do', async (t) => {
  const rows = rowsBetween('<!-- reasons -->', '<!-- /reasons -->');
  const expected = reasons.map((reason) => [
    `\`${reason}\``,
    reason === 'caller_gone' ? 'none' : String(responseOf(reason).status),
  ]);
  t.same(
    rows.map((row) => row.slice(0, 2)),
    expected,
  );
  for (const [reason = '', , what = '', action = ''] of rows) t.ok(what.length > 10 && action.length > 5, reason);
});

t.test('every metric is described, and the page names metrics and reasons that exist', async (t) => {
  const metrics = createMetrics();
  metrics.setLabels({ routes: ['list-orders'], issuers: ['core'], configSha256: '0'.repeat(64) });
  const exposed = [...(await metrics.expose()).matchAll(/^# TYPE (sallyport_\w+)/gm)].map(([, name = '']) => name);
  const described = rowsBetween('| metric | meaning |', '## Alerts').flatMap(
    ([names = '']) => names.match(/sallyport_\w+/g) ?? [],
  );
  t.same([...described].sort(), [...exposed].sort());
  for (const [name] of operations.matchAll(/sallyport_\w+/g)) {
    t.ok(exposed.includes(name.replace(/_bucket$/, '')), name);
  }
  for (const [, pattern = ''] of operations.matchAll(/reason=~?"([^"]+)"/g)) {
    t.ok(
      reasons.some((reason) => new RegExp(`^(?:${pattern})$`).test(reason)),
      pattern,
    );
  }
});
