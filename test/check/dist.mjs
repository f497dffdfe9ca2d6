import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { revisionOf, stampRevision } from '../../.release/revision.mjs';
import { compiledPath, filesBelow } from './test-files.mjs';

/**
 * Puts what was compiled for the tests in the place of `npm run build`: the same compiler and options, one compile
 * less. Only the source maps differ, which name their source by a relative path.
 */
export async function copyToDist() {
  rmSync('dist', { recursive: true, force: true });
  for (const source of compiledSources()) {
    const compiled = source.replace(/\.ts$/, '.js');
    const target = join('dist', relative('src', compiled));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, readFileSync(join('.build', compiled)));
    const map = JSON.parse(readFileSync(join('.build', `${compiled}.map`), 'utf8'));
    writeFileSync(`${target}.map`, JSON.stringify({ ...map, sources: [relative(dirname(target), source)] }));
    // What programs that import a module of ours are checked with.
    const declaration = compiled.replace(/\.js$/, '.d.ts');
    if (existsSync(join('.build', declaration))) {
      writeFileSync(target.replace(/\.js$/, '.d.ts'), readFileSync(join('.build', declaration)));
    }
  }
  stampRevision('dist', revisionOf(process.cwd()));
  chmodSync('dist/main.js', 0o755);
  return { held: true };
}

/** What the compiler makes a file of; pages for browsers are bundled beside it. */
function compiledSources() {
  return filesBelow('src').filter((file) => file.endsWith('.ts') && !/^src\/(?:console|playground)\//.test(file));
}

/** What is compiled, the tests too. */
export function allSources() {
  return [...compiledSources(), ...filesBelow('test').filter((file) => file.endsWith('.ts'))];
}

/** What the compiler goes by to do no more than it has to. */
export const buildInfo = '.build/tsbuildinfo';

/**
 * The compiler remembers what it wrote and not whether it is still there, and looks at our files alone to see whether
 * anything changed: has it do everything where something that it wrote is gone, or packages were installed since.
 */
export function forgetLostOutput() {
  if (isPackageNewer() || isOutputLost()) rmSync(buildInfo, { force: true });
}

function isOutputLost() {
  if (!existsSync(buildInfo)) return false;
  const { fileNames } = JSON.parse(readFileSync(buildInfo, 'utf8'));
  const known = new Set(fileNames.map((file) => join(dirname(buildInfo), file)));
  return allSources().some((file) => known.has(file) && !existsSync(compiledPath(file)));
}

/** Whether packages were installed since the compiler looked at them. */
export function isPackageNewer() {
  return timeOf('node_modules/.package-lock.json') > timeOf(buildInfo);
}

/** When the file was written, in milliseconds; 0 where there is none. */
export function timeOf(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
