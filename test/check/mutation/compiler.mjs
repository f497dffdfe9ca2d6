/** Asks the compiler about mutants: one that it refuses can never be shipped, so that no test has to notice it. */
import { join, resolve } from 'node:path';
import ts from 'typescript';

/** Loose ends that a mutant leaves behind are no reason to refuse it: what was built with them would run. */
const lenient = {
  noUnusedLocals: false,
  noUnusedParameters: false,
  allowUnreachableCode: true,
  incremental: false,
  noEmit: true,
};

/** Returns whether a file of `src`, with this text in it, has a type error. The first question takes some seconds. */
export function createCompiler() {
  const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, process.cwd(), { ...lenient });
  const settings = { ...options, ...lenient, tsBuildInfoFile: undefined };
  let changed = { path: '', text: '', version: 0 };
  const service = ts.createLanguageService({
    getCompilationSettings: () => settings,
    getCurrentDirectory: () => process.cwd(),
    getDefaultLibFileName: (of) => ts.getDefaultLibFilePath(of),
    getScriptFileNames: () => fileNames,
    getScriptVersion: (path) => (path === changed.path ? String(changed.version) : '0'),
    getScriptSnapshot: (path) => {
      const text = path === changed.path ? changed.text : ts.sys.readFile(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  });
  return (file, text) => {
    changed = { path: resolve(join(process.cwd(), file)), text, version: changed.version + 1 };
    return (
      [...service.getSyntacticDiagnostics(changed.path), ...service.getSemanticDiagnostics(changed.path)].length > 0
    );
  };
}
