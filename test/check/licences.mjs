/**
 * Writes docs/licences.md: every package that a deployment holds, with its licence, as the lock file has it. `npm run
 * generate` runs it.
 *
 *   node test/check/licences.mjs [--check]     with --check, only compares
 */
import { readFileSync, writeFileSync } from 'node:fs';

const page = 'docs/licences.md';
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages;
const written = text(shippedPackages(lock));

if (!process.argv.includes('--check')) writeFileSync(page, written);
else if (readFileSync(page, 'utf8') !== written) {
  console.error(`${page} is not what package-lock.json says: run npm run generate`);
  process.exitCode = 1;
}

/** What the dependencies, and the SDK that the image carries, lead to. */
function shippedPackages(packages) {
  const root = packages[''];
  const found = new Map();
  const waiting = [...Object.keys(root.dependencies), ...Object.keys(root.peerDependencies)].map((name) => [name, '']);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const place = placeOf(packages, ...next);
    if (place === null || found.has(place)) continue;
    const entry = packages[place];
    found.set(place, entry);
    waiting.push(...Object.keys({ ...entry.dependencies, ...entry.optionalDependencies }).map((name) => [name, place]));
  }
  return [...found].map(([place, entry]) => ({
    name: place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length),
    version: entry.version,
    licence: entry.license ?? 'none named',
    runsScripts: entry.hasInstallScript === true,
  }));
}

/** Where a package finds another: beside itself, or further up. */
function placeOf(packages, name, from) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const place = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (packages[place] !== undefined) return place;
    if (folder === '') return null;
  }
}

function text(packages) {
  const rows = packages
    .sort((one, other) => (`${one.name}@${one.version}` < `${other.name}@${other.version}` ? -1 : 1))
    .map(
      ({ name, version, licence, runsScripts }) =>
        `| ${name} | ${version} | ${licence} | ${runsScripts ? 'yes' : 'no'} |`,
    );
  return `# Licences

The packages that a deployment holds: the dependencies of \`package.json\` with all of theirs, and the SDK for sessions, which the image carries. Taken
from \`package-lock.json\` by \`npm run generate\`; a test refuses a licence that is not on its list, and a package that runs a script when it is
installed. Sallyport itself is Apache-2.0: [LICENSE](../LICENSE). So is Envoy's schema, of which [src/adapters/envoy/schema.ts](../src/adapters/envoy/schema.ts)
is a part.

| package | version | licence | install script |
| --- | --- | --- | --- |
${[...new Set(rows)].join('\n')}
`;
}
