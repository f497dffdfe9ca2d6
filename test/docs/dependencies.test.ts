import t from 'tap';
import { readProjectFile } from '../support/source-files.js';
import { codeSpans, tableBelow } from './pages.js';

interface Package {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>;
}

const page = 'docs/dependencies.md';
const { dependencies, devDependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(
  readProjectFile('package.json'),
) as Package;
const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);

t.test('docs/dependencies.md has each package, with what it is for', (t) => {
  for (const [heading, packages] of [
    ['## In production', [...Object.keys(dependencies), ...peers]],
    ['## For development', Object.keys(devDependencies)],
  ] as const) {
    const rows = tableBelow(page, heading);
    t.same(rows.flatMap(([names = '']) => codeSpans(names)).sort(), [...packages].sort(), heading);
    for (const [names = '', reason = ''] of rows) t.ok(reason.length > 5, names);
  }
  t.end();
});
