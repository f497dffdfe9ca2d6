import { join } from 'node:path';
import ts from 'typescript';
import { projectDir } from './project-dir.js';

/** What the compiler finds wrong with programs that import the package, as strictly as a careful user has it. */
export function typeFaults(files: readonly string[]): readonly string[] {
  const program = ts.createProgram(files, {
    strict: true,
    noEmit: true,
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    exactOptionalPropertyTypes: true,
    types: ['node'],
    typeRoots: [join(projectDir, 'node_modules/@types')],
    skipLibCheck: true,
  });
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}
