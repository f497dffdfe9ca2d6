/**
 * Compiles what changed file by file, without a look at its types: a second, where the compiler takes eight to find out
 * whom a type concerns.
 */
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { allSources, buildInfo, isPackageNewer, timeOf } from './dist.mjs';
import { loadedBy } from './imports.mjs';
import { compiledPath } from './test-files.mjs';

/** Beyond this many files the compiler is as quick, and looks at types. */
const most = 50;

/** Tests that import it hold types to what they promise: the declarations, which the compiler alone writes. */
const readsTypes = 'test/support/type-faults.ts';

/** The sources that are newer than what was compiled of them; `null` where these tests need the compiler. */
export function changedSources(tests) {
  if (!existsSync(buildInfo) || isPackageNewer()) return null;
  if (tests.some((test) => loadedBy(test).has(readsTypes))) return null;
  const changed = allSources().filter((file) => timeOf(file) > timeOf(compiledPath(file)));
  return changed.length > most ? null : changed;
}

/**
 * The sources that were compiled without the compiler since it last ran. It knows nothing of that: to a file that is
 * again as it last saw it, it does nothing.
 */
export function transpiledSources() {
  return existsSync(buildInfo) ? allSources().filter((file) => timeOf(compiledPath(file)) > timeOf(buildInfo)) : [];
}

/** Compiles these files to what the compiler would make of them, and says what in them is no TypeScript. */
export async function transpile(files) {
  if (files.length === 0) return { held: true };
  const { default: ts } = await import('typescript');
  const project = ts.getParsedCommandLineOfConfigFile('test/tsconfig.json', {}, ts.sys);
  const options = {
    ...project.options,
    // One file alone does not know of package.json, which says that all are modules.
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  };
  const problems = files.flatMap((file) => {
    const made = ts.transpileModule(readFileSync(file, 'utf8'), {
      compilerOptions: options,
      fileName: resolve(file),
      reportDiagnostics: true,
    });
    const compiled = compiledPath(file);
    mkdirSync(dirname(compiled), { recursive: true });
    const map = { ...JSON.parse(made.sourceMapText), sources: [relative(dirname(compiled), file)] };
    writeFileSync(`${compiled}.map`, JSON.stringify(map));
    writeFileSync(compiled, made.outputText);
    // What is wrong with it is told as long as it is so.
    if (made.diagnostics.length > 0) utimesSync(compiled, 0, 0);
    return made.diagnostics;
  });
  return { held: problems.length === 0, output: ts.formatDiagnostics(problems, ts.createCompilerHost(options)) };
}
