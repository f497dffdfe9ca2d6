import t from 'tap';
import { readProjectFile } from '../support/source-files.js';
import { codeSpans, tableBelow } from './pages.js';

interface Package {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const page = 'docs/dependencies.md';
const { dependencies, devDependencies } = JSON.parse(readProjectFile('package.json')) as Package;

t.test('docs/dependencies.md has each package, with what it is for', (t) => {
  for (const [heading, packages] of [
    ['## In production', dependencies],
    ['## For development', devDependencies],
  ] as const) {
    const rows = tableBelow(page, heading);
    t.same(rows.flatMap(([names = '']) => codeSpans(names)).sort(), Object.keys(packages).sort(), heading);
    for (const [names = '', reason = ''] of rows) t.ok(reason.length > 5, names);
  }
  t.end();
});
